"""The kernel cache of a server: its folder, its store, and the options of its workers."""

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
    """An environment without variables for caches."""
    for name in ("XDG_CACHE_HOME", "GRADSERVE_CACHE_DIR"):
        monkeypatch.delenv(name, raising=False)
    return monkeypatch


class TestFolder:
    """The cache folder."""

    def test_default_is_in_the_users_cache(self, unset: pytest.MonkeyPatch, tmp_path: Path) -> None:
        unset.setenv("HOME", str(tmp_path))
        assert Settings().cache_dir == tmp_path / ".cache" / "gradserve"
        unset.setenv("XDG_CACHE_HOME", str(tmp_path / "elsewhere"))
        assert Settings().cache_dir == tmp_path / "elsewhere" / "gradserve"

    @pytest.mark.parametrize("stated", ["", "caches", "./caches"])
    def test_relative_xdg_cache_home_is_ignored(self, unset: pytest.MonkeyPatch, tmp_path: Path, stated: str) -> None:
        unset.setenv("HOME", str(tmp_path))
        unset.setenv("XDG_CACHE_HOME", stated)
        assert Settings().cache_dir == tmp_path / ".cache" / "gradserve"

    def test_missing_home_has_no_cache(self, unset: pytest.MonkeyPatch, tmp_path: Path) -> None:
        unset.setenv("HOME", str(tmp_path / "nonexistent"))
        assert Settings().cache_dir is None

    def test_unwritable_home_has_no_cache(self, unset: pytest.MonkeyPatch, tmp_path: Path) -> None:
        unset.setenv("HOME", str(tmp_path))
        unset.setattr(os, "access", lambda path, mode: not (Path(path) == tmp_path and mode & os.W_OK))
        assert machine.cache_folder() is None

    def test_user_without_a_home_has_no_cache(self, unset: pytest.MonkeyPatch) -> None:
        def home() -> Path:
            raise RuntimeError("Could not determine home directory.")

        unset.setattr(Path, "home", home)
        assert machine.cache_folder() is None

    @pytest.mark.parametrize("stated", ["none", ""])
    def test_cache_can_be_disabled(self, unset: pytest.MonkeyPatch, stated: str) -> None:
        unset.setenv("GRADSERVE_CACHE_DIR", stated)
        assert Settings().cache_dir is None
        assert Settings(cache_dir=stated).cache_dir is None

    def test_relative_folder_becomes_absolute(self, unset: pytest.MonkeyPatch, tmp_path: Path) -> None:
        unset.chdir(tmp_path)
        assert Settings(cache_dir="here").cache_dir == tmp_path / "here"
        unset.setenv("HOME", str(tmp_path))
        assert Settings(cache_dir="~/there").cache_dir == tmp_path / "there"

    def test_home_of_an_unknown_user_is_refused(self) -> None:
        with pytest.raises(ValueError, match="its home directory is unknown"):
            Settings(cache_dir="~nobody-of-this-name/there")

    def test_formatted_folder_can_be_read_back(self, unset: pytest.MonkeyPatch, tmp_path: Path) -> None:
        assert format_setting("cache_dir", None) == "none"
        unset.setenv("HOME", str(tmp_path))
        folder = default(Settings.model_fields["cache_dir"], Settings())
        assert Settings(cache_dir=format_setting("cache_dir", folder)).cache_dir == folder


class TestStore:
    """The kernel store."""

    def test_store_is_shared_by_servers(self, tmp_path: Path) -> None:
        settings = Settings(cache_dir=tmp_path)
        first, second = kernel_store(settings), kernel_store(settings)
        assert first
        assert second
        first.put(KEY, b"code")
        assert second.get(KEY) == b"code"

    def test_store_without_a_folder_is_in_memory(self) -> None:
        store = kernel_store(Settings(cache_dir=None))
        assert store
        store.put(KEY, b"code")
        assert store.get(KEY) == b"code"

    def test_no_store_without_compilation(self, tmp_path: Path) -> None:
        assert kernel_store(Settings(compile="off", cache_dir=tmp_path)) is None

    def test_world_writable_volume_is_accepted(self, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
        """Orchestrators provide such volumes; folders that are created in them are private all the same."""
        tmp_path.chmod(0o777)
        self.test_store_is_shared_by_servers(tmp_path)
        assert not caplog.records
        (created,) = tmp_path.iterdir()
        assert created.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize(("cores", "workers", "share"), [(2, 2, 1), (8, 4, 2), (2, 4, 1), (64, 1, 64), (7, 2, 3)])
def test_each_worker_gets_its_share_of_processors(
    monkeypatch: pytest.MonkeyPatch, cores: int, workers: int, share: int
) -> None:
    monkeypatch.setattr(machine, "cpus", lambda: cores)
    assert machine.cpus_per_worker(workers) == share


class TestWorker:
    """Options that a worker passes to its executor."""

    @pytest.fixture
    def executor_options(self, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
        """Options that the executor of the next worker is opened with."""
        recorded: dict[str, Any] = {}

        def opening(device: str, **options: Any) -> Executor:
            recorded.update(options)
            return open_executor(device)

        monkeypatch.setattr(worker, "open_executor", opening)
        return recorded

    def test_worker_passes_on_its_settings(
        self, executor_options: dict[str, Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        monkeypatch.setattr(machine, "cpus", lambda: 8)
        worker.Worker(Settings(device="cpu", workers=2, determinism="bitwise", cache_dir=tmp_path))
        assert (executor_options["threads"], executor_options["determinism"], executor_options["compile"]) == (
            4,
            "bitwise",
            "on",
        )
        executor_options["store"].put(KEY, b"code")
        assert (tmp_path / "kernels" / f"{KEY}.kernel").exists()

    def test_worker_with_compile_off_has_no_store(self, executor_options: dict[str, Any]) -> None:
        worker.Worker(Settings(device="cpu", compile="off"))
        assert (executor_options["compile"], executor_options["store"]) == ("off", None)
