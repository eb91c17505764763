"""Losses x penalties x conditioning x updates: every pair of choices takes a step together with finite numbers.

The choices are those that tools/list_components prints, so a new loss, penalty or way of conditioning enters by itself.
"""

import itertools
import typing

import numpy as np
import pytest

from components.model_zoo.discriminator_conditioning import DiscriminatorConditioning
from components.model_zoo.generator_conditioning import GeneratorConditioning
from pipeline import api
from tools import catalogue

PARTS = catalogue.parts()
SLOTS = {slot.name: slot for slot in catalogue.slots(PARTS)}
UPDATES = ("gan.alternating", "gan.simultaneous", "latent_consistency")
SMALL = """
from components.model_zoo import dcgan
from components.objectives import gan
tfds_source.TFDSSource.image_size = (8, 8)
experiment.Experiment.networks = {'generator': @dcgan.generator, 'discriminator': @dcgan.discriminator}
dcgan.generator.latent_dim = %LATENT_DIM
dcgan.generator.widths = (4,)
dcgan.discriminator.widths = (4,)
"""


def fitting(slot: str) -> list[str]:
    return [fit.value.strip("[]@") for fit in SLOTS[slot].fits]


CHOICES = {
    "loss": fitting("gan.alternating.loss"),
    "penalty": ["none", *fitting("gan.alternating.penalties")],
    "augmentation": ["none", *fitting("gan.alternating.augmentations")],
    "into_generator": list(typing.get_args(GeneratorConditioning)),
    "into_discriminator": list(typing.get_args(DiscriminatorConditioning)),
    "updates": list(UPDATES),
}


def pairwise(choices: dict[str, list[str]]) -> list[dict[str, str]]:
    """Return few combinations in which every two choices of different kinds meet, by greedy covering."""
    kinds = sorted(choices, key=lambda kind: -len(choices[kind]))
    uncovered = {
        frozenset({(a, x), (b, y)}) for a, b in itertools.combinations(kinds, 2) for x in choices[a] for y in choices[b]
    }
    rows = []
    while uncovered:
        row = dict(sorted(min(uncovered, key=sorted)))
        for kind in kinds:
            if kind not in row:
                meets = {x: sum(frozenset({(kind, x), p}) in uncovered for p in row.items()) for x in choices[kind]}
                row[kind] = max(meets, key=lambda x: meets[x])
        uncovered -= {frozenset(pair) for pair in itertools.combinations(row.items(), 2)}
        rows.append(row)
    return rows


def lines(row: dict[str, str]) -> list[str]:
    """Return the gin lines of a combination."""
    objective = "gan.alternating" if row["updates"] == "latent_consistency" else row["updates"]
    gin = [SMALL, PARTS[row["loss"]].import_line, f"{objective}.loss = @{row['loss']}"]
    for kind, parameter in (("penalty", "penalties"), ("augmentation", "augmentations")):
        if row[kind] != "none":
            gin += [PARTS[row[kind]].import_line, f"{objective}.{parameter} = [@{row[kind]}]"]
    gin.append(f"dcgan.generator.conditioning = '{row['into_generator']}'")
    gin.append(f"dcgan.discriminator.conditioning = '{row['into_discriminator']}'")
    if row["into_discriminator"] == "auxiliary_classifier":
        gin.append(f"{objective}.class_weight = 1.0")
    if row["updates"] == "latent_consistency":
        gin.append("from components.objectives import latent_consistency")
        gin.append("experiment.Experiment.updates = @latent_consistency.latent_consistency()")
        gin.append("latent_consistency.latent_consistency.updates = @gan.alternating()")
    return gin


def base(row: dict[str, str]) -> str:
    return "base/simultaneous_gan.gin" if row["updates"] == "gan.simultaneous" else "base/alternating_gan.gin"


def test_choices_are_those_of_the_issue() -> None:
    assert {"adversarial.hinge", "adversarial.relativistic_average"} <= set(CHOICES["loss"])
    wanted = {"penalties.wgan_gp", "penalties.dragan", "penalties.r1", "regularizers.lecam"}
    assert wanted | {"consistency.balanced_consistency"} <= set(CHOICES["penalty"])
    assert {"diff_augment.color", "diff_augment.cutout"} <= set(CHOICES["augmentation"])


def test_rows_hold_every_pair() -> None:
    rows = pairwise(CHOICES)
    for (one, first), (other, second) in itertools.combinations(CHOICES.items(), 2):
        for x, y in itertools.product(first, second):
            assert any(row[one] == x and row[other] == y for row in rows)


@pytest.mark.slow
@pytest.mark.parametrize("row", pairwise(CHOICES), ids=lambda row: "-".join(row.values()))
def test_combination_takes_a_step_with_finite_numbers(row, tmp_path) -> None:
    macros = ["TRAIN_STEPS = 1", "GLOBAL_BATCH_SIZE = 4", "LATENT_DIM = 3"]
    run = api.build([base(row), "data/mnist_5k.gin"], ["\n".join(lines(row)), *macros], workdir=tmp_path)
    before = {name: network.get_weights() for name, network in run.networks.items()}
    metrics = run.stepper.run(run.batches(), 1)
    assert metrics and all(np.isfinite(float(value)) for value in metrics.values()), metrics
    for name, network in run.networks.items():
        after = network.get_weights()
        assert all(np.isfinite(weight).all() for weight in after), name
        assert any(not np.array_equal(a, b) for a, b in zip(before[name], after, strict=True)), f"{name} did not move"
