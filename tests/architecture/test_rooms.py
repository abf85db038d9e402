"""The rooms of the packages: imports between them point one way, without cycles."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from tests.architecture.source import PACKAGES, ROOT, files, imports, name, parsed

#: each room, the lowest first: it may import from those before it
ENGINE = ("ir", "autodiff", "codegen", "ops", "compiler", "runtime", "analysis", "cuda")
SERVICE = (
    "core",
    "store",
    "api",
    "facades",
    "workers",
    "observe",
    "web",
    "cluster",
    "fleet",
    "app",
    "asgi",
    "admin",
    "cli",
    "__main__",
)


def module_of(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def arrows(package: str) -> dict[str, set[str]]:
    """For each module of a package, the modules of it that it imports, by type only and inside functions too."""
    modules = {module_of(path): path for path in files(package)}
    return {
        module: {known for known in imported(path) if known in modules} - {module} for module, path in modules.items()
    }


def imported(path: Path) -> Iterator[str]:
    """Modules that a file names: as such, and `from a import b` as a.b where that is one."""
    yield from imports(path)
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def room(module: str) -> str:
    """The folder of the package that a module is in; its own name, where it is in none."""
    return module.split(".")[1] if "." in module else ""


@pytest.mark.slow
@pytest.mark.parametrize("package", PACKAGES)
def test_no_imports_go_in_a_circle(package: str) -> None:
    inside = {module: {m for m in used if m.count(".") or m != package} for module, used in arrows(package).items()}
    try:
        TopologicalSorter(inside).prepare()
    except CycleError as error:
        pytest.fail(f"a circle: {' → '.join(error.args[1])}")


@pytest.mark.slow
@pytest.mark.parametrize(("package", "order"), [("engine", ENGINE), ("service", SERVICE)])
def test_the_rooms_are_in_their_order(package: str, order: tuple[str, ...]) -> None:
    found = {
        (module, used)
        for module, all_used in arrows(package).items()
        for used in all_used
        if package not in (module, used) and room(module) != room(used)
    }
    assert found
    assert not {(m, u) for m, u in found if order.index(room(u)) > order.index(room(m))}


def test_nothing_in_the_engine_imports_its_public_face() -> None:
    assert not [name(path) for path in files("engine") if "engine" in imports(path)]


def test_no_file_has_the_name_of_a_module_elsewhere() -> None:
    """A file called numbers.py, run or imported from its own folder, is taken for Python's."""
    taken = {*sys.stdlib_module_names, "numpy", "cupy", "scipy", "attrs", "attr", "pydantic", "fastapi", "h11", "jiter"}
    taken |= {"orjson", "httpx", "starlette", "safetensors", "hypothesis", "pytest", "jax", "torch"}
    own = [path for path in files(*PACKAGES) if path.stem in taken and path.stem not in ("__init__", "__main__")]
    assert not [name(path) for path in own]
