"""The operations page: its commands, flags, metrics and dashboard panels exist."""

from __future__ import annotations

import argparse
import re
import shlex
from pathlib import Path

import pytest

from service.admin.arguments import parse
from service.admin.flags import add_flags
from service.core.settings import Settings, flag
from tests.deploy.monitoring import known, panels

PAGE = (Path(__file__).parents[2] / "docs" / "operations.md").read_text(encoding="utf-8")
#: commands in blocks and between backticks
COMMANDS = re.findall(r"^gradserve (.+)$", PAGE, re.MULTILINE) + re.findall(r"`gradserve ([a-z][^`]*)`", PAGE)


@pytest.mark.parametrize("command", sorted(set(COMMANDS)))
def test_commands_parse(command: str) -> None:
    words = shlex.split(re.sub(r"\$\([^)]*\)", "today", command))
    with_arguments = {"backup": ["backup", "FILE"], "restore": ["restore", "FILE"]}
    assert parse(with_arguments.get(words[0], words) if len(words) == 1 else words, "0")["command"] == words[0]


def test_page_shows_main_commands() -> None:
    assert {"doctor", "serve", "backup", "restore", "keys"} <= {command.split()[0] for command in COMMANDS}


def test_flags_exist() -> None:
    key_flags = {"--rate", "--concurrency", "--namespace", "--scopes"}
    all_flags = {flag(name) for name in Settings.model_fields} | {"--json"} | key_flags | ingress_flags()
    used_flags = set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", PAGE))
    assert used_flags
    assert used_flags <= all_flags


def ingress_flags() -> set[str]:
    """The flags of `gradserve ingress`."""
    parser = argparse.ArgumentParser()
    add_flags("ingress", parser)
    return set(parser._option_string_actions)


def test_metrics_exist() -> None:
    names = set(re.findall(r"`((?:gradserve|haproxy|ray)_[a-z_]+)`", PAGE))
    families = {re.sub(r"_(bucket|sum|count)$", "", name) for name in known()}
    assert names
    assert names <= families


def test_dashboard_panels_exist() -> None:
    drawn = {panel["title"] for panel in panels()}
    named = {" ".join(name.split()) for name in re.findall(r"(?<!\*)\*([A-Z][^*]+)\*(?!\*)", PAGE)}
    assert named
    assert named <= drawn
