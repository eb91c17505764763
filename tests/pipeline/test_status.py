"""What the status line says of images and memory."""

import io
import os
import shutil

import pytest

from pipeline import status
from pipeline.quantities import short, size
from pipeline.status import StatusLine, memory, players

LOSSES = {
    "discriminator/loss": 1.23456,
    "discriminator/accuracy": 0.625,
    "discriminator/accuracy_real": 0.75,
    "generator/loss": 0.81234,
    "generator/accuracy": 0.3125,
}
TERMS = {"vae/loss": 130.5, "vae/reconstruction": 110.25, "vae/kl_divergence": 20.25}


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_line_tells_images_speed_losses_memory_and_time_left_on_one_line(monkeypatch) -> None:
    clock = iter([0.0, 10.0, 10.0, 10.0])
    monkeypatch.setattr(status.time, "monotonic", lambda: next(clock))
    out = io.StringIO()
    line = StatusLine(0, 3000, 64, out)
    line.show(1300, LOSSES)
    line.keep(1300, LOSSES)
    told = out.getvalue()
    for words in ("step 1300/3000", "83.2k images, 8,320/s", "generator/loss 0.8123", "iB", "13s left"):
        assert words in told
    assert "epoch" not in told and told.count("\n") == 1 and len(told) <= 160


@pytest.mark.parametrize(
    ("metrics", "words"),
    [
        (LOSSES, ["discriminator/loss 1.2346, accuracy 62.5%", "generator/loss 0.8123, accuracy 31.2%"]),
        (TERMS, ["vae/loss 130.5000, reconstruction 110.2500, kl_divergence 20.2500"]),
        ({"timing/images_per_second": 3.0}, []),
    ],
)
def test_players_tells_losses_accuracies_and_terms_and_nothing_else(metrics, words) -> None:
    assert players(metrics) == words


@pytest.mark.parametrize(
    ("step", "words"), [(0, "step 0/3000 | epoch 0.0/38.4 |"), (1300, "step 1300/3000 | epoch 16.6/38.4 |")]
)
def test_line_tells_the_epoch_where_the_number_of_examples_is_known(step, words) -> None:
    out = io.StringIO()
    StatusLine(0, 3000, 64, out, num_examples=5000).keep(step, LOSSES)
    assert out.getvalue().startswith(words)


def test_line_in_a_narrow_terminal_is_cut_where_it_is_redrawn_and_whole_where_it_stands(monkeypatch) -> None:
    monkeypatch.setattr(shutil, "get_terminal_size", lambda *_, **__: os.terminal_size((40, 24)))
    out = Terminal()
    line = StatusLine(0, 3000, 64, out)
    line.show(1300, LOSSES)
    assert len(out.getvalue().removeprefix("\r\x1b[K")) == 39
    line.keep(1300, LOSSES)
    assert out.getvalue().endswith(" left\n") and "generator/loss 0.8123" in out.getvalue()


@pytest.mark.parametrize(
    ("number", "words"),
    [(0, "0"), (9_999, "9,999"), (10_000, "10k"), (83_200, "83.2k"), (999_999, "1M"), (1_920_000, "1.92M")],
)
def test_short_says_a_count_in_three_digits(number, words) -> None:
    assert short(number) == words


@pytest.mark.parametrize(("count", "words"), [(2**20, "1 MiB"), (812 * 2**20, "812 MiB"), (2**30, "1.0 GiB")])
def test_size_says_bytes_in_the_unit_that_fits(count, words) -> None:
    assert size(count) == words


def test_memory_tells_that_of_this_process_and_of_the_fullest_gpu(monkeypatch) -> None:
    assert all(text.endswith("iB") for text in memory()) and len(memory()) <= 1
    devices = [type("Device", (), {"name": f"GPU:{index}"}) for index in range(2)]
    monkeypatch.setattr(status.tf.config, "list_logical_devices", lambda kind: devices)
    held = {"GPU:0": 2**20, "GPU:1": 3 * 2**30}
    monkeypatch.setattr(status.tf.config.experimental, "get_memory_info", lambda name: {"current": held[name]})
    assert memory()[-1] == "GPU 3.0 GiB"


def test_memory_of_a_device_that_keeps_no_count_is_left_out(monkeypatch) -> None:
    device = type("Device", (), {"name": "GPU:0"})
    monkeypatch.setattr(status.tf.config, "list_logical_devices", lambda kind: [device])

    def refuse(name: str) -> dict:
        raise ValueError("no count")

    monkeypatch.setattr(status.tf.config.experimental, "get_memory_info", refuse)
    assert not any("GPU" in text for text in memory())
