"""The runner's IR: what its C source is made into, with nothing in it of a machine."""

from __future__ import annotations

import tomllib

import pytest

from engine.codegen.native.native_call import runner_text
from scripts.runner_ir import IR_FILE, SOURCE, VERSION, compiled, compiler, digest
from tests.architecture.source import ROOT


def test_it_says_that_it_was_made_of_the_source_and_the_layout_of_today() -> None:
    """Without a compiler too: `python -m scripts.runner_ir` makes it anew."""
    assert runner_text().splitlines()[0].split()[-1] == digest()


@pytest.mark.slow
def test_made_anew_it_is_the_same() -> None:
    found = compiler()
    if found is None:
        pytest.skip(f"clang {VERSION} is not installed")
    assert compiled(found) == runner_text()


def test_it_names_no_processor() -> None:
    assert not {"target", "source_filename"} & {line.split(" ")[0] for line in runner_text().splitlines()}
    assert '"' not in runner_text()


def test_both_go_into_the_package() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert settings["tool"]["setuptools"]["package-data"]["engine.codegen.native"] == [
        SOURCE.name,
        f"generated/{IR_FILE.name}",
    ]
