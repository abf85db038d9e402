"""Command-line parser: parse a command and its options, or report an error in one sentence."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any, Final, NoReturn

from engine import printable
from service.core.spelling import hint

COMMANDS: Final = {
    "serve": "run the server until Ctrl-C (the default command)",
    "settings": "list every setting with its value, default, variable and description",
    "ops": "list all ops, or describe one",
    "keys": "add, list or revoke API keys",
    "ingress": "run HAProxy as one address for several servers",
    "doctor": "check that a server with these settings would run correctly on this machine",
    "backup": "write everything stored in --state to a file; the server can keep running",
    "restore": "fill an empty --state from a backup",
}


#: names of commands in other programs, with ours
_ALIASES: Final = {
    **dict.fromkeys(("run", "start", "server", "up", "launch"), "serve"),
    **dict.fromkeys(("config", "configuration", "env"), "settings"),
    **dict.fromkeys(("check", "diagnose", "status"), "doctor"),
    **dict.fromkeys(("dump", "export", "save"), "backup"),
    **dict.fromkeys(("load", "import"), "restore"),
    "proxy": "ingress",
}


class _Parser(argparse.ArgumentParser):
    """Parser without abbreviated flags that reports errors in one sentence; its subparsers do the same."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options | {"allow_abbrev": False})

    def error(self, message: str) -> NoReturn:
        """Print the message and exit with status 2."""
        self.exit(2, f"gradserve: {message}\n")


def parse(arguments: Sequence[str], version: str) -> dict[str, Any]:
    """Return `command`, one of COMMANDS, and its options, None if not given. Raises SystemExit: 0 for help, else 2."""
    words = list(arguments)
    if not words or (words[0].startswith("-") and words[0] not in ("-h", "--help", "--version")):
        words.insert(0, "serve")
    parser = _Parser("gradserve", description="Send a computation graph, get gradients back.")
    parser.add_argument("--version", action="version", version=f"gradserve {version}")
    subparsers = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    commands = {name: subparsers.add_parser(name, help=text) for name, text in COMMANDS.items()}
    if not words[0].startswith("-") and words[0] not in COMMANDS:
        word = _ALIASES.get(words[0].lower(), words[0])
        advice = hint(word, {name: name for name in COMMANDS}, "gradserve --help lists the commands")
        parser.error(f"there is no command {printable(words[0])}; {advice}")
    if words[0] not in COMMANDS:
        parser.parse_args(words)
    from service.admin.flags import add_flags, stray  # noqa: PLC0415 - imports the settings, which --help does not need

    add_flags(words[0], commands[words[0]])
    options, unknown = parser.parse_known_args(words)
    if unknown:
        parser.error(stray(unknown[0], options.command))
    return vars(options)
