"""Files that a worker may open: the server's code and the kernel folder, but never keys, state or homes."""

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


def test_unconfined_worker_may_open_anything() -> None:
    assert allowed_files(settings(confine="off")) is None
    make_folders(None)


def test_server_files_are_readable_and_none_is_writable(tmp_path: Path) -> None:
    allowed = allowed_files(settings())
    assert allowed is not None
    assert str(Path(engine.__file__ or "").parent) in allowed.reads
    assert str(Path(sys.prefix, "lib")) in allowed.reads
    assert {"/proc/meminfo", "/dev/null", "/usr/lib"} <= {*allowed.reads}
    assert (allowed.writes, allowed.devices) == ((), ())
    assert not any(tmp_path.is_relative_to(path) for path in allowed.reads)


def test_kernel_folder_is_writable_and_private(tmp_path: Path) -> None:
    allowed = allowed_files(settings(cache_dir=tmp_path / "cache", compile="on"))
    assert allowed is not None
    (written,) = allowed.writes
    assert Path(written).is_relative_to(tmp_path / "cache")
    make_folders(allowed)
    make_folders(allowed)
    assert Path(written).stat().st_mode & 0o777 == 0o700


def test_folder_that_cannot_be_created_is_ignored(tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file")
    make_folders(allowed_files(settings(cache_dir=tmp_path / "cache")))


@pytest.mark.parametrize("name", ["keys_file", "tls_key", "state"])
def test_secrets_in_readable_folders_are_refused(name: str, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    folder = allowed_files(settings(cache_dir=cache)).writes[0]  # type: ignore[union-attr]
    flag = f"--{name.replace('_', '-')}"
    with pytest.raises(RuntimeError, match=rf"{flag} is in .* move it, or set --confine off"):
        allowed_files(settings(cache_dir=cache, **{name: str(Path(folder, "secret"))}))
    assert allowed_files(settings(cache_dir=cache, **{name: str(tmp_path / "secret")})) is not None


def test_links_are_resolved_before_the_comparison(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    allowed = allowed_files(settings(cache_dir=cache))
    make_folders(allowed)
    assert allowed is not None
    (tmp_path / "link").symlink_to(allowed.writes[0])
    with pytest.raises(RuntimeError, match="--keys-file is in"):
        allowed_files(settings(cache_dir=cache, keys_file=str(tmp_path / "link" / "keys.json")))


@pytest.mark.parametrize("state", ["memory", "s3://bucket/folder"])
def test_state_outside_a_folder_hides_nothing(state: str) -> None:
    assert allowed_files(settings(state=state)) is not None


def test_module_folder_with_a_secret_is_not_readable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path), "relative"])
    shown, hidden = allowed_files(settings()), allowed_files(settings(keys_file=str(tmp_path / "keys.json")))
    assert shown is not None
    assert hidden is not None
    assert (str(tmp_path) in shown.reads, str(tmp_path) in hidden.reads) == (True, False)
    assert "relative" not in shown.reads
