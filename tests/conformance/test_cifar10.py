"""The system for CIFAR-10 on a prepared data set of that name and shape, read by the code that reads the real one."""

import json

import numpy as np
import pytest

from pipeline import api, configs


@pytest.mark.slow
def test_cwgan_gp_cifar10_trains_resumes_and_samples_on_colour_images(store, tmp_path) -> None:
    generator = np.random.default_rng(0)
    labels = [index % 10 for index in range(40)]
    # A colour for each class, so that labels and channels that went astray would show.
    colours = generator.integers(30, 220, (10, 1, 1, 3))
    images = [np.clip(colours[label] + generator.integers(-30, 30, (32, 32, 3)), 0, 255) for label in labels]
    folder = store("cifar10", [image.astype(np.uint8) for image in images], shape=(32, 32, 3), labels=labels)
    params = [
        "GLOBAL_BATCH_SIZE = 8",
        "LATENT_DIM = 4",
        "gan.alternating.discriminator_repeats = 2",
        f"tfds_source.TFDSSource.data_dir = {folder!r}",
    ]

    def train(steps: int, name: str):
        return api.train(["cwgan_gp_cifar10.gin"], [*params, f"TRAIN_STEPS = {steps}"], workdir=tmp_path / name)

    whole = train(2, "whole")
    assert whole.exit_status == 0
    manifest = json.loads((tmp_path / "whole" / "manifest.json").read_text())
    assert (manifest["data"]["name"], manifest["data"]["notice"]) == ("cifar10", "")
    assert manifest["data"]["image_shape"] == [32, 32, 3]
    assert whole.run.sampler.sample(11, seed=0).shape == (11, 32, 32, 3)
    row = next(iter(whole.run.batches()))["image"]  # the next step's data: real ones, of all three channels
    assert row.shape == (8, 32, 32, 3) and len({float(value) for value in np.mean(row, axis=(0, 1, 2))}) == 3
    train(1, "cut")
    cut = train(2, "cut")
    for name, network in whole.run.networks.items():
        for left, right in zip(network.variables, cut.run.networks[name].variables, strict=True):
            np.testing.assert_array_equal(left.numpy(), right.numpy(), err_msg=left.path)


def test_cwgan_gp_cifar10_asks_for_cifar10_and_for_nothing_in_its_place() -> None:
    values = {f"{one.part}.{one.name}": one.value for one in configs.parse(["cwgan_gp_cifar10.gin"]).settings()}
    assert values["tfds_source.TFDSSource.name"] == "'cifar10'"
    assert values["tfds_source.TFDSSource.substitute"] == "None"
