"""What a worker may open: the server itself and its kernels' folder, and never keys, state or homes."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

import engine
from service.core import machine
from service.core.settings import Settings
from service.workers.sandbox import allowed_files, make_folders


@pytest.fixture(autouse=True)
def _no_cards(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "visible_gpus", lambda: ())


def settings(**stated: Any) -> Settings:
    return Settings(**{"device": "cpu", "state": "memory", "cache_dir": None, "confine": "on", **stated})


def test_who_is_not_confined_may_open_anything() -> None:
    assert allowed_files(settings(confine="off")) is None
    make_folders(None)


def test_the_server_s_own_files_are_read_and_none_is_written(tmp_path: Path) -> None:
    found = allowed_files(settings())
    assert found is not None
    assert str(Path(engine.__file__ or "").parent) in found.reads
    assert str(Path(sys.prefix, "lib")) in found.reads
    assert {"/proc/meminfo", "/dev/null", "/usr/lib"} <= {*found.reads}
    assert (found.writes, found.devices) == ((), ())
    assert not any(tmp_path.is_relative_to(path) for path in found.reads)


def test_kernels_are_written_into_their_folder_which_is_made_for_its_owner_alone(tmp_path: Path) -> None:
    found = allowed_files(settings(cache_dir=tmp_path / "cache", compile="on"))
    assert found is not None
    (written,) = found.writes
    assert Path(written).is_relative_to(tmp_path / "cache")
    make_folders(found)
    make_folders(found)
    assert Path(written).stat().st_mode & 0o777 == 0o700


def test_a_folder_that_cannot_be_made_costs_nothing(tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file")
    make_folders(allowed_files(settings(cache_dir=tmp_path / "cache")))


@pytest.mark.parametrize("name", ["keys_file", "tls_key", "state"])
def test_what_is_to_be_hidden_may_not_lie_where_workers_read(name: str, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    folder = allowed_files(settings(cache_dir=cache)).writes[0]  # type: ignore[union-attr]
    flag = f"--{name.replace('_', '-')}"
    with pytest.raises(RuntimeError, match=rf"{flag} lies in .* put it elsewhere, or serve with --confine off"):
        allowed_files(settings(cache_dir=cache, **{name: str(Path(folder, "secret"))}))
    assert allowed_files(settings(cache_dir=cache, **{name: str(tmp_path / "secret")})) is not None


def test_a_link_is_followed_before_it_is_compared(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    found = allowed_files(settings(cache_dir=cache))
    make_folders(found)
    assert found is not None
    (tmp_path / "link").symlink_to(found.writes[0])
    with pytest.raises(RuntimeError, match="--keys-file lies in"):
        allowed_files(settings(cache_dir=cache, keys_file=str(tmp_path / "link" / "keys.json")))


@pytest.mark.parametrize("state", ["memory", "s3://bucket/folder"])
def test_a_state_that_is_no_folder_hides_none(state: str) -> None:
    assert allowed_files(settings(state=state)) is not None


def test_a_folder_of_modules_is_left_out_where_something_hidden_lies_in_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path), "relative"])
    shown, hidden = allowed_files(settings()), allowed_files(settings(keys_file=str(tmp_path / "keys.json")))
    assert shown is not None
    assert hidden is not None
    assert (str(tmp_path) in shown.reads, str(tmp_path) in hidden.reads) == (True, False)
    assert "relative" not in shown.reads
