"""The package: by itself, with two dependencies, of the server's version, and typed; what has an extra needs it."""

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


#: what needs an extra, which is called like it
BRIDGES = ("jax", "onnx", "torch")


def project(folder: Path) -> dict[str, Any]:
    return tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def test_nothing_of_the_server_is_imported() -> None:
    """In an isolated process, in which the server's packages are not found, and are not looked for either."""
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


def test_its_dependencies_are_two() -> None:
    names = {dependency.partition(">")[0] for dependency in project(PYTHON)["dependencies"]}
    assert names == {"httpx", "numpy"}


def imported(paths: Iterable[Path]) -> set[str]:
    named = {module.partition(".")[0] for path in paths for module in imports(path)}
    return named - {*sys.stdlib_module_names}


def test_it_imports_nothing_else_and_what_has_an_extra_that() -> None:
    bridges = {bridge: files(f"clients/python/gradserve_client/{bridge}") for bridge in BRIDGES}
    rest = {*files("clients/python/gradserve_client")} - {path for paths in bridges.values() for path in paths}
    assert imported(rest) == {"gradserve_client", "httpx", "numpy"}
    for bridge, paths in bridges.items():
        assert imported(paths) == {"gradserve_client", "numpy", bridge}
    assert {*project(PYTHON)["optional-dependencies"]} == {*BRIDGES, "scipy"}


def test_its_version_is_the_servers() -> None:
    assert project(PYTHON)["version"] == project(ROOT)["version"] == gradserve_client.__version__


def test_it_is_typed() -> None:
    assert (PYTHON / "gradserve_client" / "py.typed").is_file()


def test_nobody_depends_on_it_by_its_name() -> None:
    """It is published nowhere: what is called so elsewhere would be somebody else's."""
    own = project(ROOT)
    stated = [own["dependencies"], *own["optional-dependencies"].values()]
    assert not [name for names in stated for name in names if "gradserve-client" in name]
