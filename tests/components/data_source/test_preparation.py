import concurrent.futures
import os
import shutil

import numpy as np
import pytest
import requests
import tensorflow_datasets as tfds

from components.data_source import network, preparation
from components.interfaces import UserError


def prepared(name: str, folder, *, download: bool = True) -> tfds.core.DatasetBuilder:
    return preparation.prepared_builder(name, data_dir=str(folder), download=download)


@pytest.fixture
def mnist_examples(monkeypatch):
    """Return a function that sets what the download of `mnist` yields, without any network."""

    def use(generate):
        cls = tfds.builder_cls("mnist")
        monkeypatch.setattr(network, "unreachable", lambda urls: "")
        monkeypatch.setattr(cls, "_split_generators", lambda self, manager: {"train": generate()})

    return use


def test_prepared_builder_embedded_digits_need_no_network(tmp_path, no_network):
    builder = prepared("mnist_5k", tmp_path, download=False)
    assert builder.info.splits["train"].num_examples == 5000
    assert not no_network


def test_prepared_builder_second_time_prepares_nothing(digits_dir, no_network, monkeypatch):
    monkeypatch.setattr(tfds.core.DatasetBuilder, "download_and_prepare", None)
    assert prepared("mnist_5k", digits_dir).info.splits["train"].num_examples == 5000
    assert not no_network


def test_prepared_builder_two_at_once_prepare_once(tmp_path, monkeypatch):
    calls = []
    prepare = preparation._prepare
    monkeypatch.setattr(preparation, "_prepare", lambda builder: (calls.append(1), prepare(builder)))
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        builders = list(pool.map(lambda _: prepared("mnist_5k", tmp_path), range(2)))
    assert [b.info.splits["train"].num_examples for b in builders] == [5000, 5000]
    assert len(calls) == 1


def test_prepared_builder_without_locks_second_to_rename_ends_well(tmp_path, monkeypatch):
    monkeypatch.setattr(preparation, "fcntl", None)
    prepare = tfds.core.DatasetBuilder.download_and_prepare

    def beaten(builder, **kwargs):
        prepare(builder, **kwargs)
        raise OSError("Directory not empty")

    monkeypatch.setattr(tfds.core.DatasetBuilder, "download_and_prepare", beaten)
    assert prepared("mnist_5k", tmp_path).info.splits["train"].num_examples == 5000


def test_prepared_builder_folder_below_a_file_names_the_folder(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="file.*Bind `data_dir`"):
        prepared("mnist_5k", tmp_path / "file" / "data")


def test_prepared_builder_failure_to_write_is_one_error_and_leaves_nothing(tmp_path, monkeypatch):
    def full(self):
        yield 0, {"image": np.zeros((28, 28, 1), np.uint8), "label": 0}
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(tfds.builder_cls("mnist_5k"), "_generate_examples", full)
    with pytest.raises(UserError, match="No space left"):
        prepared("mnist_5k", tmp_path)
    assert os.listdir(tmp_path / "mnist_5k") == []


def test_prepared_builder_read_only_folder_is_read(digits_dir, tmp_path):
    shutil.copytree(digits_dir, tmp_path / "data", ignore=shutil.ignore_patterns(".*"))
    before = sorted(os.walk(tmp_path))
    prepared("mnist_5k", tmp_path / "data")
    assert sorted(os.walk(tmp_path)) == before  # nothing is written, so no right to write is needed


def test_prepared_builder_dead_network_is_unavailable(tmp_path, no_network):
    with pytest.raises(preparation.Unavailable, match="storage.googleapis.com cannot be reached"):
        prepared("mnist", tmp_path)
    assert no_network
    assert os.listdir(tmp_path) == []


def test_prepared_builder_downloads_switched_off_touches_no_network(tmp_path, no_network):
    with pytest.raises(preparation.Unavailable, match="switched off"):
        prepared("mnist", tmp_path, download=False)
    assert not no_network


def test_prepared_builder_download_that_succeeds_is_used(tmp_path, mnist_examples):
    mnist_examples(lambda: iter([(0, {"image": np.zeros((28, 28, 1), np.uint8), "label": 3})]))
    assert prepared("mnist", tmp_path).info.splits["train"].num_examples == 1
    assert prepared("mnist", tmp_path, download=False).info.splits["train"].num_examples == 1


def test_prepared_builder_download_cut_short_leaves_nothing_prepared(tmp_path, mnist_examples):
    def broken():
        yield 0, {"image": np.zeros((28, 28, 1), np.uint8), "label": 3}
        raise requests.ConnectionError("gone")

    mnist_examples(broken)
    with pytest.raises(preparation.Unavailable, match="gone.*train-images-idx3-ubyte.gz"):
        prepared("mnist", tmp_path)
    assert os.listdir(tmp_path / "mnist") == []
    with pytest.raises(preparation.Unavailable):
        prepared("mnist", tmp_path, download=False)


def test_prepared_builder_older_version_on_disk_is_read(store, noise, no_network):
    folder = store("mnist", noise((28, 28, 1)), shape=(28, 28, 1), labels=[0])  # 1.0.0: TFDS would prepare 3.0.1
    assert str(prepared("mnist", folder).info.version) == "1.0.0"
    assert not no_network


def test_prepared_builder_manual_download_names_folder_and_files(tmp_path, no_network):
    with pytest.raises(preparation.Unavailable, match=r"downloads/manual: .*ILSVRC2012_img_train.tar"):
        prepared("imagenet2012", tmp_path)
    assert not no_network


def test_prepared_builder_misspelt_name_gives_the_nearest_in_one_line(tmp_path):
    with pytest.raises(UserError, match="'mnsit'.*mnist") as caught:
        prepared("mnsit", tmp_path)
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize("name", ["", "mnist/nothing", "mnist:9.9.9", "kubric:thing", "zzzzzz"])
def test_prepared_builder_impossible_name_is_refused(tmp_path, name, no_network):
    with pytest.raises(UserError, match="`name` must be"):
        prepared(name, tmp_path)
    assert not no_network
