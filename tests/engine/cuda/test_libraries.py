"""Card libraries: each is loaded once, from where it was found, or reported missing with a reason."""

from __future__ import annotations

import ctypes
import ctypes.util
import sys
from collections.abc import Iterator
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from engine.cuda import libraries
from engine.cuda.libraries import FALLBACKS, CardLibrary, card_library


@pytest.fixture(autouse=True)
def _fresh() -> Iterator[None]:
    card_library.cache_clear()
    yield
    card_library.cache_clear()


def replace_pathfinder(monkeypatch: pytest.MonkeyPatch, load: Any) -> None:
    """Replace cuda.pathfinder by this loader."""
    module = ModuleType("cuda.pathfinder")
    module.load_nvidia_dynamic_lib = load  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "cuda", ModuleType("cuda"))
    monkeypatch.setitem(sys.modules, "cuda.pathfinder", module)


def test_missing_pathfinder_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cuda.pathfinder", None)
    library = card_library("cublasLt")
    assert library.loaded is None
    assert "CuPy 14" in str(library)
    assert str(library).endswith(FALLBACKS["cublasLt"])


@pytest.mark.parametrize("error", [RuntimeError("it is not there\nand more"), PermissionError("it is not there")])
def test_load_error_is_reported_in_one_line(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    def load(_: str) -> Any:
        raise error

    replace_pathfinder(monkeypatch, load)
    assert card_library("cudnn") == CardLibrary("cudnn", missing="it is not there")


def test_library_is_located_once_and_opened_there(monkeypatch: pytest.MonkeyPatch) -> None:
    names: list[str] = []
    path = ctypes.util.find_library("c")
    assert path is not None

    def load(name: str) -> Any:
        names.append(name)
        return SimpleNamespace(abs_path=path)

    replace_pathfinder(monkeypatch, load)
    library = card_library("nvJitLink")
    assert card_library("nvJitLink") is library
    assert names == ["nvJitLink"]
    assert (library.path, library.version) == (path, None)  # libc has no version of nvJitLink
    assert library.loaded._handle == ctypes.CDLL(path)._handle
    assert str(library) == f"nvJitLink of an unknown version, {path}"


def test_missing_file_is_not_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    replace_pathfinder(monkeypatch, lambda name: SimpleNamespace(abs_path="/nowhere/libcudnn.so"))
    assert "libcudnn.so" in str(card_library("cudnn"))
    replace_pathfinder(monkeypatch, lambda name: SimpleNamespace(abs_path=None))
    card_library.cache_clear()
    assert card_library("cudnn").loaded is None


def write_two(major: Any, minor: Any) -> int:
    major._obj.value, minor._obj.value = 13, 2
    return 0


@pytest.mark.parametrize(
    ("name", "functions", "version"),
    [
        ("cublasLt", {"cublasLtGetVersion": lambda: 131000}, "13.10.0"),
        ("cublasLt", {"cublasLtGetVersion": lambda: 120901}, "12.9.1"),
        ("cudnn", {"cudnnGetVersion": lambda: 92801}, "9.28.1"),
        ("nvJitLink", {"nvJitLinkVersion": write_two}, "13.2"),
    ],
)
def test_versions_are_formatted(name: Any, functions: dict[str, Any], version: str) -> None:
    library = SimpleNamespace(**functions)
    for function in functions.values():
        function.restype = None
    assert libraries._version(name, library) == version
