from types import SimpleNamespace

import numpy as np
import pytest
import tensorflow as tf

from components.data_source import records
from components.interfaces import UserError


def write(path, contents: list[bytes], *, skip: int = 0, take: int | None = None):
    with tf.io.TFRecordWriter(str(path)) as writer:
        for content in contents:
            writer.write(content)
    take = len(contents) - skip if take is None else take
    return SimpleNamespace(filename=str(path), skip=skip, take=take, examples_in_shard=len(contents))


def read_all(index: records.RecordIndex) -> list[bytes]:
    return [
        records.read_record(tf.constant(index.files)[f], tf.constant(o)).numpy()
        for f, o in zip(index.file, index.offset, strict=True)
    ]


def test_index_records_several_files_reads_any_record_in_stored_order(tmp_path):
    parts = [
        write(tmp_path / "a", [b"0", b"", b"22" * 5000], skip=1),
        write(tmp_path / "b", [b"3", b"44", b"5"], take=2),
    ]
    index = records.index_records(parts)
    wanted = [b"", b"22" * 5000, b"3", b"44"]
    assert read_all(index) == wanted
    assert list(records.stored_order(parts).as_numpy_iterator()) == wanted
    assert (index.file.dtype, index.offset.dtype) == (np.int32, np.int64)


def test_index_records_digest_changes_with_lengths_and_with_their_order(tmp_path):
    digests = [
        records.index_records([write(tmp_path / str(i), contents)]).digest
        for i, contents in enumerate(([b"a", b"bc"], [b"bc", b"a"], [b"a", b"bcd"], [b"a"], [b"a", b"bc"]))
    ]
    assert digests[0] == digests[4]
    assert len(set(digests)) == 4


@pytest.mark.parametrize("kept", [0.5, 0.9, 0.999])
def test_index_records_file_cut_short_is_refused(tmp_path, kept):
    part = write(tmp_path / "a", [b"x" * 100] * 10)
    data = (tmp_path / "a").read_bytes()
    (tmp_path / "a").write_bytes(data[: int(len(data) * kept)])
    with pytest.raises(UserError, match="prepared again"):
        records.index_records([part])


def test_index_records_missing_file_is_refused(tmp_path):
    part = SimpleNamespace(filename=str(tmp_path / "none"), skip=0, take=1, examples_in_shard=1)
    with pytest.raises(UserError, match="none"):
        records.index_records([part])


def test_read_record_flipped_bit_is_noticed(tmp_path):
    index = records.index_records([write(tmp_path / "a", [b"hello"])])
    data = bytearray((tmp_path / "a").read_bytes())
    data[14] ^= 1
    (tmp_path / "a").write_bytes(data)
    with pytest.raises(tf.errors.DataLossError):
        read_all(index)
