"""Where a server keeps its kernels: what the settings say, and folders of its own in folders that are not."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from engine import open_executor
from engine.runtime.interpreter import Executor
from service.core import machine
from service.core.settings import Settings, default, format_setting
from service.workers import worker
from service.workers.worker import kernel_store

KEY = "0" * 64


@pytest.fixture
def unset(monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    """An environment that says nothing of caches."""
    for name in ("XDG_CACHE_HOME", "GRADSERVE_CACHE_DIR"):
        monkeypatch.delenv(name, raising=False)
    return monkeypatch


class TestFolder:
    """Which folder it is."""

    def test_it_is_in_the_users_cache(self, unset: pytest.MonkeyPatch, tmp_path: Path) -> None:
        unset.setenv("HOME", str(tmp_path))
        assert Settings().cache_dir == tmp_path / ".cache" / "gradserve"
        unset.setenv("XDG_CACHE_HOME", str(tmp_path / "elsewhere"))
        assert Settings().cache_dir == tmp_path / "elsewhere" / "gradserve"

    @pytest.mark.parametrize("stated", ["", "caches", "./caches"])
    def test_a_relative_cache_is_ignored(self, unset: pytest.MonkeyPatch, tmp_path: Path, stated: str) -> None:
        unset.setenv("HOME", str(tmp_path))
        unset.setenv("XDG_CACHE_HOME", stated)
        assert Settings().cache_dir == tmp_path / ".cache" / "gradserve"

    def test_a_home_that_is_not_there(self, unset: pytest.MonkeyPatch, tmp_path: Path) -> None:
        unset.setenv("HOME", str(tmp_path / "nonexistent"))
        assert Settings().cache_dir is None

    def test_a_home_that_cannot_be_written_to(self, unset: pytest.MonkeyPatch, tmp_path: Path) -> None:
        unset.setenv("HOME", str(tmp_path))
        unset.setattr(os, "access", lambda path, mode: not (Path(path) == tmp_path and mode & os.W_OK))
        assert machine.cache_folder() is None

    def test_a_user_without_a_home(self, unset: pytest.MonkeyPatch) -> None:
        def home() -> Path:
            raise RuntimeError("Could not determine home directory.")

        unset.setattr(Path, "home", home)
        assert machine.cache_folder() is None

    @pytest.mark.parametrize("stated", ["none", ""])
    def test_none_is_none(self, unset: pytest.MonkeyPatch, stated: str) -> None:
        unset.setenv("GRADSERVE_CACHE_DIR", stated)
        assert Settings().cache_dir is None
        assert Settings(cache_dir=stated).cache_dir is None

    def test_a_folder_stays_the_same_when_the_process_moves(self, unset: pytest.MonkeyPatch, tmp_path: Path) -> None:
        unset.chdir(tmp_path)
        assert Settings(cache_dir="here").cache_dir == tmp_path / "here"
        unset.setenv("HOME", str(tmp_path))
        assert Settings(cache_dir="~/there").cache_dir == tmp_path / "there"

    def test_a_home_that_nobody_has(self) -> None:
        with pytest.raises(ValueError, match="the home that it begins with is not known"):
            Settings(cache_dir="~nobody-of-this-name/there")

    def test_it_is_shown_as_it_can_be_given(self, unset: pytest.MonkeyPatch, tmp_path: Path) -> None:
        assert format_setting("cache_dir", None) == "none"
        unset.setenv("HOME", str(tmp_path))
        folder = default(Settings.model_fields["cache_dir"], Settings())
        assert Settings(cache_dir=format_setting("cache_dir", folder)).cache_dir == folder


class TestStore:
    """What is made of it."""

    def test_what_one_server_keeps_the_next_one_finds(self, tmp_path: Path) -> None:
        settings = Settings(cache_dir=tmp_path)
        first, second = kernel_store(settings), kernel_store(settings)
        assert first
        assert second
        first.put(KEY, b"code")
        assert second.get(KEY) == b"code"

    def test_without_a_folder_it_keeps_them_itself(self) -> None:
        store = kernel_store(Settings(cache_dir=None))
        assert store
        store.put(KEY, b"code")
        assert store.get(KEY) == b"code"

    def test_there_is_none_where_nothing_is_compiled(self, tmp_path: Path) -> None:
        assert kernel_store(Settings(compile="off", cache_dir=tmp_path)) is None

    def test_a_volume_that_everybody_may_write_to_will_do(
        self, tmp_path: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        """As orchestrators hand them out; what is made in it is private all the same."""
        tmp_path.chmod(0o777)
        self.test_what_one_server_keeps_the_next_one_finds(tmp_path)
        assert not caplog.records
        (made,) = tmp_path.iterdir()
        assert made.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize(("cores", "workers", "share"), [(2, 2, 1), (8, 4, 2), (2, 4, 1), (64, 1, 64), (7, 2, 3)])
def test_each_worker_has_its_share(monkeypatch: pytest.MonkeyPatch, cores: int, workers: int, share: int) -> None:
    monkeypatch.setattr(machine, "cpus", lambda: cores)
    assert machine.cpus_per_worker(workers) == share


class TestWorker:
    """What a worker asks of its executor."""

    @pytest.fixture
    def asked(self, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
        """What the executor of the next worker is opened with."""
        given: dict[str, Any] = {}

        def opening(device: str, **options: Any) -> Executor:
            given.update(options)
            return open_executor(device)

        monkeypatch.setattr(worker, "open_executor", opening)
        return given

    def test_it_hands_on_the_settings(
        self, asked: dict[str, Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        monkeypatch.setattr(machine, "cpus", lambda: 8)
        worker.Worker(Settings(device="cpu", workers=2, determinism="bitwise", cache_dir=tmp_path))
        assert (asked["threads"], asked["determinism"], asked["compile"]) == (4, "bitwise", "on")
        asked["store"].put(KEY, b"code")
        assert (tmp_path / "kernels" / f"{KEY}.kernel").exists()

    def test_it_has_nothing_compiled_that_is_not_to_be(self, asked: dict[str, Any]) -> None:
        worker.Worker(Settings(device="cpu", compile="off"))
        assert (asked["compile"], asked["store"]) == ("off", None)
