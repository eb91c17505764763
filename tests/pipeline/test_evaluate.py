"""Scores in training, by mode evaluate and by a second process that watches: right, repeatable, and without a trace."""

import json
import random
import shutil
import threading
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from components.interfaces import Measurement, UserError
from pipeline import actions, api, configs, grid, launch
from pipeline.evaluate import evaluate, new_checkpoints, scored_run
from pipeline.evaluation_file import EvaluationFile, table
from pipeline.free_to_change import FREE_TO_CHANGE
from pipeline.run_folder import RunFolder
from pipeline.sample import restored
from tools import catalogue

TINY = [
    "TRAIN_STEPS = 2",
    "GLOBAL_BATCH_SIZE = 8",
    "LATENT_DIM = 3",
    "dcgan.generator.widths = (2, 2)",
    "dcgan.discriminator.widths = (2, 2)",
    "experiment.Experiment.steps_per_loop = 1",
    "experiment.Experiment.save_every = 1",
]
SCORED = [
    "experiment.Experiment.evaluate_every = 1",
    "classifier.Classifier.train_steps = 1",
    "sample_evaluator.SampleEvaluator.num_real = 60",
    "neighbours.PrecisionRecall.k = 2",
]

HEARD = [
    "from components.watch import quality_watch",
    "experiment.Experiment.watch = @quality_watch.QualityWatch",
    "quality_watch.QualityWatch.metric = 'evaluation/frechet_distance'",
    "tf_checkpointer.TFCheckpointer.best_metric = 'evaluation/frechet_distance'",
]


@pytest.fixture(scope="module", autouse=True)
def cache(tmp_path_factory):
    """Keep the classifiers of this module."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="module")
def trained(tmp_path_factory) -> launch.Summary:
    """Return what came of a tiny training that is scored at every step."""
    return api.train(["quickstart"], [*TINY, *SCORED, *HEARD], workdir=tmp_path_factory.mktemp("run") / "run")


def call(folder: Path, **changed) -> int:
    options = {"checkpoint": "latest", "gin_param": [], "watch": False, "best_by": "frechet_distance"}
    return evaluate(str(folder), **{**options, **changed})


def entries(folder: Path) -> list[dict]:
    return json.loads((folder / "evaluation.json").read_text())["evaluations"]


def measurement(value: float = 1.0, better="lower", **certificate) -> Measurement:
    facts = {"weights": "as trained", "num_real": 9, "data": "toy", "split": "train", "seeds": [0, 1, 2]}
    return Measurement(value=value, spread=0.5, real=None, better=better, certificate={**facts, **certificate})


@pytest.mark.slow
def test_scores_in_training_are_told_to_the_writers_and_kept_with_certificates(trained) -> None:
    lines = [json.loads(line) for line in (trained.workdir / "metrics.jsonl").read_text().splitlines()]
    told = {
        line["step"]: line["evaluation/frechet_distance"] for line in lines if "evaluation/frechet_distance" in line
    }
    kept = {one["step"]: one["metrics"]["frechet_distance"] for one in entries(trained.workdir)}
    assert told == {step: one["value"] for step, one in kept.items()} and list(told) == [1, 2]
    certificate = kept[2]["certificate"]
    assert certificate["checkpoint_step"] == 2 and certificate["split"] == "train"
    assert certificate["weights"] == "moving averages of generator"
    assert kept[2]["real_against_real"] < kept[2]["value"]


@pytest.mark.slow
def test_run_that_is_scored_has_the_bits_of_one_that_is_not(trained, tmp_path) -> None:
    random.seed(5)
    np.random.seed(5)
    tf.random.set_seed(5)
    plain = api.train(["quickstart"], TINY, workdir=tmp_path / "plain").run
    expected = (random.getstate(), np.random.get_state()[1].tolist(), tf.random.uniform([2]).numpy().tolist())
    random.seed(5)
    np.random.seed(5)
    tf.random.set_seed(5)
    scored = api.train(["quickstart"], [*TINY, *SCORED], workdir=tmp_path / "scored").run
    found = (random.getstate(), np.random.get_state()[1].tolist(), tf.random.uniform([2]).numpy().tolist())
    assert found == expected
    for name, variables in {**plain.stepper.state(), **plain.networks}.items():
        others = {**scored.stepper.state(), **scored.networks}[name]
        left, right = (getattr(one, "variables", one) for one in (variables, others))
        for one, other in zip(left, right, strict=True):
            np.testing.assert_array_equal(np.asarray(one.numpy()), np.asarray(other.numpy()))


@pytest.mark.slow
def test_mode_evaluate_gives_the_numbers_of_the_training_and_the_same_again(trained, capsys) -> None:
    before = (trained.workdir / "evaluation.json").read_bytes()
    assert call(trained.workdir) == call(trained.workdir, checkpoint="1") == 0
    assert (trained.workdir / "evaluation.json").read_bytes() == before
    out = capsys.readouterr().out
    assert "Step 2, weights moving averages of generator: 60 generated against 60 real images of mnist_5k" in out
    assert "Step 1, " in out and "one half of the real images against the other" in out


@pytest.mark.slow
def test_other_settings_and_the_best_checkpoint_are_kept_beside(trained, capsys) -> None:
    known = len(entries(trained.workdir))
    params = [
        "sample_evaluator.SampleEvaluator.metrics = [@frechet.FrechetDistance()]",
        "sample_evaluator.SampleEvaluator.seeds = (3, 4, 5, 6)",
    ]
    kept = EvaluationFile(trained.workdir / "evaluation.json")
    best, _ = kept.best("precision")
    call(trained.workdir, checkpoint="best", best_by="precision", gin_param=params)
    (new,) = [one for one in entries(trained.workdir) if len(one["metrics"]) == 1]
    assert new["step"] == best and len(entries(trained.workdir)) == known + 1
    assert len(new["metrics"]["frechet_distance"]["certificate"]["value_of_each_seed"]) == 4


@pytest.mark.slow
def test_files_and_tensors_score_alike(trained, tmp_path) -> None:
    _, evaluator, _ = scored_run(RunFolder(trained.workdir), [])
    images = trained.run.sampler.sample(20, seed=0)
    labels = np.arange(20, dtype=np.int32) % 10
    grid.write(images, labels.tolist(), tmp_path / "png", columns=10)
    files = [tf.io.decode_png(path.read_bytes()).numpy() for path in sorted((tmp_path / "png").iterdir())]
    extract = evaluator._reference.extractor
    np.testing.assert_array_equal(extract(np.stack(files), labels).features, extract(images, labels).features)


@pytest.mark.slow
def test_run_without_an_evaluator_is_scored_by_the_default(trained, tmp_path, capsys) -> None:
    folder = tmp_path / "old"
    folder.mkdir()
    for name in ("manifest.json", "checkpoints"):
        (folder / name).symlink_to(trained.workdir / name)
    config = configs.parse([str(trained.workdir / "config.gin")])
    config.experiment()
    blocks = config.operative_text().split("\n\n")
    ours = ("components.evaluator", "evaluator = @", "evaluate_every")
    kept = [block for block in blocks if not block.startswith(("sample_evaluator.", "neighbours.", "classifier."))]
    lines = [line for line in "\n\n".join(kept).splitlines() if not any(word in line for word in ours)]
    (folder / "config.gin").write_text("\n".join(lines) + "\n")
    call(folder, gin_param=SCORED[1:])
    assert "names no evaluator: that of base/evaluation.gin is used" in capsys.readouterr().out
    (found,) = entries(folder)
    assert found in entries(trained.workdir)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"checkpoint": "7"}, "There are: 1, 2"),
        ({"checkpoint": "first"}, "'latest', 'best' or a step"),
        ({"checkpoint": "best", "best_by": "beauty"}, "must be a metric.*'beauty'; there are frechet_distance"),
        ({"checkpoint": "best", "best_by": "kernel_distance_spread"}, "must be a metric"),
        (
            {"watch": True, "best_by": "beauty"},
            "must be a metric of the evaluation. Received 'beauty'; there are frechet",
        ),
        ({"gin_param": ["sample_evaluator.SampleEvaluator.metrics = []"]}, "must hold one"),
        ({"checkpoint": "1", "watch": True}, "takes each new checkpoint"),
        (
            {"gin_param": ["experiment.Experiment.evaluator = None", "experiment.Experiment.evaluate_every = None"]},
            "needs an evaluator. Received `Experiment.evaluator = None`",
        ),
    ],
)
def test_evaluation_that_cannot_be_made_is_refused(trained, changed, words) -> None:
    with pytest.raises(UserError, match=words):
        call(trained.workdir, **changed)


@pytest.mark.slow
def test_best_checkpoint_and_watch_hear_of_scores_in_training(trained) -> None:
    name = "evaluation/frechet_distance"
    lines = [json.loads(line) for line in (trained.workdir / "metrics.jsonl").read_text().splitlines()]
    told = {line["step"]: line[name] for line in lines if name in line}
    best = trained.run.checkpointer.best
    assert (best.step, best.value) == min(told.items(), key=lambda pair: pair[1])
    assert restored(RunFolder(trained.workdir), "best").step == best.step
    notes = json.loads((trained.workdir / "checkpoints" / "step-000000002" / "notes.json").read_text())
    assert notes["remembered"]["watch"]["values"] == list(told.values())


@pytest.mark.slow
def test_score_that_never_comes_is_refused_where_something_waits_for_it(tmp_path) -> None:
    waits = "tf_checkpointer.TFCheckpointer.best_metric = 'evaluation/{}'"
    with pytest.raises(UserError, match="must be a metric of this run. Received 'evaluation/frechet_distance'"):
        api.build(["quickstart"], [*TINY, waits.format("frechet_distance")], workdir=tmp_path)
    with pytest.raises(UserError, match="Did you mean `evaluation/frechet_distance`"):
        api.build(["quickstart"], [*TINY, *SCORED, waits.format("frechet_distence")], workdir=tmp_path)


def test_folder_without_a_run_is_refused(tmp_path) -> None:
    with pytest.raises(UserError, match="must name the folder of a run"):
        call(tmp_path)


# --- watching --------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_watch_scores_every_checkpoint_of_a_finished_run_and_names_the_best(trained, capsys) -> None:
    assert call(trained.workdir, watch=True, best_by="frechet_distance") == 0
    out = capsys.readouterr().out
    assert out.index("Step 1, ") < out.index("Step 2, ") < out.index("The training has ended. Best by frechet_distance")


class FakeCheckpoints:
    """Checkpoints that come and go."""

    def __init__(self, *looks: list[int], damaged: int = -1) -> None:
        self.looks, self.damaged, self.restored = list(looks), damaged, []

    def steps(self) -> list[int]:
        return self.looks.pop(0) if len(self.looks) > 1 else self.looks[0]

    def restore(self, step: int) -> None:
        if step == self.damaged or step not in self.looks[0]:
            raise UserError(f"There is no whole checkpoint of step {step}.")
        self.restored.append(step)


class Toy:
    """A run and its folder for `new_checkpoints`."""

    def __init__(self, checkpointer: FakeCheckpoints, last: int, training: list[bool]) -> None:
        self.checkpointer, self.experiment, self.train_steps = checkpointer, self, last
        self._training = training

    def is_in_training(self) -> bool:
        return self._training.pop(0) if len(self._training) > 1 else self._training[0]


def watched(checkpoints: FakeCheckpoints, last: int = 9, training: tuple[bool, ...] = (True,), most: int = 20):
    toy, waits = Toy(checkpoints, last, list(training)), []

    def wait() -> None:
        waits.append(1)
        assert len(waits) < most, "it does not end"

    return list(new_checkpoints(toy, toy, wait)), len(waits)


def test_watch_ends_when_the_last_step_is_scored_or_the_training_was_stopped() -> None:
    assert watched(FakeCheckpoints([1], [1], [1, 5], [1, 5, 9])) == ([1, 5, 9], 1)
    assert watched(FakeCheckpoints([1, 5]), training=(True, True, True, False))[0] == [1, 5]


def test_watch_of_a_run_that_saves_and_ends_between_two_looks_misses_nothing() -> None:
    # It is still training at the first look, and has saved step 5 and ended before the second.
    assert watched(FakeCheckpoints([1], [1, 5]), training=(True, False))[0] == [1, 5]


def test_watch_passes_over_what_is_dropped_and_what_is_damaged(capsys) -> None:
    assert watched(FakeCheckpoints([1, 2, 3], [2, 3], [2, 3, 9], damaged=2), last=9)[0] == [3, 9]
    out = capsys.readouterr().out
    assert "Step 1 was dropped" in out and "no whole checkpoint of step 2" in out


def test_folder_is_in_training_while_the_lock_is_held_and_asking_takes_none(tmp_path) -> None:
    folder = RunFolder(tmp_path)
    assert not folder.is_in_training()
    with folder.locked():
        assert RunFolder(tmp_path).is_in_training()
    assert not folder.is_in_training()
    holder = {"pid": 2**22 + 1, "host": __import__("socket").gethostname(), "since": ""}
    (tmp_path / "run.lock").write_text(json.dumps(holder))  # a killed process left it behind
    assert not folder.is_in_training()
    (tmp_path / "run.lock").write_text("")  # somebody has only just taken it
    assert folder.is_in_training()


@pytest.mark.slow
def test_watch_beside_a_training_scores_what_it_saves(trained, tmp_path) -> None:
    folder = tmp_path / "run"
    (folder / "checkpoints").mkdir(parents=True)
    for name in ("config.gin", "manifest.json"):
        (folder / name).write_bytes((trained.workdir / name).read_bytes())
    lock, done = RunFolder(folder), []
    with lock.locked():
        watching = threading.Thread(target=lambda: done.append(call(folder, watch=True)))
        watching.start()
        for source in sorted((trained.workdir / "checkpoints").glob("step-*")):
            shutil.copytree(source, folder / "checkpoints" / "writing")
            (folder / "checkpoints" / "writing").rename(folder / "checkpoints" / source.name)
        watching.join(100)
    assert done == [0]
    expected = [one for one in entries(trained.workdir) if len(one["metrics"]) > 1]
    assert entries(folder) == expected


# --- parts -----------------------------------------------------------------------------------------------------------


def test_evaluation_file_keeps_steps_in_order_and_names_the_best(tmp_path) -> None:
    kept = EvaluationFile(tmp_path / "evaluation.json")
    assert kept.entries() == []
    for step, distance, precision in ((4, 2.0, 0.5), (2, 3.0, 0.9), (6, 2.0, 0.1)):
        kept.add(step, {"distance": measurement(distance), "precision": measurement(precision, "higher")})
    assert [one["step"] for one in kept.entries()] == [2, 4, 6]
    assert kept.best("distance") == (4, 2.0) and kept.best("precision") == (2, 0.9)
    assert kept.best("distance", among=[2, 6]) == (6, 2.0)
    kept.add(4, {"distance": measurement(9.0), "precision": measurement(0.5, "higher")})
    assert len(kept.entries()) == 3 and kept.best("distance") == (6, 2.0)
    kept.add(4, {"distance": measurement(1.0, num_real=8)})
    assert len(kept.entries()) == 4 and kept.best("distance") == (6, 2.0)


def test_best_compares_only_what_was_measured_in_the_same_way(tmp_path) -> None:
    kept = EvaluationFile(tmp_path / "evaluation.json")
    for step, distance, count in ((1, 17.5, 2000), (2, 5.2, 2000), (2, 48.6, 40), (3, 4.0, 40)):
        kept.add(step, {"distance": measurement(distance, num_real=count, checkpoint_step=step)})
    kept.add(4, {"distance": measurement(0.1, num_real=2000, extractor="another")})
    assert kept.best("distance", among=[1, 2, 4]) == (2, 5.2)
    assert kept.best("distance") == (3, 4.0)  # of ways with as many steps, that of the latest
    asked = {"distance": measurement(num_real=2000, checkpoint_step=9)}
    assert kept.best("distance", like=asked) == (2, 5.2)


def test_evaluation_file_that_is_damaged_or_empty_is_refused(tmp_path) -> None:
    kept = EvaluationFile(tmp_path / "evaluation.json")
    with pytest.raises(UserError, match="was evaluated"):
        kept.best("distance")
    (tmp_path / "evaluation.json").write_text('{"evaluations"')
    with pytest.raises(UserError, match="cannot be read"):
        kept.add(1, {"distance": measurement()})


def test_table_has_one_line_a_number(capsys) -> None:
    lines = table(3, {"distance": measurement(12.345), "share": measurement(0.0, None)}).splitlines()
    assert lines[0] == "Step 3, weights as trained: 9 real images of toy (train), seeds 0, 1, 2."
    assert lines[2].split() == ["distance", "12.35", "0.5000", "-", "lower"]
    assert lines[3].split() == ["share", "0.0000", "0.5000", "-", "-"]


def test_action_tells_every_listener_the_names_of_an_evaluation() -> None:
    class Fixed:
        def evaluate(self, step):
            return {"distance": measurement(float(step))}

    told: list = []
    listen = [lambda step, values, name=name: told.append((name, step, dict(values))) for name in "ab"]
    actions.evaluate(Fixed(), listen, lambda step, found: told.append(("kept", step)))(4, {"loss": 1.0})
    values = {"evaluation/distance": 4.0}
    assert told == [("kept", 4), ("a", 4, values), ("b", 4, values)]


def test_evaluate_every_without_an_evaluator_or_between_loops_is_refused() -> None:
    every = "experiment.Experiment.evaluate_every = {}"
    with pytest.raises(UserError, match="steps_per_loop` must divide `evaluate_every`"):
        configs.parse(["quickstart"], [every.format(30)]).experiment()
    with pytest.raises(UserError, match="needs an evaluator"):
        configs.parse(["quickstart"], [every.format(20), "experiment.Experiment.evaluator = None"]).experiment()


def test_every_setting_of_an_evaluation_may_change_when_a_run_goes_on() -> None:
    for part in catalogue.parts().values():
        if part.area == "evaluator" and hasattr(part.target, "better") or part.name.startswith("sample_evaluator."):
            given = {"networks", "averaged", "sampler", "data", "updates"}
            for name in part.signature.parameters.keys() - given:
                assert f"{part.name}.{name}" in FREE_TO_CHANGE
    for part in ("classifier.Classifier", "keras_model.KerasModel", "inception_2015.Inception2015"):
        for name in catalogue.parts()[part].signature.parameters:
            assert f"{part}.{name}" in FREE_TO_CHANGE
