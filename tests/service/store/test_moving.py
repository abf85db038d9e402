"""Moving state between the single-server format and the shared format by backup and restore."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest

from service.store.backup import backup, restore
from service.store.journal import Loaded
from service.store.object_journal import ObjectJournal
from service.store.objects import SHARDS, ShardObjects, shard_of
from service.store.places import SHARED_FORMAT, WHOLE_FORMAT, open_shared, open_state
from service.store.writes import AnswerRecord, Commit, GraphWrite, TensorWrite

NAMESPACES = [f"ns{number}" for number in range(24)]


def tensor(namespace: str, name: str, *data: int) -> TensorWrite:
    return TensorWrite(namespace, name, f"{data[0]:016x}", "uint8", (len(data),), memoryview(bytes(data)))


def batches() -> Sequence[Commit]:
    """Build commits with several namespaces, a replaced tensor, a deleted tensor, and graphs in an order."""
    first = [tensor(ns, "w", i + 1, 2, 3) for i, ns in enumerate(NAMESPACES)]
    graphs = [GraphWrite(ns, f"g{i}", b'{"graph_id":"g%d"}' % i) for ns in NAMESPACES[:5] for i in (3, 1, 2)]
    answer = AnswerRecord("ns3", "k", "f", "text/plain", b"told", 9e9, 201, (("ETag", "x"),))
    gone = TensorWrite("ns1", "w", "", "", (), None)
    return [Commit(first, graphs), Commit([tensor("ns0", "w", 77), gone]), Commit(answers=[answer])]


def contents_of(loaded: Sequence[Loaded]) -> list[object]:
    """List the complete contents, with the graphs of each namespace in order."""
    tensors = sorted(
        (t.namespace, t.name, t.etag, t.shape, bytes(t.data or b"")) for each in loaded for t in each.tensors
    )
    graphs = [[g.graph_id for each in loaded for g in each.graphs if g.namespace == ns] for ns in NAMESPACES]
    return [tensors, graphs, [answer for each in loaded for answer in each.answers]]


def read_whole(place: str) -> list[object]:
    with closing(open_state(place, lease=0)) as opened:
        return contents_of([opened.load()])


def read_shared(place: str) -> list[object]:
    loaded = []
    with closing(open_shared(place)) as objects:
        for shard in range(SHARDS):
            with closing(ObjectJournal(ShardObjects(objects, shard), "a shard")) as opened:
                loaded.append(opened.load())
                namespaces = {t.namespace for t in loaded[-1].tensors}
                assert {shard_of(namespace) for namespace in namespaces} <= {shard}
    return contents_of(loaded)


@pytest.mark.slow
def test_state_survives_moving_there_and_back(s3_place: str, tmp_path: Path) -> None:
    folder, shared = str(tmp_path / "state"), f"{s3_place}/shared"
    with closing(open_state(folder)) as opened:
        opened.load()
        for commit in batches():
            opened.commit([commit])
    before = read_whole(folder)
    assert len(before[0]) == len(NAMESPACES) - 1  # type: ignore[arg-type]
    backup(folder, tmp_path / "whole.tar")
    restore(tmp_path / "whole.tar", shared, SHARED_FORMAT)
    assert read_shared(shared) == before
    backup(shared, tmp_path / "shared.tar")
    for form, place in [(SHARED_FORMAT, f"{s3_place}/again"), (WHOLE_FORMAT, str(tmp_path / "back"))]:
        restore(tmp_path / "shared.tar", place, form)
        assert (read_shared if form == SHARED_FORMAT else read_whole)(place) == before


def test_each_format_refuses_the_other(s3_place: str) -> None:
    open_shared(f"{s3_place}/shared").close()
    with pytest.raises(RuntimeError, match="'gradserve state 2', which servers share with --cluster on; gradserve"):
        open_state(f"{s3_place}/shared")
    open_state(f"{s3_place}/whole").close()
    with pytest.raises(RuntimeError, match="'gradserve state 1', which is for a single server, without --cluster on"):
        open_shared(f"{s3_place}/whole")


def test_shards_are_not_restored_into_a_folder(s3_place: str, tmp_path: Path) -> None:
    open_shared(s3_place).close()
    backup(s3_place, tmp_path / "shared.tar")
    with pytest.raises(RuntimeError, match="servers cannot share the state folder"):
        restore(tmp_path / "shared.tar", str(tmp_path / "folder"), SHARED_FORMAT)


def test_namespace_stays_in_its_shard() -> None:
    """The expected values are fixed: another hash would lose stored data."""
    assert [shard_of(name) for name in ("", "alice", "bob", "ns0")] == [4, 13, 4, 11]
    assert len({shard_of(f"ns{number}") for number in range(200)}) == SHARDS
