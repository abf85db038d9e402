"""The package: independent of the server, two dependencies, the server's version, types, and extras."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import gradserve_client
from tests.architecture.source import files, imports

PYTHON = Path(__file__).parents[1]
ROOT = PYTHON.parents[1]


#: modules that need the extra of the same name
BRIDGES = ("jax", "onnx", "torch")


def project(folder: Path) -> dict[str, Any]:
    return tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def test_package_imports_no_server_code() -> None:
    """Import all modules in an isolated process that cannot find the server's packages."""
    program = (
        f"import sys; sys.path.insert(0, {str(PYTHON)!r}); import gradserve_client, pkgutil, importlib\n"
        "for found in pkgutil.walk_packages(gradserve_client.__path__, 'gradserve_client.'):\n"
        f"    if found.name.split('.')[1] not in {BRIDGES}: importlib.import_module(found.name)\n"
        "print(*sorted({name.partition('.')[0] for name in sys.modules}))"
    )
    run = subprocess.run([sys.executable, "-I", "-c", program], capture_output=True, text=True, check=True)
    loaded = {*run.stdout.split()}
    assert {"gradserve_client", "numpy", "httpx"} <= loaded
    assert not loaded & {"engine", "schemas", "service", "clients", "tests", "pydantic", "orjson", "safetensors"}


def test_package_has_two_dependencies() -> None:
    names = {dependency.partition(">")[0] for dependency in project(PYTHON)["dependencies"]}
    assert names == {"httpx", "numpy"}


def imported(paths: Iterable[Path]) -> set[str]:
    named = {module.partition(".")[0] for path in paths for module in imports(path)}
    return named - {*sys.stdlib_module_names}


def test_modules_import_only_declared_dependencies() -> None:
    bridges = {bridge: files(f"clients/python/gradserve_client/{bridge}") for bridge in BRIDGES}
    rest = {*files("clients/python/gradserve_client")} - {path for paths in bridges.values() for path in paths}
    assert imported(rest) == {"gradserve_client", "httpx", "numpy"}
    for bridge, paths in bridges.items():
        assert imported(paths) == {"gradserve_client", "numpy", bridge}
    assert {*project(PYTHON)["optional-dependencies"]} == {*BRIDGES, "scipy"}


def test_version_matches_the_server() -> None:
    assert project(PYTHON)["version"] == project(ROOT)["version"] == gradserve_client.__version__


def test_package_is_typed() -> None:
    assert (PYTHON / "gradserve_client" / "py.typed").is_file()


def test_server_does_not_depend_on_the_package_name() -> None:
    """The package is not published, so that its name on an index would be somebody else's package."""
    own = project(ROOT)
    dependencies = [own["dependencies"], *own["optional-dependencies"].values()]
    assert not [name for names in dependencies for name in names if "gradserve-client" in name]
