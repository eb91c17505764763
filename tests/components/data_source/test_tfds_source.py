import dataclasses
import logging
import time

import numpy as np
import pytest
import tensorflow as tf

from components.data_source import preparation, tfds_source
from components.data_source.tfds_source import TFDSSource
from components.interfaces import DataSource, HostShard, UserError

HELD, STREAMED = 2048, 0
ONLY = HostShard()


def batches(source: TFDSSource, *, size: int, start: int = 0, count: int = 1, seed: int = 0, host=ONLY) -> list:
    made = source.batches(global_batch_size=size, seed=seed, start_batch=start, host=host)
    return list(made.take(count).as_numpy_iterator())


def assert_same(left: list, right: list) -> None:
    for a, b in zip(left, right, strict=True):
        np.testing.assert_array_equal(a["image"], b["image"])
        np.testing.assert_array_equal(a["label"], b["label"])


@pytest.fixture(params=[HELD, STREAMED], ids=["held", "streamed"])
def digits(request, digits_dir) -> TFDSSource:
    return TFDSSource(name="mnist_5k", data_dir=digits_dir, memory_budget_mb=request.param)


def test_source_made_opens_nothing(tmp_path, no_network):
    TFDSSource(name="no such data set", data_dir=str(tmp_path / "none"))
    assert not (tmp_path / "none").exists()
    assert not no_network


def test_source_fulfils_the_protocol(digits_dir):
    assert isinstance(TFDSSource(name="mnist_5k", data_dir=digits_dir), DataSource)


def test_spec_digits_states_shape_and_identity(digits):
    spec = digits.spec
    assert (spec.image_shape, spec.num_classes, spec.num_examples) == ((28, 28, 1), 10, 5000)
    assert (spec.name, spec.split, spec.notice) == ("mnist_5k", "train", "")
    assert len(spec.fingerprint) == 16
    assert digits.spec is spec


def test_batches_elements_have_static_shapes(digits):
    made = digits.batches(global_batch_size=12, seed=0, start_batch=0, host=HostShard(index=1, count=3))
    assert made.element_spec == {
        "image": tf.TensorSpec([4, 28, 28, 1], tf.float32),
        "label": tf.TensorSpec([4], tf.int32),
    }


def test_batches_held_and_streamed_are_equal_bits(digits_dir):
    held, streamed = (
        batches(TFDSSource(name="mnist_5k", data_dir=digits_dir, memory_budget_mb=mb), size=64, start=77, count=5)
        for mb in (HELD, STREAMED)
    )
    assert_same(held, streamed)


def test_batches_after_a_restart_equal_the_uninterrupted(digits):
    whole = batches(digits, size=100, start=45, count=10)  # an epoch ends after batch 49
    assert_same(whole[6:], batches(digits, size=100, start=51, count=4))


def test_batches_one_epoch_holds_every_example_once(store, noise):
    images = noise(*[(4, 4, 1)] * 10)
    folder = store("tiny", images, shape=(4, 4, 1), labels=list(range(10)))
    for budget in (HELD, STREAMED):
        source = TFDSSource(name="tiny", data_dir=folder, memory_budget_mb=budget)
        drawn = np.concatenate([b["label"] for b in batches(source, size=4, count=5)])
        assert sorted(drawn[:10]) == sorted(drawn[10:]) == list(range(10))
        [wide] = batches(source, size=25)  # more rows than examples
        assert np.bincount(wide["label"]).min() >= 2


def test_batches_images_belong_to_their_labels(store, noise):
    images = noise(*[(4, 4, 1)] * 10)
    folder = store("tiny", images, shape=(4, 4, 1), labels=list(range(10)))
    for budget in (HELD, STREAMED):
        [batch] = batches(TFDSSource(name="tiny", data_dir=folder, memory_budget_mb=budget), size=10)
        for image, label in zip(batch["image"], batch["label"], strict=True):
            np.testing.assert_allclose(image, (images[label].astype(np.float32) - 127.5) / 127.5, rtol=1e-6)


def test_batches_hosts_together_make_the_global_batch(digits):
    parts = [batches(digits, size=12, start=3, host=HostShard(index=i, count=4))[0] for i in range(4)]
    joined = {key: np.concatenate([part[key] for part in parts]) for key in ("image", "label")}
    assert_same([joined], batches(digits, size=12, start=3))


def test_batches_other_seed_gives_another_order(digits):
    labels = [batches(digits, size=500, seed=seed)[0]["label"] for seed in (0, 1, -1, 2**40)]
    assert len({tuple(some) for some in labels}) == 4


def test_batches_bad_arguments_are_refused_before_data_are_opened(tmp_path):
    source = TFDSSource(name="mnist_5k", data_dir=str(tmp_path / "none"))
    host = HostShard(index=0, count=3)
    with pytest.raises(UserError, match="divisible by the number of hosts"):
        source.batches(global_batch_size=64, seed=0, start_batch=0, host=host)
    with pytest.raises(UserError, match="start_batch"):
        source.batches(global_batch_size=64, seed=0, start_batch=-1)
    with pytest.raises(UserError, match="seed"):
        source.batches(global_batch_size=64, seed=0.5, start_batch=0)
    assert not (tmp_path / "none").exists()


def test_source_prepared_data_open_without_network_in_a_second(digits_dir, no_network):
    start = time.monotonic()
    batches(TFDSSource(name="mnist_5k", data_dir=digits_dir), size=8)
    assert time.monotonic() - start < 3
    assert not no_network


@pytest.mark.parametrize("channels", [1, 3, 4])
def test_source_any_channels_and_oblong_images_pass(store, noise, channels):
    shape = (5, 7, channels)
    folder = store("tiny", noise(*[shape] * 3), shape=shape)
    for budget in (HELD, STREAMED):
        source = TFDSSource(name="tiny", data_dir=folder, memory_budget_mb=budget)
        assert (source.spec.image_shape, source.spec.num_classes) == (shape, 0)
        [batch] = batches(source, size=2)
        assert batch["image"].shape == (2, *shape)
        np.testing.assert_array_equal(batch["label"], [0, 0])


def test_source_undeclared_but_equal_sizes_pass(store, noise):
    folder = store("tiny", noise(*[(5, 7, 3)] * 3), shape=(None, None, 3))
    assert TFDSSource(name="tiny", data_dir=folder).spec.image_shape == (5, 7, 3)


def test_source_images_of_several_sizes_ask_for_image_size(store, noise):
    folder = store("tiny", noise((5, 7, 3), (6, 7, 3)), shape=(None, None, 3))
    with pytest.raises(UserError, match=r"\(5, 7, 3\) and \(6, 7, 3\).*image_size"):
        _ = TFDSSource(name="tiny", data_dir=folder).spec
    with pytest.raises(UserError, match=r"memory_budget_mb=0.*image_size = \(5, 7\)"):
        _ = TFDSSource(name="tiny", data_dir=folder, memory_budget_mb=STREAMED).spec


def test_source_image_size_makes_all_images_one_size(store, noise):
    folder = store("tiny", noise((5, 7, 3), (6, 7, 3), (30, 2, 3)), shape=(None, None, 3), labels=[0, 1, 2])
    made = []
    for budget in (HELD, STREAMED):
        source = TFDSSource(name="tiny", data_dir=folder, image_size=(4, 6), memory_budget_mb=budget)
        assert source.spec.image_shape == (4, 6, 3)
        made.append(batches(source, size=6, count=2))
    assert_same(*made)


def test_source_sixteen_bit_images_are_refused(store, noise):
    folder = store("tiny", noise((4, 4, 1), dtype=np.uint16), shape=(4, 4, 1))
    with pytest.raises(UserError, match="8 bits"):
        _ = TFDSSource(name="tiny", data_dir=folder).spec


def test_source_example_without_label_is_refused_or_ignored(store, noise):
    folder = store("tiny", noise((4, 4, 1), (4, 4, 1)), shape=(4, 4, 1), labels=[1, -1])
    with pytest.raises(UserError, match="1 of 2.*label_key = None"):
        _ = TFDSSource(name="tiny", data_dir=folder).spec
    assert TFDSSource(name="tiny", data_dir=folder, label_key=None).spec.num_classes == 0
    with pytest.raises(tf.errors.InvalidArgumentError, match="has no label"):
        batches(TFDSSource(name="tiny", data_dir=folder, memory_budget_mb=STREAMED), size=2)


@pytest.mark.parametrize("split", ["test", "train[:6000]", "train[nonsense]", "train[30:20]"])
def test_source_impossible_split_names_the_splits(digits_dir, split):
    with pytest.raises(UserError, match="split"):
        _ = TFDSSource(name="mnist_5k", data_dir=digits_dir, split=split).spec


def test_fingerprint_changes_with_data_and_order_and_what_is_read(store, noise):
    a, b = noise((4, 4, 1), (4, 4, 1))
    made = {}
    for name, images in {"one": [a, b], "two": [b, a], "three": [a, a]}.items():
        source = TFDSSource(name=name, data_dir=store(name, images, shape=(4, 4, 1)))
        made[name] = source
        made[name + " small"] = dataclasses.replace(source, image_size=(2, 2))
        made[name + " half"] = dataclasses.replace(source, split="train[:1]")
    prints = {name: source.spec.fingerprint for name, source in made.items()}
    assert len(set(prints.values())) == len(made)
    assert dataclasses.replace(made["one"]).spec.fingerprint == prints["one"]


def test_fingerprint_of_the_digits_keeps_its_value(digits_dir):
    # A change here makes every stored run of the digits one of other data.
    assert TFDSSource(name="mnist_5k", data_dir=digits_dir).spec.fingerprint == "dab2de5b9dcccdd4"


def test_source_out_of_reach_without_substitute_says_how_to_prepare(tmp_path, no_network):
    start = time.monotonic()
    with pytest.raises(UserError) as caught:
        _ = TFDSSource(name="mnist", data_dir=str(tmp_path)).spec
    assert time.monotonic() - start < 4
    command = f"tfds.builder('mnist', data_dir='{tmp_path}').download_and_prepare()"
    assert command in str(caught.value) and "'mnist_5k'" in str(caught.value)


def test_source_out_of_reach_with_substitute_uses_it_and_says_so(digits_dir, no_network, caplog):
    tfds_source._announce.cache_clear()
    source = TFDSSource(name="mnist", data_dir=digits_dir, substitute="mnist_5k", split="train[:100]")
    with caplog.at_level(logging.WARNING):
        spec = source.spec
        _ = dataclasses.replace(source).spec  # another source of the same data
    assert (spec.name, spec.split, spec.num_examples) == ("mnist_5k", "train[:100]", 100)
    assert "`mnist`" in spec.notice and "`mnist_5k`" in spec.notice
    assert caplog.text.count("SUBSTITUTE") == 1
    assert len(batches(source, size=8)[0]["label"]) == 8


def test_source_substitute_without_the_split_uses_the_whole_and_says_so(digits_dir, no_network):
    source = TFDSSource(name="mnist", data_dir=digits_dir, substitute="mnist_5k", split="test")
    assert source.spec.split == "train"
    assert "no split `test`" in source.spec.notice


def test_source_prepared_data_ignore_the_substitute(store, noise, no_network):
    folder = store("cifar10", noise(*[(32, 32, 3)] * 4), shape=(32, 32, 3), labels=[0, 1, 2, 3])
    source = TFDSSource(name="cifar10", data_dir=folder, substitute="mnist_5k")
    assert (source.spec.name, source.spec.image_shape, source.spec.notice) == ("cifar10", (32, 32, 3), "")
    assert not no_network


def test_source_misspelt_name_is_not_substituted(digits_dir, no_network):
    with pytest.raises(UserError, match="nearest names are mnist"):
        _ = TFDSSource(name="mnsit", data_dir=digits_dir, substitute="mnist_5k").spec


def test_source_misspelt_substitute_is_refused_though_it_is_not_needed(digits_dir):
    for ask in (lambda source: source.spec, lambda source: source.foresee()):
        with pytest.raises(UserError, match="`substitute` must be .* mnist_5k"):
            ask(TFDSSource(name="mnist_5k", data_dir=digits_dir, substitute="mnist_5kk"))


def test_source_folder_that_is_a_file_is_refused(tmp_path):
    (tmp_path / "file").touch()
    for ask in (lambda source: source.spec, lambda source: source.foresee()):
        with pytest.raises(UserError, match="`data_dir` must be a folder"):
            ask(TFDSSource(name="mnist_5k", data_dir=str(tmp_path / "file")))


def test_source_neither_data_nor_substitute_names_both(tmp_path, no_network):
    with pytest.raises(UserError, match="`mnist` nor its substitute.*`fashion_mnist`"):
        _ = TFDSSource(name="mnist", data_dir=str(tmp_path), substitute="fashion_mnist").spec


def test_source_damaged_record_says_how_to_mend_it(store, noise, tmp_path):
    folder = store("tiny", noise((4, 4, 1), (4, 4, 1)), shape=(4, 4, 1))
    [path] = (tmp_path / "data" / "tiny" / "1.0.0").glob("*tfrecord*")
    data = bytearray(path.read_bytes())
    data[40] ^= 1
    path.write_bytes(data)
    with pytest.raises(UserError, match="prepared again"):
        _ = TFDSSource(name="tiny", data_dir=folder).spec


def test_source_negative_budget_is_refused(digits_dir):
    with pytest.raises(UserError, match="memory_budget_mb"):
        _ = TFDSSource(name="mnist_5k", data_dir=digits_dir, memory_budget_mb=-1).spec


def test_embedded_name_is_that_of_the_digits():
    assert preparation.EMBEDDED == "mnist_5k"
