"""The vector store keeps what it is given, also among several processes and after damage."""

import multiprocessing

import numpy as np
import pytest

from pipeline.cache import Encoded, VectorStore, content_key
from pipeline.errors import UserError


def entry(*values: float, is_truncated: bool = False) -> Encoded:
    return Encoded(np.array(values, dtype=np.float32), is_truncated)


def test_what_was_written_is_read_back(tmp_path):
    store = VectorStore(tmp_path / "deep" / "v.sqlite")
    store.write({b"a": entry(1, 2), b"b": entry(3, is_truncated=True)})
    found = VectorStore(tmp_path / "deep" / "v.sqlite").read([b"b", b"a", b"c", b"a"])
    assert {key: (value.values.tolist(), value.is_truncated) for key, value in found.items()} == {
        b"a": ([1.0, 2.0], False),
        b"b": ([3.0], True),
    }


def test_the_first_value_of_a_key_stays(tmp_path):
    store = VectorStore(tmp_path / "v.sqlite")
    store.write({b"a": entry(1)})
    store.write({b"a": entry(2)})
    assert store.read([b"a"])[b"a"].values.tolist() == [1.0]


def test_many_keys_in_one_call(tmp_path):
    store = VectorStore(tmp_path / "v.sqlite")
    keys = [content_key(i) for i in range(2000)]
    store.write({key: entry(i) for i, key in enumerate(keys)})
    found = store.read(keys)
    assert [found[key].values[0] for key in keys] == list(range(2000))


def write_some(path, worker):
    store = VectorStore(path)
    for i in range(20):
        store.write({content_key(worker, i): entry(worker, i)})


def test_eight_processes_start_at_once_on_no_file(tmp_path):
    path = tmp_path / "v.sqlite"
    spawn = multiprocessing.get_context("spawn")
    workers = [spawn.Process(target=write_some, args=(path, worker)) for worker in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert [worker.exitcode for worker in workers] == [0] * 8
    assert len(VectorStore(path).read(content_key(w, i) for w in range(8) for i in range(20))) == 160


def test_a_damaged_file_is_one_line_that_tells_what_to_do(tmp_path):
    (tmp_path / "v.sqlite").write_bytes(b"not a database" * 100)
    with pytest.raises(UserError, match=r"v.sqlite: file is not a database; if it is damaged, delete it"):
        VectorStore(tmp_path / "v.sqlite")


def test_keys_tell_every_part_apart():
    assert len({content_key("a", "b"), content_key("ab"), content_key("a", ("b",)), content_key("b", "a")}) == 4


def test_a_write_that_fails_leaves_nothing(tmp_path):
    store = VectorStore(tmp_path / "v.sqlite")
    with pytest.raises(UserError, match="not supported"):
        store.write({b"a": entry(1), object(): entry(2)})
    assert store.read([b"a"]) == {}


@pytest.mark.parametrize("stored", [b"", b"abc", None, np.array([1, np.nan], dtype="<f4").tobytes()])
def test_a_damaged_vector_is_refused(tmp_path, stored):
    import sqlite3

    store = VectorStore(tmp_path / "v.sqlite")
    with sqlite3.connect(tmp_path / "v.sqlite") as connection:
        connection.execute("INSERT INTO vectors VALUES (?, 0, ?)", (b"a", stored))
    connection.close()
    with pytest.raises(UserError, match="a stored vector is damaged; delete the file"):
        store.read([b"a"])
