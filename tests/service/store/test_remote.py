"""State on an S3 server: load, takeover, backup, and error messages."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import boto3
import pytest

from service.store.backup import backup, restore
from service.store.journal import StateLost
from service.store.places import open_state
from service.store.remote import one_line
from tests.service.store.support import graph, put, tensor, values

pytestmark = pytest.mark.slow


@pytest.fixture
def bucket(s3_place: str, s3_server: str) -> Iterator[Any]:
    """The bucket of the place, through another client."""
    resource = boto3.resource("s3", endpoint_url=s3_server, region_name="us-east-1")
    yield resource.Bucket(s3_place.split("/")[2])
    resource.meta.client.close()


def test_committed_state_is_loaded(s3_place: str, bucket: Any) -> None:
    with closing(open_state(s3_place)) as opened:
        opened.load()
        opened.commit(put(tensor("a", 1, 20_000), tensor("b", 1), graphs=[graph("g")]))
        opened.commit(put(tensor("a", 2)))
    with closing(open_state(s3_place)) as again:
        loaded = again.load()
    assert values(loaded) == {"a": 2, "b": 1}
    assert [write.graph_id for write in loaded.graphs] == ["g"]
    keys = sorted(item.key for item in bucket.objects.all())
    commits = (f"of/gradserve/commits/{number:020}" for number in range(1, 7))
    assert keys == ["of/gradserve/FORMAT", *commits], "each server began, and released the place"


def test_last_server_to_open_has_the_place(s3_place: str) -> None:
    first, second = open_state(s3_place), open_state(s3_place)
    first.load()
    first.commit(put(tensor("a", 1)))
    assert values(second.load()) == {"a": 1}
    with pytest.raises(StateLost, match=f"another server writes to the state at {s3_place} now"):
        first.commit(put(tensor("a", 2)))
    second.commit(put(tensor("a", 3)))
    first.close()
    second.close()
    with closing(open_state(s3_place)) as third:
        assert values(third.load()) == {"a": 3}


def test_one_of_several_concurrent_openings_wins(s3_place: str) -> None:
    with closing(open_state(s3_place)) as before:
        before.load()
        before.commit(put(tensor("a", 1)))
    journals = [open_state(s3_place) for _ in range(4)]
    with ThreadPoolExecutor(4) as threads:
        assert all(values(loaded) == {"a": 1} for loaded in threads.map(lambda each: each.load(), journals))
        committed = list(threads.map(commits, journals, range(4)))
    assert committed.count(True) == 1
    for each in journals:
        each.close()
    with closing(open_state(s3_place)) as after:
        assert values(after.load()) == {"a": 1, f"b{committed.index(True)}": 1}


def commits(opened: Any, number: int) -> bool:
    try:
        opened.commit(put(tensor(f"b{number}", 1)))
    except StateLost:
        return False
    return True


def test_rewriting_one_tensor_leaves_few_objects(s3_place: str, bucket: Any) -> None:
    with closing(open_state(s3_place)) as opened:
        opened.load()
        for value in range(100):
            opened.commit(put(tensor("w", value)))
    assert len(list(bucket.objects.all())) == 4, "the format, the opening, the tensor, the release"


def test_backup_moves_state_from_s3_to_a_folder(s3_place: str, tmp_path: Path) -> None:
    with closing(open_state(s3_place)) as opened:
        opened.load()
        opened.commit(put(tensor("a", 1), tensor("b", 2)))
        backup(s3_place, tmp_path / "backup.tar")
    restore(tmp_path / "backup.tar", str(tmp_path / "state"))
    with closing(open_state(str(tmp_path / "state"))) as restored:
        assert values(restored.load()) == {"a": 1, "b": 2}
    restore(tmp_path / "backup.tar", s3_place + "/again")
    with closing(open_state(s3_place + "/again")) as restored:
        assert values(restored.load()) == {"a": 1, "b": 2}


def test_damaged_commit_is_named(s3_place: str, bucket: Any) -> None:
    with closing(open_state(s3_place)) as opened:
        opened.load()
        opened.commit(put(tensor("a", 1)))
    damaged = bucket.Object(f"of/gradserve/commits/{2:020}")
    damaged.put(Body=damaged.get()["Body"].read()[:-1])
    message = f"the state at {s3_place} is damaged: commits/{2:020} is truncated"
    with closing(open_state(s3_place)) as again, pytest.raises(RuntimeError, match=message):
        again.load()


def test_foreign_folder_is_refused(s3_place: str, bucket: Any) -> None:
    bucket.Object("of/gradserve/holiday.jpg").put(Body=b"x")
    with pytest.raises(RuntimeError, match=r"was not written by gradserve: it has 'holiday\.jpg' but no FORMAT"):
        open_state(s3_place)
    assert len(list(bucket.objects.all())) == 1


def test_empty_object_is_named(s3_place: str, bucket: Any) -> None:
    with closing(open_state(s3_place)) as opened:
        opened.load()
    bucket.Object(f"of/gradserve/commits/{1:020}").put(Body=b"")
    with (
        closing(open_state(s3_place)) as again,
        pytest.raises(RuntimeError, match=f"cannot read .*: commits/{1:020}: "),
    ):
        again.load()


@pytest.mark.usefixtures("s3_place")
def test_missing_bucket_is_reported() -> None:
    with pytest.raises(RuntimeError) as refused:
        open_state("s3://no-such-bucket/x")
    message = str(refused.value)
    assert message.startswith("cannot use the state at s3://no-such-bucket/x: ")
    assert message.endswith("; set another --state, or memory to store nothing on disk")
    assert "\n" not in message
    assert len(message) < 700


def test_unreachable_server_is_reported(s3_place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from datetime import timedelta

    monkeypatch.setattr("service.store.remote._RETRY", timedelta(milliseconds=1))
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    with pytest.raises(RuntimeError) as refused:
        open_state(s3_place)
    assert "\n" not in str(refused.value)


def test_delete_ignores_missing_objects() -> None:
    """On Azure, a missing object aborts the deletion of several."""
    from obstore.store import MemoryStore

    from service.store.remote import Remote

    store = MemoryStore()

    class StrictStore:
        def __getattr__(self, name: str) -> Any:
            return getattr(store, name)

        def delete(self, keys: str | list[str]) -> None:
            for key in [keys] if isinstance(keys, str) else keys:
                store.head(key)
                store.delete(key)

    objects = Remote(lambda *_: StrictStore())  # type: ignore[arg-type, return-value]
    for key in "abc":
        objects.put(key, [b"x"])
    objects.delete(["a", "missing", "b", "c"])
    assert list(objects.list("")) == []


def test_rust_debug_output_is_removed() -> None:
    assert one_line(ValueError("a b\n c\n\nDebug source:\nNotFound { path: x }")) == "a b c"
