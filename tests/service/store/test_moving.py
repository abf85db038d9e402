"""Moving state between a single server and any number of shards, by backup and restore."""

from __future__ import annotations

import tarfile
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path

import pytest

from service.cluster.owners import OwnerDirectory
from service.store import backup as module
from service.store import places as places_module
from service.store.backup import backup, restore
from service.store.folder import Folder
from service.store.journal import Loaded
from service.store.object_journal import ObjectJournal
from service.store.objects import Objects, ShardObjects, shard_of
from service.store.places import SHARED_FORMAT, WHOLE_FORMAT, open_state, recorded_shards
from service.store.writes import AnswerRecord, Commit, GraphWrite, TensorWrite
from tests.service.store.memory_objects import MemoryObjects
from tests.service.store.support import open_shared

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


def read_shared(place: str, shards: int = 16) -> list[object]:
    loaded = []
    with closing(open_shared(place, shards)) as objects:
        # Reading makes openings, which would name this server as the owner of the rest.
        for shard in sorted({shard_of(namespace, shards) for namespace in NAMESPACES}):
            with closing(ObjectJournal(ShardObjects(objects, shard), "a shard")) as opened:
                loaded.append(opened.load())
                namespaces = {t.namespace for t in loaded[-1].tensors}
                assert {shard_of(namespace, shards) for namespace in namespaces} <= {shard}
    return contents_of(loaded)


def write_whole(place: str) -> list[object]:
    """Write a state of a single server; return its contents."""
    with closing(open_state(place)) as opened:
        opened.load()
        for commit in batches():
            opened.commit([commit])
    return read_whole(place)


@pytest.fixture
def in_memory(monkeypatch: pytest.MonkeyPatch) -> Mapping[str, MemoryObjects]:
    """Objects by their places, memory://NAME, as stores that servers can share."""
    places = defaultdict[str, MemoryObjects](MemoryObjects)
    for owner in (module, places_module):
        monkeypatch.setattr(
            owner, "open_objects", lambda place, **_: places[place] if "://" in place else Folder(Path(place))
        )
    return places


@pytest.mark.slow
def test_state_survives_moving_there_and_back(s3_place: str, tmp_path: Path) -> None:
    folder, shared = str(tmp_path / "state"), f"{s3_place}/shared"
    before = write_whole(folder)
    assert len(before[0]) == len(NAMESPACES) - 1  # type: ignore[arg-type]
    backup(folder, tmp_path / "whole.tar")
    restore(tmp_path / "whole.tar", shared, SHARED_FORMAT)
    assert read_shared(shared) == before
    backup(shared, tmp_path / "shared.tar")
    for form, place in [(SHARED_FORMAT, f"{s3_place}/again"), (WHOLE_FORMAT, str(tmp_path / "back"))]:
        restore(tmp_path / "shared.tar", place, form)
        assert (read_shared if form == SHARED_FORMAT else read_whole)(place) == before


def test_each_format_refuses_the_other(s3_place: str) -> None:
    open_shared(f"{s3_place}/shared", 16).close()
    with pytest.raises(RuntimeError, match="'gradserve state 2', which servers share with --cluster on; gradserve"):
        open_state(f"{s3_place}/shared")
    open_state(f"{s3_place}/whole").close()
    with pytest.raises(RuntimeError, match="'gradserve state 1', which is for a single server, without --cluster on"):
        open_shared(f"{s3_place}/whole", 16)


def test_shards_are_not_restored_into_a_folder(s3_place: str, tmp_path: Path) -> None:
    open_shared(s3_place, 16).close()
    backup(s3_place, tmp_path / "shared.tar")
    with pytest.raises(RuntimeError, match="servers cannot share the state folder"):
        restore(tmp_path / "shared.tar", str(tmp_path / "folder"), SHARED_FORMAT)


@pytest.mark.parametrize(("before", "after"), [(16, 64), (64, 16), (16, 4096), (4096, 300), (100, 1), (64, 64)])
def test_backup_is_restored_into_another_number_of_shards(
    before: int, after: int, in_memory: Mapping[str, MemoryObjects], tmp_path: Path
) -> None:
    """The contents are the same before, after and in a folder."""
    expected = write_whole(str(tmp_path / "state"))
    backup(str(tmp_path / "state"), tmp_path / "whole.tar")
    restore(tmp_path / "whole.tar", "memory://before", SHARED_FORMAT, before)
    assert read_shared("memory://before", before) == expected
    backup("memory://before", tmp_path / "shared.tar")
    restore(tmp_path / "shared.tar", "memory://after", SHARED_FORMAT, after)
    assert recorded_shards(in_memory["memory://after"], "the state") == after
    assert read_shared("memory://after", after) == expected
    restore(tmp_path / "shared.tar", str(tmp_path / "back"))
    assert read_whole(str(tmp_path / "back")) == expected


def test_backup_by_an_earlier_version_has_16_shards(in_memory: Mapping[str, MemoryObjects], tmp_path: Path) -> None:
    """Its file has no number, and neither has the state that it was made of."""
    expected = write_whole(str(tmp_path / "state"))
    backup(str(tmp_path / "state"), tmp_path / "whole.tar")
    restore(tmp_path / "whole.tar", "memory://old", SHARED_FORMAT)
    in_memory["memory://old"].delete(["SHARDS"])
    backup("memory://old", tmp_path / "now.tar")
    with tarfile.open(tmp_path / "now.tar") as now, tarfile.open(tmp_path / "old.tar", "w") as old:
        for member in now:
            if member.name != "SHARDS":
                old.addfile(member, now.extractfile(member))
    for name in ("now", "old"):
        restore(tmp_path / f"{name}.tar", f"memory://{name}.again", SHARED_FORMAT, 64)
        assert read_shared(f"memory://{name}.again", 64) == expected


def test_backup_records_the_number(in_memory: Mapping[str, MemoryObjects], tmp_path: Path) -> None:
    open_shared("memory://shared", 4096)
    ShardObjects(in_memory["memory://shared"], 4095).put("holds/1.a", [])
    assert backup("memory://shared", tmp_path / "shared.tar") == 0
    with tarfile.open(tmp_path / "shared.tar") as archive:
        assert archive.getnames() == ["FORMAT", "SHARDS", "END"]
        record = archive.extractfile("SHARDS")
        assert record is not None
        assert record.read() == b'{"format":"gradserve shards 1","shards":4096}\n'


def test_backup_of_many_shards_reads_those_that_are_used(
    in_memory: Mapping[str, MemoryObjects], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_whole(str(tmp_path / "state"))
    backup(str(tmp_path / "state"), tmp_path / "whole.tar")
    restore(tmp_path / "whole.tar", "memory://shared", SHARED_FORMAT, 4096)
    objects, listed = in_memory["memory://shared"], []
    list_keys = objects.list
    monkeypatch.setattr(objects, "list", lambda prefix, after="": listed.append(prefix) or list_keys(prefix, after))
    backup("memory://shared", tmp_path / "shared.tar")
    used = {shard_of(namespace, 4096) for namespace in NAMESPACES}
    assert {int(prefix.split("/")[1]) for prefix in listed if prefix.count("/") > 1} == used


@pytest.mark.parametrize(
    ("shards", "key", "told"),
    [
        (b'{"format":"gradserve shards 2","shards":64}', None, "SHARDS has the format 'gradserve shards 2', but this"),
        (b"64", None, "SHARDS is damaged"),
        (b'{"format":"gradserve shards 1","shards":64}', "shards/64/commits/1", "unexpected member 'shards/64/comm"),
        (None, "shards/16/commits/1", "unexpected member 'shards/16/commits/1'"),
    ],
)
def test_invalid_number_in_a_backup_is_refused(
    shards: bytes | None, key: str | None, told: str, in_memory: Mapping[str, MemoryObjects], tmp_path: Path
) -> None:
    with tarfile.open(tmp_path / "backup.tar", "w") as archive:
        module._add(archive, "FORMAT", SHARED_FORMAT)
        for name, data in (("SHARDS", shards), (key, b"x")):
            if name is not None and data is not None:
                module._add(archive, name, data)
    with pytest.raises(RuntimeError, match=f"is not a backup of gradserve, or is damaged: {told}"):
        restore(tmp_path / "backup.tar", "memory://there", SHARED_FORMAT)
    assert list(in_memory["memory://there"].list("")) == []


def test_restored_shards_have_no_owner(in_memory: Mapping[str, MemoryObjects], tmp_path: Path) -> None:
    """A server at the new place must not ask the servers of the old one, which answer from their own state."""
    before = in_memory["memory://before"]
    open_shared("memory://before", 16)
    journal = ObjectJournal(ShardObjects(before, shard_of("ns0", 16)), "a shard", lease=0, owner="http://10.0.0.7:8000")
    journal.load()
    journal.commit([Commit([tensor("ns0", "w", 1)])])
    assert owners_of(before) == {"http://10.0.0.7:8000"}
    backup("memory://before", tmp_path / "shared.tar")
    journal.close()
    restore(tmp_path / "shared.tar", "memory://after", SHARED_FORMAT)
    assert owners_of(in_memory["memory://after"]) == set()


def test_refused_restore_changes_nothing(in_memory: Mapping[str, MemoryObjects], tmp_path: Path) -> None:
    write_whole(str(tmp_path / "state"))
    backup(str(tmp_path / "state"), tmp_path / "whole.tar")
    restore(tmp_path / "whole.tar", "memory://used", SHARED_FORMAT, 64)
    before = dict(in_memory["memory://used"]._kept)
    with pytest.raises(RuntimeError, match="is not empty; restore to an empty place"):
        restore(tmp_path / "whole.tar", "memory://used", SHARED_FORMAT, 64)
    assert in_memory["memory://used"]._kept == before


def test_failed_restore_leaves_the_place_empty(
    in_memory: Mapping[str, MemoryObjects], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_whole(str(tmp_path / "state"))
    backup(str(tmp_path / "state"), tmp_path / "whole.tar")

    def fail(*_: object) -> None:
        raise OSError(5, "the store is away")

    monkeypatch.setattr(module, "write_format", fail)
    with pytest.raises(OSError, match="the store is away"):
        restore(tmp_path / "whole.tar", "memory://there", SHARED_FORMAT, 64)
    assert list(in_memory["memory://there"].list("")) == []


def owners_of(objects: Objects) -> set[str]:
    directory = OwnerDirectory(objects)
    return {owner.address for shard in range(16) if (owner := directory.owner(shard)) is not None}
