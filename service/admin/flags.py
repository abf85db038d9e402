"""Flags of each command, derived from the settings."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from typing import Any, Final

from engine import printable
from service.core.keys.key_file import STORAGE_LIMITS
from service.core.settings import REMOVED, SECRETS, Settings, default, flag, format_setting, variable
from service.core.spelling import hint

#: flags of the ingress with default and help text
_INGRESS_FLAGS: Final = (
    ("dns-port", "8000", "port of the servers whose name is looked up"),
    ("nameserver", None, "HOST:PORT of who is asked for the name; without, whom the machine asks"),
    ("host", "127.0.0.1", "address to listen on. Nobody is asked for a key here: the servers ask"),
    ("port", "8000", "port to listen on; 0 takes a free one and prints it"),
    ("tls-cert", None, "file with the certificate, and those that lead to its issuer, in PEM; without, plain HTTP"),
    ("tls-key", None, "file with the certificate's key, in PEM"),
    ("metrics-port", "8405", "port of /metrics on the loopback; 0: none"),
    ("timeout-ms", "30000", "time for one request, as the servers have it; they get 5 s more to say so themselves"),
    ("shutdown-grace", "30", "seconds that requests in flight get after SIGTERM"),
    ("threads", "1", "threads of HAProxy"),
    ("slots", "32", "servers that there may be at a time"),
    ("max-connections", "4096", "connections at a time"),
    ("server-connections", "500", "connections to each server, less than its --max-connections-per-client"),
)
#: flags of one letter in other programs, with our settings
_LETTERS: Final = {
    "-p": "port",
    "-w": "workers",
    "-H": "host",
    "-k": "keys-file",
    "-l": "log-level",
    "-t": "timeout-ms",
}
#: commands that take every setting
_SETTINGS_COMMANDS: Final = ("serve", "settings", "doctor")


def add_flags(command: str, parser: argparse.ArgumentParser) -> None:
    """Add the flags and arguments of a command to its parser."""
    if command in _SETTINGS_COMMANDS:
        _add_settings(parser, Settings.model_fields)
        for removed in REMOVED:
            parser.add_argument(flag(removed), dest=removed, help=argparse.SUPPRESS)
    if command == "ops":
        parser.add_argument("name", nargs="?", help="an op, by its name or any alias")
    elif command in ("backup", "restore"):
        parser.add_argument("file", help="the file, a tar archive")
        _add_settings(parser, ("state",) if command == "backup" else ("state", "cluster"))
    elif command == "doctor":
        parser.add_argument("--json", action="store_true", help="print what was found as JSON, for programs")
    elif command == "keys":
        _add_keys(parser)
    elif command == "ingress":
        _add_ingress(parser)


def stray(word: str, command: str) -> str:
    """Return one sentence on why a command does not take this word."""
    if not word.startswith("-"):
        return f"gradserve {command} does not take {printable(word)}; gradserve {command} --help says what it takes"
    given_flag = word.partition("=")[0]
    for name in SECRETS:
        if given_flag == flag(name):
            return f"{given_flag} would show the key to whoever lists processes; set {variable(name)} instead"
    settings = Settings.model_fields if command in _SETTINGS_COMMANDS else ()
    flags = {flag(name)[2:]: flag(name) for name in settings if name not in SECRETS}
    word = given_flag.lstrip("-") if given_flag.startswith("--") else _LETTERS.get(given_flag[:2], given_flag)
    advice = hint(word, flags, f"gradserve {command} --help lists all flags")
    return f"there is no flag {printable(given_flag)}; {advice}"


def _add_ingress(parser: argparse.ArgumentParser) -> None:
    servers = parser.add_mutually_exclusive_group(required=True)
    servers.add_argument("--node", metavar="HOST:PORT", action="append", help="a server; once for each of them")
    servers.add_argument("--dns", metavar="NAME", help="a name whose addresses are the servers, looked up all the time")
    for name, value, text in _INGRESS_FLAGS:
        default_text = "" if value is None else f" (default {value})"
        parser.add_argument(f"--{name}", metavar="VALUE", default=value, help=text + default_text)


def _add_keys(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    add = actions.add_parser("add", help="make a key, and print it this once")
    listing = actions.add_parser("list", help="list the keys by name, without the keys themselves")
    revoke = actions.add_parser("revoke", help="let a key be good no more")
    for action in (add, listing, revoke):
        action.add_argument("--keys-file", metavar="FILE", help="the file of keys (GRADSERVE_KEYS_FILE)")
    for action in (add, revoke):
        action.add_argument("name", metavar="NAME", help="what the key is called, in logs too")
    add.add_argument(
        "--scopes", metavar="SCOPES", help="some of compute, read, write, admin (default: the first three)"
    )
    add.add_argument("--namespace", metavar="NS", help="whose graphs and tensors it sees (default: those of its name)")
    add.add_argument("--rate", metavar="N/s", help="requests per s, min or h, as in 10/s (default: any)")
    add.add_argument("--concurrency", metavar="N", help="requests at a time (default: any)")
    for limit in STORAGE_LIMITS:
        default_text = "a share of the server's, --namespace-share"
        add.add_argument(flag(limit), metavar="N", help=f"what its namespace may keep (default: {default_text})")


def _add_settings(parser: argparse.ArgumentParser, names: Iterable[str]) -> None:
    defaults = Settings.model_construct()  # only the defaults: the environment is irrelevant here, and may be invalid
    for name in names:
        if name in SECRETS:
            continue
        info = Settings.model_fields[name]
        text = f"{info.description} (default {format_setting(name, default(info, defaults))}; {variable(name)})"
        without_value: dict[str, Any] = {"nargs": "?", "const": "on"} if name == "insecure" else {}
        parser.add_argument(flag(name), dest=name, help=text.replace("%", "%%"), metavar="VALUE", **without_value)
