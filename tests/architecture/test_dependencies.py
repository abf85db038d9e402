"""Declared dependencies: the packages import nothing that only the development tools install."""

from __future__ import annotations

import re
import sys
import tomllib
from functools import cache
from importlib.metadata import packages_distributions
from typing import Any

import pytest

from tests.architecture.source import PACKAGES, ROOT, files, imports

OWN_PACKAGES = {*PACKAGES, "clients", "gradserve_client", "tests", "examples", "scripts", "benchmarks", "deploy"}
OPTIONAL = {
    "cudnn",
    "cupy",
    "cupyx",
    "opentelemetry",
    "ray",
}  # installed by the extras cuda12, cudnn12, …, otel and ray, imported lazily
PARTS = {"pydantic_core": "pydantic"}  # pinned by the package it belongs to


@cache
def project_metadata() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def normalized_name(distribution: str) -> str:
    """Return the normalized name, without version or extras."""
    return re.sub(r"[-_.]+", "-", re.split(r"[<>=\[~! ]", distribution)[0]).lower()


def declared_dependencies(extra: str | None = None) -> set[str]:
    """Return the names of the dependencies, or of the dependencies of one extra."""
    listed = project_metadata()["optional-dependencies"][extra] if extra else project_metadata()["dependencies"]
    return {normalized_name(dependency) for dependency in listed}


def package_dependencies() -> set[str]:
    """Return the distributions that the packages may import, including the optional ones."""
    return declared_dependencies() | declared_dependencies("s3") | declared_dependencies("cluster")


def third_party_modules(*folders: str) -> set[str]:
    """Return the third-party modules that the folders import."""
    roots = {module.partition(".")[0] for path in files(*folders) for module in imports(path)}
    siblings = {path.stem for path in files("examples")}
    return roots - OWN_PACKAGES - siblings - OPTIONAL - set(sys.stdlib_module_names)


def undeclared_modules(modules: set[str], allowed: set[str]) -> list[str]:
    """Return the modules that no allowed distribution provides."""
    owners = packages_distributions()
    names = {module: {normalized_name(d) for d in owners.get(PARTS.get(module, module), ())} for module in modules}
    return sorted(module for module, distributions in names.items() if not distributions & allowed)


@pytest.mark.slow
def test_package_imports_are_declared() -> None:
    assert third_party_modules(*PACKAGES)
    assert not undeclared_modules(third_party_modules(*PACKAGES), package_dependencies())


def test_example_imports_are_declared() -> None:
    assert not undeclared_modules(
        third_party_modules("examples"), declared_dependencies() | declared_dependencies("demo")
    )


@pytest.mark.slow
def test_test_imports_are_declared() -> None:
    # The extra `reference` installs jax, tests/facades/clients.txt the rest. Tests skip if they are missing
    optional = {"jax", "umbridge", "emcee", "tritonclient", "kserve", "tesseract_core", "tesseract_jax", "requests"}
    everything = (
        package_dependencies()
        | declared_dependencies("demo")
        | declared_dependencies("docs")
        | declared_dependencies("dev")
    )
    assert not undeclared_modules(third_party_modules("tests", "scripts", "clients/conformance") - optional, everything)


def test_undeclared_import_is_detected() -> None:
    assert undeclared_modules({"numpy", "no_such_module"}, declared_dependencies()) == ["no_such_module"]


@pytest.mark.parametrize("table", ["dependencies", "demo", "otel", "docs", "dev", "s3", "cluster", "ray"])
def test_every_dependency_has_a_comment(table: str) -> None:
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    entries = text.partition(f"\n{table} = [\n")[2].partition("\n]")[0].splitlines()
    assert entries
    assert not [entry for entry in entries if "#" not in entry]
