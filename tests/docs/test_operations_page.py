"""The page for operators: its commands are commands, its figures and panels are there."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from service.admin.arguments import parse
from service.core.settings import Settings, flag
from tests.deploy.monitoring import exposed, panels

PAGE = (Path(__file__).parents[2] / "docs" / "operations.md").read_text(encoding="utf-8")
#: in a block, or between backticks, from where a command begins to its end
COMMANDS = re.findall(r"^gradserve (.+)$", PAGE, re.MULTILINE) + re.findall(r"`gradserve ([a-z][^`]*)`", PAGE)


@pytest.mark.parametrize("command", sorted(set(COMMANDS)))
def test_commands_can_be_given(command: str) -> None:
    words = shlex.split(re.sub(r"\$\([^)]*\)", "today", command))
    needed = {"backup": ["backup", "FILE"], "restore": ["restore", "FILE"]}
    assert parse(needed.get(words[0], words) if len(words) == 1 else words, "0")["command"] == words[0]


def test_there_are_commands() -> None:
    assert {"doctor", "serve", "backup", "restore", "keys"} <= {command.split()[0] for command in COMMANDS}


def test_flags_are_there() -> None:
    of_keys = {"--rate", "--concurrency", "--namespace", "--scopes"}
    known = {flag(name) for name in Settings.model_fields} | {"--json"} | of_keys
    stated = set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", PAGE))
    assert stated
    assert stated <= known


def test_figures_are_there() -> None:
    names = set(re.findall(r"`(gradserve_[a-z_]+)`", PAGE))
    families = {re.sub(r"_(bucket|sum|count)$", "", name) for name in exposed()}
    assert names
    assert names <= families


def test_panels_are_there() -> None:
    drawn = {panel["title"] for panel in panels()}
    named = {" ".join(name.split()) for name in re.findall(r"(?<!\*)\*([A-Z][^*]+)\*(?!\*)", PAGE)}
    assert named
    assert named <= drawn
