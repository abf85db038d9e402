"""Commits as objects: read back unchanged, also by safetensors, or detected as damaged."""

from __future__ import annotations

import dataclasses

import numpy as np
import orjson
import pytest
import safetensors.numpy

from service.store.commit_objects import (
    COMMIT_FORMAT,
    Contents,
    Damaged,
    Item,
    commit_key,
    decode_head,
    encode_commit,
    items_of,
    read_head,
    read_item,
    read_items,
    require_whole,
)
from service.store.writes import Commit
from tests.service.store.memory_objects import MemoryObjects
from tests.service.store.support import answer, ended, graph, model, put, tensor

BATCH = put(
    tensor("w", 3, 5), tensor("none", 0, 0), ended("old"), graphs=[graph("g", b"[1]")], answers=[answer("k", 9.5)]
)


def packed(batch: list[Commit] = BATCH, sequence: int = 7) -> tuple[bytes, Contents]:
    pieces, contents = encode_commit(sequence, "token", list(items_of(batch, sequence).values()))
    return b"".join(pieces), contents


def read_all(raw: bytes, sequence: int = 7) -> list[tuple[Item, bytes]]:
    objects = MemoryObjects()
    objects.put(commit_key(sequence), [raw])
    return [(item, read_item(objects, sequence, item)) for item in read_head(objects, sequence).items]


def test_encoded_commit_is_read_back() -> None:
    raw, contents = packed()
    assert decode_head(raw) == contents
    assert contents.nbytes == len(raw)
    data_by_item = {(item.kind, item.name): data for item, data in read_all(raw)}
    assert data_by_item["tensor", "w"] == np.full(5, 3.0).tobytes()
    assert data_by_item["graph", "g"] == b"[1]"
    assert data_by_item["answer", "k"] == b"{}"
    assert [item.nbytes for item in contents.items] == [40, 0, None, 3, 2]
    assert contents.items[4].expires == 9.5


def test_only_commits_with_models_use_format_2() -> None:
    """Versions without models can read the other commits, and refuse those with models."""
    with_models, _ = packed(put(models=[model("m", b"[1]")]))
    assert b'"gradserve commit 2"' in with_models
    assert b'"gradserve commit 1"' in packed()[0]
    assert [(item.kind, item.name, data) for item, data in read_all(with_models)] == [("model", "m", b"[1]")]
    assert b'"gradserve commit 2"' in packed(put(models=[model("m", None)]))[0]


def test_safetensors_library_reads_a_commit() -> None:
    loaded = safetensors.numpy.load(packed()[0])
    assert loaded["0"].tolist() == [3.0] * 5
    assert loaded["1"].shape == (0,)
    assert bytes(loaded["3"]) == b"[1]"


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint8", "int32", "int64", "float16", "float32", "float64"])
def test_every_dtype_is_readable_by_safetensors(dtype: str) -> None:
    from service.store.writes import TensorWrite

    array = np.ones((2, 3), dtype)
    raw, _ = packed(put(TensorWrite("", "w", "e", dtype, array.shape, memoryview(array).cast("B"))))
    (loaded,) = (value for name, value in safetensors.numpy.load(raw).items() if name == "0")
    assert loaded.dtype == array.dtype
    assert loaded.shape == array.shape


def test_last_write_of_a_key_wins() -> None:
    batch = [*put(tensor("a", 1), tensor("b", 1)), *put(tensor("a", 2)), *put(ended("b"))]
    (a, data), (b, nothing) = read_all(packed(batch)[0])
    assert (a.name, a.facts["etag"], data) == ("a", f"{2:016x}", np.float64(2).tobytes())
    assert (b.name, b.nbytes, nothing) == ("b", None, b"")


def test_every_flipped_byte_is_detected() -> None:
    raw, _ = packed()
    for place in range(len(raw)):
        wrong = raw[:place] + bytes([raw[place] ^ 0x10]) + raw[place + 1 :]
        with pytest.raises(Damaged):
            read_all(wrong)


def test_every_truncation_is_detected() -> None:
    raw, _ = packed()
    for length in range(len(raw)):
        with pytest.raises(Damaged):
            read_all(raw[:length])


@pytest.mark.parametrize(
    "raw",
    [b"", b"7 bytes", b"a file of somebody else's, of some length", bytes(64), b"\xff" * 64, packed()[0][::-1]],
    ids=["empty", "short", "text", "zeros", "ones", "backwards"],
)
def test_foreign_object_is_detected(raw: bytes) -> None:
    with pytest.raises(Damaged):
        read_all(raw)


def test_commit_under_another_name_is_detected() -> None:
    with pytest.raises(Damaged, match="contains commit 7"):
        read_all(packed()[0], sequence=8)


def test_later_format_is_refused() -> None:
    import zlib

    text = orjson.dumps({"__metadata__": {"format": "gradserve commit 3", "commit": "?"}})
    covered = len(text).to_bytes(8, "little") + text
    with pytest.raises(
        Damaged, match=f"“gradserve commit 3”, but this version of gradserve reads “{COMMIT_FORMAT}” and"
    ):
        decode_head(covered + zlib.crc32(covered).to_bytes(8, "little"))


def test_bytes_of_another_item_are_detected() -> None:
    _, contents = packed()
    with pytest.raises(Damaged, match="of its tensor"):
        require_whole(contents.items[0], bytes(40))


def test_adjacent_items_are_read_in_one_request() -> None:
    """Adjacent items are read in one request, and distant items in one request each."""
    raw, contents = packed(put(tensor("a", 1, 10), tensor("b", 2, 1000), tensor("c", 3, 20), tensor("d", 4, 0)))
    ranges: list[tuple[int, int | None]] = []

    class Counting(MemoryObjects):
        def get(self, key: str, start: int = 0, stop: int | None = None) -> bytes:
            ranges.append((start, stop))
            return super().get(key, start, stop)

    objects = Counting()
    objects.put(commit_key(7), [raw])
    a, b, c, d = contents.items
    for items, requests in (([a, b, c], 1), ([a, c], 2), ([b], 1), ([d], 0), ([c, d], 1)):
        ranges.clear()
        data = read_items(objects, 7, items)
        assert data == [raw[item.start : item.start + (item.nbytes or 0)] for item in items]
        assert len(ranges) == requests
    with pytest.raises(Damaged):
        read_items(objects, 7, [a, dataclasses.replace(b, checksum=1)])


def test_long_head_is_read() -> None:
    raw, contents = packed(put(*(tensor(f"t{number}", number) for number in range(2000))))
    assert contents.items[0].start > 64 << 10
    assert len(read_all(raw)) == 2000
