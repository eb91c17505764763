import numpy as np
import tensorflow as tf

from components.data_source import examples


def test_to_batch_end_points_are_minus_one_and_one():
    images = tf.constant([0, 127, 128, 255], tf.uint8)[:, None, None, None]
    batch = examples.to_batch(images, tf.zeros([4], tf.int32))
    assert (batch["image"].dtype, batch["label"].dtype) == (tf.float32, tf.int32)
    np.testing.assert_array_equal(batch["image"][:, 0, 0, 0], np.float32([-1, -0.5 / 127.5, 0.5 / 127.5, 1]))


def test_to_batch_every_byte_comes_back():
    images = tf.range(256)[:, None, None, None]
    batch = examples.to_batch(tf.cast(images, tf.uint8), tf.zeros([256], tf.int32))
    np.testing.assert_array_equal(np.rint(batch["image"] * 127.5 + 127.5), images)


def test_held_examples_graph_holds_no_copy_of_the_data():
    held = examples.HeldExamples(
        images=tf.zeros([1000, 32, 32, 3], tf.uint8), labels=tf.zeros([1000], tf.int32), digest=""
    )
    batches = held.gather(tf.data.Dataset.from_tensors(tf.range(4, dtype=tf.int64)))
    [mapped] = batches._functions()  # what tf.data runs for each batch
    assert mapped.function.graph.as_graph_def().ByteSize() < 20_000  # the images alone are 3 MB
