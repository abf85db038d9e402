"""Import order of the folders in each package: one direction, no cycles."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from tests.architecture.source import PACKAGES, ROOT, files, imports, name, parsed

#: folders of a package, lowest first: each may import from the earlier ones
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


def module_imports(package: str) -> dict[str, set[str]]:
    """Map each module of a package to the modules of the package that it imports, anywhere in the file."""
    modules = {module_of(path): path for path in files(package)}
    return {
        module: {target for target in imported_names(path) if target in modules} - {module}
        for module, path in modules.items()
    }


def imported_names(path: Path) -> Iterator[str]:
    """Yield the modules that a file imports, and a.b for each `from a import b`."""
    yield from imports(path)
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def room(module: str) -> str:
    """Return the folder that contains a module, or the module's own name at the top level."""
    return module.split(".")[1] if "." in module else ""


@pytest.mark.slow
@pytest.mark.parametrize("package", PACKAGES)
def test_imports_have_no_cycles(package: str) -> None:
    inside = {
        module: {m for m in used if m.count(".") or m != package} for module, used in module_imports(package).items()
    }
    try:
        TopologicalSorter(inside).prepare()
    except CycleError as error:
        pytest.fail(f"import cycle: {' → '.join(error.args[1])}")


@pytest.mark.slow
@pytest.mark.parametrize(("package", "order"), [("engine", ENGINE), ("service", SERVICE)])
def test_imports_follow_folder_order(package: str, order: tuple[str, ...]) -> None:
    imports_between_folders = {
        (module, used)
        for module, all_used in module_imports(package).items()
        for used in all_used
        if package not in (module, used) and room(module) != room(used)
    }
    assert imports_between_folders
    assert not {
        (module, used)
        for module, used in imports_between_folders
        if order.index(room(used)) > order.index(room(module))
    }


def test_engine_modules_do_not_import_public_api() -> None:
    assert not [name(path) for path in files("engine") if "engine" in imports(path)]


def test_files_do_not_shadow_other_modules() -> None:
    """Reject names such as numbers.py, which would shadow the standard library when run from the same folder."""
    taken = {*sys.stdlib_module_names, "numpy", "cupy", "scipy", "attrs", "attr", "pydantic", "fastapi", "h11", "jiter"}
    taken |= {"orjson", "httpx", "starlette", "safetensors", "hypothesis", "pytest", "jax", "torch"}
    shadowing = [path for path in files(*PACKAGES) if path.stem in taken and path.stem not in ("__init__", "__main__")]
    assert not [name(path) for path in shadowing]
