import numpy as np
import pytest
import tensorflow as tf

from components.data_source import order
from components.interfaces import HostShard, UserError

ONLY = HostShard()


def examples(first: int, count: int, *, n: int, seed: int = 0) -> np.ndarray:
    return order.examples_at(first + tf.range(count, dtype=tf.int64), num_examples=n, seed=seed).numpy()


def batch(index: int, *, n: int, size: int, seed: int = 0, host: HostShard = ONLY) -> np.ndarray:
    return order.batch_examples(index, num_examples=n, global_batch_size=size, seed=seed, host=host).numpy()


@pytest.mark.parametrize("n", [1, 2, 3, 7, 10, 64, 1000, 5000, 60000])
def test_examples_at_any_size_are_a_permutation_in_every_epoch(n):
    for epoch in (0, 1, 5, 10**6):
        np.testing.assert_array_equal(np.sort(examples(epoch * n, n, n=n)), np.arange(n))


def test_examples_at_other_epoch_differ():
    assert (examples(0, 1000, n=1000) == examples(1000, 1000, n=1000)).mean() < 0.02


@pytest.mark.parametrize("seed", [1, -1, 2**31, 2**32, -(2**40), 10**30])
def test_examples_at_other_seed_differ_and_stay_a_permutation(seed):
    drawn = examples(0, 1000, n=1000, seed=seed)
    np.testing.assert_array_equal(np.sort(drawn), np.arange(1000))
    assert (drawn == examples(0, 1000, n=1000, seed=0)).mean() < 0.02


def test_examples_at_small_seeds_do_not_resemble_the_stored_order():
    correlations = [np.corrcoef(examples(0, 1000, n=1000, seed=s), np.arange(1000))[0, 1] for s in range(50)]
    assert np.std(correlations) < 0.05  # 1 / sqrt(1000) = 0.032 for fair shuffles


def test_examples_at_ten_examples_put_each_one_first_equally_often():
    first = [examples(epoch * 10, 1, n=10)[0] for epoch in range(1000)]
    assert np.bincount(first, minlength=10).min() > 65  # 100 expected, with a deviation of 9.5


def test_examples_at_far_position_equal_the_same_position_of_its_epoch():
    far = 2**40 * 1000 + 17
    whole = examples(2**40 * 1000, 1000, n=1000)
    assert examples(far, 1, n=1000)[0] == whole[17]


def test_examples_at_inside_a_graph_equal_eager():
    rows = tf.data.Dataset.range(3, 5).map(
        lambda b: order.batch_examples(b, num_examples=10, global_batch_size=4, seed=5)
    )
    assert rows.element_spec == tf.TensorSpec([4], tf.int64)
    np.testing.assert_array_equal(list(rows.as_numpy_iterator()), [batch(s, n=10, size=4, seed=5) for s in (3, 4)])


def test_examples_at_known_positions_keep_their_values():
    # A change of these numbers changes what every stored run would see after a restart.
    np.testing.assert_array_equal(examples(0, 8, n=5000, seed=0), [2213, 4812, 4618, 1858, 3345, 336, 7, 3379])


@pytest.mark.parametrize(("n", "size"), [(10, 4), (10, 25), (1, 3), (7, 7)])
def test_batch_examples_in_turn_are_the_endless_sequence_without_loss(n, size):
    sequence = np.concatenate([batch(s, n=n, size=size) for s in range(n)])
    np.testing.assert_array_equal(sequence, examples(0, n * size, n=n))
    np.testing.assert_array_equal(np.bincount(sequence, minlength=n), size)  # n batches of `size` are `size` epochs


@pytest.mark.parametrize("count", [1, 2, 4])
def test_batch_examples_hosts_together_make_the_global_batch(count):
    parts = [batch(9, n=10, size=12, host=HostShard(index=i, count=count)) for i in range(count)]
    assert {len(part) for part in parts} == {12 // count}
    np.testing.assert_array_equal(np.concatenate(parts), batch(9, n=10, size=12))


def test_host_rows_indivisible_batch_names_sizes_that_work():
    with pytest.raises(UserError, match=r"global_batch_size=10, hosts=4. Use 8 or 12"):
        order.host_rows(10, HostShard(index=0, count=4))


@pytest.mark.parametrize("host", [HostShard(index=2, count=2), HostShard(index=-1, count=2), HostShard(count=0)])
def test_host_rows_unknown_host_is_refused(host):
    with pytest.raises(UserError, match="index"):
        order.host_rows(8, host)


@pytest.mark.parametrize("seed", [1.5, "1", None])
def test_seed_words_no_integer_is_refused(seed):
    with pytest.raises(UserError, match="integer"):
        order.seed_words(seed)


def test_examples_at_no_examples_is_refused():
    with pytest.raises(UserError, match="num_examples=0"):
        examples(0, 1, n=0)
