"""The watch over quality: hand-made courses of a number, and what it says of them."""

import numpy as np
import pytest

from components.interfaces import UserError
from components.watch.quality_watch import QualityWatch


class Images:
    """A sampler whose images are all `low` or all `high`, half of each."""

    def __init__(self) -> None:
        self.low, self.high = 0, 255

    def sample(self, num_images, *, seed, labels=None):
        half = num_images // 2
        return np.concatenate([np.full((half, 2, 2, 1), value, np.uint8) for value in (self.low, self.high)])


def run_through(watch: QualityWatch, values, name="fid", every=10) -> None:
    for index, value in enumerate(values):
        watch.observe(index * every, {name: value})


@pytest.mark.parametrize(("direction", "values"), [("min", [4, 2, 5]), ("max", [-4, -2, -5])])
def test_watch_warns_once_where_the_rolling_mean_falls(direction, values, caplog) -> None:
    watch = QualityWatch(Images(), metric="fid", direction=direction, window=1, fall=0.5)
    run_through(watch, [values[0], values[1]])
    assert not caplog.records
    run_through(watch, [values[2], values[2]])
    assert len(caplog.records) == 1 and f"is {values[2]}, after {values[1]}" in caplog.text
    assert not watch.reason_to_stop()


def test_watch_stops_after_so_many_steps_without_a_better_mean() -> None:
    watch = QualityWatch(Images(), metric="fid", direction="min", window=2, stop_after=20)
    run_through(watch, [4, 2, 2, 3])  # means 3, 2, 2.5 of steps 10, 20, 30: the best is that of step 20
    assert not watch.reason_to_stop()
    watch.observe(40, {"fid": 3})
    assert "not improved since step 20" in watch.reason_to_stop()


def test_watch_without_a_metric_sees_samples_become_alike_and_a_discriminator_that_wins(caplog) -> None:
    images = Images()
    watch = QualityWatch(images, window=1, stop_after=20)
    watch.observe(0, {"discriminator/accuracy": 0.7})  # variance 1/4
    images.low, images.high = 120, 130
    watch.observe(10, {"discriminator/accuracy": 0.7})
    assert "after 0.25 at step 0" in caplog.text
    images.low, images.high = 0, 255
    watch.observe(20, {"discriminator/accuracy": 0.7})
    watch.observe(30, {"discriminator/accuracy": 1.0})
    assert "right in 100.0 % of the cases" in caplog.text and not watch.reason_to_stop()
    watch.observe(50, {"discriminator/accuracy": 1.0})
    assert "fallen at step 30" in watch.reason_to_stop()


def test_watch_restored_at_any_step_decides_as_one_that_was_not_stopped() -> None:
    values = np.random.default_rng(0).uniform(1, 2, 40)

    def course(stop: int | None) -> list[str]:
        watch, said = QualityWatch(Images(), metric="fid", window=3, stop_after=90), []
        for step, value in enumerate(values):
            if step == stop:
                state = watch.state()
                watch = QualityWatch(Images(), metric="fid", window=3, stop_after=90)
                watch.restore(state)
            watch.observe(10 * step, {"fid": float(value)})
            said.append(watch.reason_to_stop())
        return [*said, str(watch.state())]

    whole = course(None)
    assert any(whole[:-1]) and all(course(stop) == whole for stop in range(40))


def test_watch_passes_over_other_metrics_and_forgets_the_state_of_another() -> None:
    watch = QualityWatch(Images(), metric="fid")
    before = watch.state()
    watch.observe(10, {"generator/loss": 1.0})
    assert watch.state() == before
    watch.restore({**before, "metric": "kid", "values": [1.0]})
    assert watch.state() == before


@pytest.mark.parametrize(("bound", "words"), [({"num_images": 1}, "at least 2"), ({"direction": "min"}, "without one")])
def test_watch_that_could_see_nothing_is_refused(bound, words) -> None:
    with pytest.raises(UserError, match=words):
        QualityWatch(Images(), **bound)
