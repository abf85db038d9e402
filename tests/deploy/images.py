"""The Dockerfile and compose.yaml, read by libraries of the development extra.

Tests that need these libraries are skipped if they are missing.
"""

from __future__ import annotations

import json
import re
import shutil
import sys
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

import pytest

ROOT = Path(__file__).parents[2]
TARGETS = ("cpu", "cuda", "cudnn")
SKIP_REASON = "part of the extra dev, on Linux on x86-64"
#: names of variables that hold a secret rather than the path of a file with one
SECRET_NAME: Final = re.compile(r"(SECRET|TOKEN|PASSWORD|API_KEY|ACCESS_KEY)$")


def shows_a_secret(run: Any, secrets: Iterable[str]) -> bool:
    """Whether a command, or a list of them, expands one of these variables: $NAME, ${NAME}, $(NAME)."""
    text = json.dumps(run)
    return any(re.search(rf"\$[({{]?{name}\b", text) for name in secrets)


def reader() -> Any:
    """The module that reads a Dockerfile."""
    return pytest.importorskip("deploy.check.dockerfile", reason=SKIP_REASON)


def stages() -> dict[str, Any]:
    """The Dockerfile's stages by name."""
    return reader().read(ROOT / "Dockerfile")


def instructions(target: str) -> list[Any]:
    """The instructions that build a target, its ancestors' first, without stages that it only copies from."""
    all_stages = stages()
    lineage = [all_stages[target]]
    while lineage[0].base in all_stages:
        lineage.insert(0, all_stages[lineage[0].base])
    return [instruction for stage in lineage for instruction in stage.instructions]


def last(target: str, name: str) -> Any:
    """The last instruction of this name, which is in effect for a target."""
    return [instruction for instruction in instructions(target) if instruction.name == name][-1]


def environment(target: str) -> dict[str, str]:
    """The variables that a target sets, as written."""
    words = [word for instruction in instructions(target) if instruction.name == "ENV" for word in instruction.words]
    return dict(word.split("=", 1) for word in words)


def volumes(target: str) -> set[str]:
    """The folders that a target declares to be volumes."""
    return {word for instruction in instructions(target) if instruction.name == "VOLUME" for word in instruction.words}


def labels(target: str) -> dict[str, str]:
    """A target's labels."""
    return dict(word.split("=", 1) for word in last(target, "LABEL").words)


def health(target: str) -> list[str]:
    """The words after HEALTHCHECK's flags: CMD and a list."""
    return ["CMD", *reader().Instruction("CMD", (), last(target, "HEALTHCHECK").value.removeprefix("CMD")).command]


def compose() -> dict[str, Any]:
    """compose.yaml as Compose reads it."""
    return read_compose(ROOT / "compose.yaml")


def read_compose(path: Path) -> dict[str, Any]:
    """A Compose file with its anchors resolved, and the defaults in place of variables that have one."""
    text = re.sub(r"\$\{[A-Z_]+:-([^}]*)\}", r"\1", path.read_text(encoding="utf-8"))
    document: dict[str, Any] = pytest.importorskip("yaml", reason=SKIP_REASON).safe_load(text)
    return document


def project() -> dict[str, Any]:
    """The [project] table of pyproject.toml."""
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def linter() -> str:
    """The program hadolint: beside this interpreter, or anywhere."""
    beside = Path(sys.executable).with_name("hadolint")
    path = str(beside) if beside.exists() else shutil.which("hadolint")
    return path or pytest.skip(SKIP_REASON)
