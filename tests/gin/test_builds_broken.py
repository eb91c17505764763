"""What only shows when the parts are built is refused too: before any step, with its line, and without a traceback."""

import pytest

from components.data_source.tfds_source import TFDSSource
from components.interfaces import UserError
from pipeline import api

ADAM = "generator/keras.optimizers.Adam"
DECAY = "keras.optimizers.schedules.PiecewiseConstantDecay"
SOURCE = "tfds_source.TFDSSource"
NETWORKS = "experiment.Experiment.networks"
IMPORT = "from components.loss_library import penalties"
PENALTY = "from components.loss_library import penalties\ngan.alternating.penalties = [@penalties.r1]\n"

# gin file; lines added on the command line; words that the message holds.
BROKEN = [
    ("quickstart", "keras.optimizers.Adam.learning_rate = 1e-1", ("--gin_param:1", "override wherever it applies")),
    ("quickstart", "interfaces.Player.optimizer = @keras.optimizers.SGD", ("--gin_param:1", "override wherever")),
    ("quickstart", "gan.alternating.loss = @adversarial.tf.exp", ("--gin_param:1", "`exp`")),
    ("quickstart", "gan.alternating.loss = @keras.losses.binary_crossentropy", ("--gin_param:1", "PlayerLosses")),
    ("quickstart", "gan.alternating.loss = @keras.losses.BinaryCrossentropy()", ("--gin_param:1", "PlayerLosses")),
    ("quickstart", "TRAIN_STEPS = 99999999999999999999999", ("--gin_param:1", "64 bits")),
    ("quickstart", "TRAIN_STEPS = @dcgan.generator", ("--gin_param:1", "takes int")),
    ("quickstart", "gan.alternating.first = @generator/interfaces.Player()", ("--gin_param:1", "gives Player")),
    ("quickstart", f"{ADAM}.learning_rate = 1e999", ("--gin_param:1", "finite")),
    ("quickstart", f"{ADAM}.learning_rate = {'9' * 60}", ("--gin_param:1",)),
    ("quickstart", f"{ADAM}.name = 5", ("--gin_param:1", "name")),
    ("quickstart", f"{ADAM}.clipnorm = 1.0\n{ADAM}.clipvalue = 1.0", ("--gin_param:1", "--gin_param:2")),
    ("quickstart", f"{ADAM}.gradient_accumulation_steps = 2", ("--gin_param:1", "accumulate")),
    ("quickstart", f"{ADAM}.use_ema = True", ("--gin_param:1", "ema_decay")),
    ("quickstart", "generator/interfaces.Player.optimizer = @keras.optimizers.Optimizer", ("`Optimizer`",)),
    ("quickstart", "generator/interfaces.Player.networks = ('generator', 'generator')", ("--gin_param:1", "once")),
    (
        "quickstart",
        f"{ADAM}.learning_rate = @{DECAY}()\n{DECAY}.boundaries = [10, 50]\n{DECAY}.values = [1e-3, 1e-4]",
        ("--gin_param:3", "boundaries"),
    ),
    ("quickstart", PENALTY + "penalties.r1.weight = 1e999", ("--gin_param:3", "finite")),
    ("quickstart", "gan.alternating.penalties = @penalties.r1\n" + IMPORT, ("--gin_param:1", "[@penalties.r1]")),
    (
        "quickstart",
        "gan.alternating.loss = @adversarial.hinge\nadversarial.non_saturating.label_smoothing = 0.1",
        ("--gin_param:2", "never called"),
    ),
    (
        "quickstart",
        f"generator/interfaces.Player.optimizer = @generator/keras.optimizers.SGD\n{ADAM}.learning_rate = 1e-1",
        ("--gin_param:2", "never called"),
    ),
    ("quickstart", "dcgan.generator.latent_dim = 4", ("LATENT_DIM", "nothing")),
    (
        "quickstart",
        "gan.alternating.discriminator = @generator/interfaces.Player()",
        ("--gin_param:1", "never share one", "@discriminator/interfaces.Player()"),
    ),
    (
        "quickstart",
        "P = @generator/interfaces.Player()\ngan.alternating.generator = %P\ngan.alternating.discriminator = %P",
        ("--gin_param:3", "never share one"),
    ),
    ("quickstart", "SEED = 1180591620717411303424", ("--gin_param:1", "less than")),
    ("quickstart", f"{ADAM}.learning_rate = @strategy.select", ("--gin_param:1", "learning_rate")),
    ("quickstart", f"{ADAM}.learning_rate = @keras.optimizers.Adam()", ("--gin_param:1", "learning_rate")),
    ("quickstart", f"{ADAM}.learning_rate = 1", ("--gin_param:1", "Write 1.0")),
    ("quickstart", f"{ADAM}.learning_rate = %TRAIN_STEPS", ("learning_rate", "float")),
    ("quickstart", "experiment.Experiment.updates = [@gan.alternating()]", ("--gin_param:1", "off the brackets")),
    ("quickstart", "dcgan.generator.widths = 64", ("--gin_param:1", "Sequence[int (> 0)]")),
    (
        "quickstart",
        IMPORT + "\ngan.alternating.loss = @penalties.wgan_gp",
        ("--gin_param:2", "\n  Name a part of that kind."),
    ),
    ("quickstart", "gan.alternating.penalty_every = 4", ("--gin_param:1", "without any")),
    ("quickstart", "gan.alternating.class_weight = 1.0", ("--gin_param:1", "class_logits")),
    ("quickstart", "dcgan.generator.widths = ()", ("--gin_param:1", "at least 1")),
    ("quickstart", f"{NETWORKS} = {{'generator': @dcgan.generator}}", ("--gin_param:1", "'discriminator'")),
    (
        "quickstart",
        f"{NETWORKS} = {{'generator': @dcgan.discriminator, 'discriminator': @dcgan.generator}}",
        ("--gin_param:1", "latents"),
    ),
    (
        "quickstart",
        f"{NETWORKS} = {{'generator': @dcgan.generator, 'discriminator': @dcgan.generator}}",
        ("--gin_param:1", "logits"),
    ),
    (
        "quickstart",
        f"{NETWORKS} = {{'generator': @keras.Sequential, 'discriminator': @dcgan.discriminator}}",
        ("--gin_param:1", "Sequential"),
    ),
    (
        "quickstart",
        "experiment.Experiment.writers = [@metrics_file.MetricsFile, @metrics_file.MetricsFile]",
        ("--gin_param:1", "twice"),
    ),
    (
        "quickstart",
        "experiment.Experiment.previews = {'samples': @class_montage.class_montage()}",
        ("--gin_param:1", "Leave off the parentheses"),
    ),
    ("quickstart", f"{SOURCE}.name = 'minst_5k'", ("--gin_param:1", "mnist_5k")),
    ("quickstart", f"{SOURCE}.split = 'trian'", ("--gin_param:1", "train")),
    ("quickstart", f"{SOURCE}.split = 'train[:0]'", ("--gin_param:1", "hold an example")),
    ("quickstart", f"{SOURCE}.memory_budget_mb = -1", ("--gin_param:1", "at least 0")),
    ("quickstart", f"{SOURCE}.data_dir = '/dev/null'", ("--gin_param:1", "a folder")),
    ("quickstart", f"{SOURCE}.substitute = 'mnist_5kk'", ("--gin_param:1", "mnist_5k")),
    ("quickstart", f"{SOURCE}.image_size = (30, 30)", ("multiples of 4", "(32, 32)")),
    ("quickstart", f"{SOURCE}.label_key = 'image'", ("--gin_param:1", "label_key")),
    ("acgan", "gan.simultaneous.class_weight = 0.0", ("--gin_param:1", "class_weight")),
    ("cgan", "history_picture.HistoryPicture.preview = 'sampels'", ("--gin_param:1", "'sampels'; there are samples")),
    (
        "vae_tpu",
        f"from components.model_zoo import dcgan\n{NETWORKS} = {{'vae': @dcgan.generator}}",
        ("--gin_param:2", "encoder"),
    ),
]


@pytest.fixture(scope="module", autouse=True)
def _data_are_prepared() -> None:
    assert TFDSSource(name="mnist_5k").spec.num_examples == 5000


def test_all_faults_are_told_at_once_though_some_hide_names(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    lines = [
        "gan.alternating.los = @adversarial.hinge",
        "gan.alternating.loss = @adversarial.hing",
        "gan.alternating.same_latents = 1",
        "TRAIN_STEP = 4",
        "foo = 3",
        "import nope_mod",
        "gan.alternating.accumulate = 2.5",
    ]
    with pytest.raises(UserError) as caught:
        api.dry_run(["quickstart"], ["\n".join(lines)])
    for number, line in enumerate(lines, 1):
        assert f"--gin_param:{number}: " in str(caught.value), line


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("import sys\nsys.exit(0)\n", "SystemExit"),
        ("def f(:\n    pass\n", "SyntaxError"),
        ("x = 1\ny = x / 0\n", "ZeroDivisionError"),
        ("raise KeyError('x')\n", "KeyError"),
    ],
)
def test_module_that_fails_is_told_with_both_lines(content, words, tmp_path, monkeypatch) -> None:
    (tmp_path / f"u_{words.lower()}.py").write_text(content)
    monkeypatch.syspath_prepend(str(tmp_path))
    name = f"u_{words.lower()}"
    with pytest.raises(UserError) as caught:
        api.dry_run(["quickstart"], [f"import {name}\ngan.alternating.loss = @{name}.f"])
    message = str(caught.value)
    assert words in message and "--gin_param:1" in message and f"{name}.py:" in message


def test_line_of_a_fault_is_that_of_an_editor_whatever_else_ends_lines(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    odd = "# a\u2028b\x0cc\x85d"
    text = f"from __gin__ import dynamic_registration\n{odd}\nfrom components.objectives import gan\n"
    (tmp_path / "odd.gin").write_text(text + "include 'quickstart.gin'\ngan.alternating.same_latens = True\n")
    with pytest.raises(UserError) as caught:
        api.dry_run(["odd.gin"])
    assert "odd.gin:5: " in str(caught.value) and "    gan.alternating.same_latens = True" in str(caught.value)


@pytest.mark.parametrize(("name", "lines", "words"), BROKEN, ids=[row[1].splitlines()[-1][:70] for row in BROKEN])
def test_build_of_what_does_not_fit_is_refused_with_its_line(name, lines, words, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    small = ["LATENT_DIM = 4", "GLOBAL_BATCH_SIZE = 8"]
    with pytest.raises(UserError) as caught:
        api.dry_run([name], [lines, *small], workdir=tmp_path / "run")
    for word in words:
        assert word in str(caught.value), str(caught.value)
    assert not list(tmp_path.iterdir()), "nothing is written"
