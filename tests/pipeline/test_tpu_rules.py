"""What a TPU forbids is found in graphs and data on a machine that has none."""

from types import SimpleNamespace

import pytest
import tensorflow as tf
import toy_tpu
from toy_games import GAMES
from toy_parts import ToySource

from components.data_source.tfds_source import TFDSSource
from components.interfaces import Hardware, UserError
from components.stepper import strategy
from components.stepper.schedule import Schedule
from pipeline import api, tpu_rules

TINY = [
    "TRAIN_STEPS = 2",
    "GLOBAL_BATCH_SIZE = 8",
    "dcgan.generator.widths = (4, 4)",
    "dcgan.discriminator.widths = (4, 4)",
]
ON_TPU = "from components.stepper import strategy\nstrategy.select.name = 'tpu'"


def graph_of(function):
    wanted = tf.TensorSpec([3], tf.float32)
    return tf.function(function, autograph=False).get_concrete_function(wanted).graph


def as_string(x):
    return tf.strings.to_number(tf.as_string(x))


def in_a_branch(x):
    return tf.cond(x[0] > 0, lambda: as_string(x), lambda: x)


def in_a_loop_of_a_function(x):
    return tf.function(lambda: tf.while_loop(lambda y: y[0] > 0, lambda y: [as_string(y)], [x]))()[0]


def printed(x):
    with tf.control_dependencies([tf.print(x)]):
        return tf.identity(x)


@pytest.mark.parametrize(
    ("function", "kinds"),
    [
        (lambda x: tf.py_function(lambda y: y, [x], tf.float32), ["EagerPyFunc (tf.py_function)"]),
        (lambda x: tf.numpy_function(lambda y: y, [x], tf.float32), ["PyFunc (tf.numpy_function)"]),
        (as_string, ["AsString (tf.as_string)", "StringToNumber"]),
        (in_a_branch, ["AsString (tf.as_string)", "StringToNumber"]),
        (in_a_loop_of_a_function, ["AsString (tf.as_string)", "StringToNumber"]),
        (lambda x: tf.io.decode_jpeg(tf.constant(b"")), ["DecodeJpeg"]),
        (printed, ["StringFormat (tf.print)", "PrintV2 (tf.print)"]),
        (lambda x: tf.unique(x)[0], ["Unique (tf.unique)"]),
        (lambda x: tf.where(x > 0), ["Where (boolean_mask"]),
        (lambda x: x[: tf.cast(x[0], tf.int32)], ["StridedSlice (a size that is itself a tensor)"]),
        (lambda x: tf.range(x[0]), ["Range (a size that is itself a tensor)"]),
    ],
)
def test_operation_that_no_tpu_has_is_found_with_its_line(function, kinds) -> None:
    found = [str(breach) for breach in tpu_rules.breaches(graph_of(function))]
    assert len(found) == len(kinds)
    for breach, kind in zip(found, kinds, strict=True):
        assert kind in breach and __file__ in breach


def test_operations_that_a_tpu_has_are_let_pass() -> None:
    def allowed(x):
        tf.debugging.assert_greater(x, 0.0, "a text that only an assertion holds")
        return tf.where(x > 0, x, 0.0), tf.sort(x), x[1:], tf.shape(x), tf.random.stateless_normal([3], [1, 2])

    assert tpu_rules.breaches(graph_of(allowed)) == []


@pytest.mark.parametrize(
    "game", ["alternating", *(pytest.param(game, marks=pytest.mark.slow) for game in ("penalised", "augmented"))]
)
def test_toy_games_break_no_rule_in_the_rehearsal_nor_in_the_whole_step(game) -> None:
    stepper, _, _ = toy_tpu.toy_stepper(updates=GAMES[game]())
    stepper.rehearse()
    assert len(stepper.rehearsals) == len({call.updates for call in Schedule(GAMES[game]()).calls()})
    for graph in stepper.rehearsals:
        assert graph.get_operations() and tpu_rules.breaches(graph) == []
    program = stepper.replica_program(2).get_concrete_function()
    assert len(program.graph.get_operations()) > 100 and tpu_rules.breaches(program.graph) == []


def required(data, *, stepper=None, is_remote=False) -> None:
    here = tf.distribute.get_strategy()
    hardware = Hardware(strategy=here, accelerator="tpu", description="", meant_for_tpu=True, is_remote=is_remote)
    experiment = SimpleNamespace(global_batch_size=4)
    tpu_rules.require_fit(SimpleNamespace(stepper=stepper, hardware=hardware, experiment=experiment), data)


def test_network_of_a_dynamic_shape_is_refused_with_its_line() -> None:
    stepper, _, _ = toy_tpu.toy_stepper(discriminator=toy_tpu.with_unique)
    stepper.rehearse()
    with pytest.raises(UserError, match=r"meant for a TPU.*\n.*Unique \(tf.unique\), made at .*toy_tpu.py:\d+: values"):
        required(ToySource(), stepper=stepper)


class Ragged(ToySource):
    def batches(self, **options):
        return super().batches(**options).unbatch().batch(4)


class Named(ToySource):
    def batches(self, **options):
        return super().batches(**options).map(lambda batch: {**batch, "name": tf.as_string(batch["label"])})


@pytest.mark.parametrize(
    ("data", "words"), [(Ragged(), r"float32\(None, 4, 4, 1\) from Ragged"), (Named(), "'name': str")]
)
def test_batches_of_unknown_shape_or_of_text_are_refused(data, words) -> None:
    with pytest.raises(UserError, match=words):
        required(data)


class Streamed(ToySource):
    def __init__(self, file: str) -> None:
        super().__init__()
        self.streamed_files = [file]


def test_files_that_a_remote_tpu_cannot_read_are_refused() -> None:
    with pytest.raises(UserError, match="reads /data/train-0.tfrecord .*memory_budget_mb.*gs://"):
        required(Streamed("/data/train-0.tfrecord"), is_remote=True)
    required(Streamed("/data/train-0.tfrecord"), is_remote=False)
    required(Streamed("gs://bucket/train-0.tfrecord"), is_remote=True)
    required(ToySource(), is_remote=True)


def test_digits_are_streamed_only_where_they_do_not_fit_the_memory() -> None:
    assert TFDSSource(name="mnist_5k").streamed_files == []
    assert ".tfrecord" in TFDSSource(name="mnist_5k", memory_budget_mb=0).streamed_files[0]


def test_hardware_that_stands_in_for_a_tpu_says_so() -> None:
    assert strategy.select(name="tpu").meant_for_tpu
    assert not any(strategy.select(name=name).meant_for_tpu for name in ("auto", "one_device", "mirrored"))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("loss", "words"),
    [("through_python", "tf.py_function"), ("through_text", "AsString"), ("of_the_positive", "Where")],
)
def test_configuration_for_a_tpu_is_refused_by_a_dry_run_and_trains_as_one_for_a_cpu(loss, words, tmp_path) -> None:
    params = [*TINY, f"import toy_tpu\ngan.alternating.loss = @toy_tpu.{loss}"]
    with pytest.raises(UserError, match=f"(?s)meant for a TPU.*{words}.*toy_tpu.py"):
        api.dry_run(["quickstart"], [*params, ON_TPU], workdir=tmp_path)
    assert "ONE STEP" in api.dry_run(["quickstart"], params, workdir=tmp_path)


@pytest.mark.slow
def test_shipped_file_for_a_tpu_trains_on_what_there_is(tmp_path, capsys) -> None:
    tiny = ["TRAIN_STEPS = 2", "GLOBAL_BATCH_SIZE = 8", "tfds_source.TFDSSource.name = 'mnist_5k'"]
    assert api.train(["vae_tpu"], tiny, workdir=tmp_path / "run").run.step == 2
    assert "No TPU was found. Using this CPU" in capsys.readouterr().out
