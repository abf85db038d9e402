"""Libraries of a card: one copy of each, where it was found, and what is said where it was not."""

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


def found_by(monkeypatch: pytest.MonkeyPatch, load: Any) -> None:
    """Have this in the place of cuda.pathfinder."""
    module = ModuleType("cuda.pathfinder")
    module.load_nvidia_dynamic_lib = load  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "cuda", ModuleType("cuda"))
    monkeypatch.setitem(sys.modules, "cuda.pathfinder", module)


def test_without_pathfinder_nothing_is_found_and_it_is_said_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cuda.pathfinder", None)
    found = card_library("cublasLt")
    assert found.loaded is None
    assert "CuPy 14" in str(found)
    assert str(found).endswith(FALLBACKS["cublasLt"])


@pytest.mark.parametrize("error", [RuntimeError("it is not there\nand more"), PermissionError("it is not there")])
def test_what_keeps_it_from_being_loaded_is_one_line(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    def load(_: str) -> Any:
        raise error

    found_by(monkeypatch, load)
    assert card_library("cudnn") == CardLibrary("cudnn", missing="it is not there")


def test_it_is_asked_for_once_and_opened_where_it_was_found(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    path = ctypes.util.find_library("c")
    assert path is not None

    def load(name: str) -> Any:
        asked.append(name)
        return SimpleNamespace(abs_path=path)

    found_by(monkeypatch, load)
    found = card_library("nvJitLink")
    assert card_library("nvJitLink") is found
    assert asked == ["nvJitLink"]
    assert (found.path, found.version) == (path, None)  # libc knows no version of nvJitLink
    assert found.loaded._handle == ctypes.CDLL(path)._handle
    assert str(found) == f"nvJitLink of an unknown version, {path}"


def test_a_file_that_is_none_is_not_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    found_by(monkeypatch, lambda name: SimpleNamespace(abs_path="/nowhere/libcudnn.so"))
    assert "libcudnn.so" in str(card_library("cudnn"))
    found_by(monkeypatch, lambda name: SimpleNamespace(abs_path=None))
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
def test_versions_are_as_the_library_has_them(name: Any, functions: dict[str, Any], version: str) -> None:
    library = SimpleNamespace(**functions)
    for function in functions.values():
        function.restype = None
    assert libraries._version(name, library) == version
