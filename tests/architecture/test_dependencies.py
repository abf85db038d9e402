"""What the packages import is declared: an installation without the development tools works."""

from __future__ import annotations

import re
import sys
import tomllib
from functools import cache
from importlib.metadata import packages_distributions
from typing import Any

import pytest

from tests.architecture.source import PACKAGES, ROOT, files, imports

OWN = {*PACKAGES, "clients", "gradserve_client", "tests", "examples", "scripts", "benchmarks", "deploy"}
OPTIONAL = {
    "cudnn",
    "cupy",
    "cupyx",
    "opentelemetry",
    "ray",
}  # by the extras cuda12, cudnn12, …, otel and ray, imported lazily
PARTS = {"pydantic_core": "pydantic"}  # pinned by the one that it is a part of


@cache
def project() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def normal(distribution: str) -> str:
    """The name without version or extras, as package indexes compare it."""
    return re.sub(r"[-_.]+", "-", re.split(r"[<>=\[~! ]", distribution)[0]).lower()


def declared(extra: str | None = None) -> set[str]:
    """The names of the dependencies, or of those of one extra."""
    listed = project()["optional-dependencies"][extra] if extra else project()["dependencies"]
    return {normal(dependency) for dependency in listed}


def for_packages() -> set[str]:
    """The names of what the packages may import, if only where a setting asks for it."""
    return declared() | declared("s3") | declared("cluster")


def third_party(*folders: str) -> set[str]:
    """The modules of others that these folders import."""
    roots = {module.partition(".")[0] for path in files(*folders) for module in imports(path)}
    siblings = {path.stem for path in files("examples")}
    return roots - OWN - siblings - OPTIONAL - set(sys.stdlib_module_names)


def undeclared(modules: set[str], known: set[str]) -> list[str]:
    """Those modules of which no distribution is known."""
    owners = packages_distributions()
    named = {module: {normal(d) for d in owners.get(PARTS.get(module, module), ())} for module in modules}
    return sorted(module for module, distributions in named.items() if not distributions & known)


@pytest.mark.slow
def test_what_the_packages_import_is_declared() -> None:
    assert third_party(*PACKAGES)
    assert not undeclared(third_party(*PACKAGES), for_packages())


def test_what_the_examples_import_is_declared() -> None:
    assert not undeclared(third_party("examples"), declared() | declared("demo"))


@pytest.mark.slow
def test_what_the_tests_import_is_declared() -> None:
    # jax by the extra reference; the others by tests/facades/clients.txt. What needs them is skipped without
    optional = {"jax", "umbridge", "emcee", "tritonclient", "kserve", "tesseract_core", "tesseract_jax", "requests"}
    everything = for_packages() | declared("demo") | declared("docs") | declared("dev")
    assert not undeclared(third_party("tests", "scripts", "clients/conformance") - optional, everything)


def test_something_undeclared_is_noticed() -> None:
    assert undeclared({"numpy", "no_such_module"}, declared()) == ["no_such_module"]


@pytest.mark.parametrize("table", ["dependencies", "demo", "otel", "docs", "dev", "s3", "cluster", "ray"])
def test_every_dependency_has_its_reason(table: str) -> None:
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    entries = text.partition(f"\n{table} = [\n")[2].partition("\n]")[0].splitlines()
    assert entries
    assert not [entry for entry in entries if "#" not in entry]
