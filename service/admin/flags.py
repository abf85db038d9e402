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
    ("dns-port", "8000", "port of the servers behind --dns"),
    ("nameserver", None, "HOST:PORT of the DNS server for --dns. Default: those of the machine"),
    ("host", "127.0.0.1", "address to listen on. The ingress checks no keys: the servers do"),
    ("port", "8000", "port to listen on; 0 picks a free port and prints it"),
    ("tls-cert", None, "file with the certificate and its chain, in PEM. Default: plain HTTP"),
    ("tls-key", None, "file with the private key of the certificate, in PEM"),
    ("metrics-port", "8405", "port of HAProxy's /metrics on localhost; 0: none"),
    (
        "timeout-ms",
        "30000",
        "timeout of a request in milliseconds, as on the servers; they get 5 s more to report it themselves",
    ),
    ("shutdown-grace", "30", "seconds for running requests after SIGTERM"),
    ("threads", "1", "number of HAProxy threads"),
    ("slots", "32", "maximum number of servers"),
    ("max-connections", "4096", "maximum number of connections"),
    (
        "server-connections",
        "500",
        "maximum number of connections to each server; lower than its --max-connections-per-client",
    ),
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
        parser.add_argument("name", nargs="?", help="name or alias of an op")
    elif command in ("backup", "restore"):
        parser.add_argument("file", help="backup file, a tar archive")
        _add_settings(parser, ("state",) if command == "backup" else ("state", "cluster", "shards"))
    elif command == "doctor":
        parser.add_argument("--json", action="store_true", help="print the results as JSON")
    elif command == "keys":
        _add_keys(parser)
    elif command == "ingress":
        _add_ingress(parser)


def stray(word: str, command: str) -> str:
    """Return one sentence on why a command does not take this word."""
    if not word.startswith("-"):
        return f"gradserve {command} does not accept {printable(word)}; see gradserve {command} --help"
    given_flag = word.partition("=")[0]
    for name in SECRETS:
        if given_flag == flag(name):
            return f"{given_flag} is not a flag, because other users can see flags; set {variable(name)} instead"
    settings = Settings.model_fields if command in _SETTINGS_COMMANDS else ()
    flags = {flag(name)[2:]: flag(name) for name in settings if name not in SECRETS}
    word = given_flag.lstrip("-") if given_flag.startswith("--") else _LETTERS.get(given_flag[:2], given_flag)
    advice = hint(word, flags, f"gradserve {command} --help lists all flags")
    return f"there is no flag {printable(given_flag)}; {advice}"


def _add_ingress(parser: argparse.ArgumentParser) -> None:
    servers = parser.add_mutually_exclusive_group(required=True)
    servers.add_argument(
        "--node", metavar="HOST:PORT", action="append", help="address of a server; repeat the flag for each server"
    )
    servers.add_argument(
        "--dns", metavar="NAME", help="DNS name whose addresses are the servers; the ingress follows its changes"
    )
    for name, value, text in _INGRESS_FLAGS:
        default_text = "" if value is None else f" (default {value})"
        parser.add_argument(f"--{name}", metavar="VALUE", default=value, help=text + default_text)


def _add_keys(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    add = actions.add_parser("add", help="create a key, and print it once")
    listing = actions.add_parser("list", help="list the keys by name; the keys themselves are not stored")
    revoke = actions.add_parser("revoke", help="revoke a key")
    for action in (add, listing, revoke):
        action.add_argument("--keys-file", metavar="FILE", help="key file (GRADSERVE_KEYS_FILE)")
    for action in (add, revoke):
        action.add_argument("name", metavar="NAME", help="name of the key, which also appears in the log")
    add.add_argument(
        "--scopes",
        metavar="SCOPES",
        help="scopes of the key, separated by commas: compute, read, write, admin (default: the first three)",
    )
    add.add_argument(
        "--namespace", metavar="NS", help="namespace whose graphs and tensors it can access (default: its name)"
    )
    add.add_argument(
        "--rate", metavar="N/s", help="maximum rate in requests per s, min or h, as in 10/s (default: no limit)"
    )
    add.add_argument("--concurrency", metavar="N", help="maximum number of concurrent requests (default: no limit)")
    for limit in STORAGE_LIMITS:
        default_text = "--namespace-share of the server's limit"
        add.add_argument(flag(limit), metavar="N", help=f"quota of its namespace (default: {default_text})")


def _add_settings(parser: argparse.ArgumentParser, names: Iterable[str]) -> None:
    defaults = Settings.model_construct()  # only the defaults: the environment is irrelevant here, and may be invalid
    for name in names:
        if name in SECRETS:
            continue
        info = Settings.model_fields[name]
        text = f"{info.description} (default {format_setting(name, default(info, defaults))}; {variable(name)})"
        without_value: dict[str, Any] = {"nargs": "?", "const": "on"} if name == "insecure" else {}
        parser.add_argument(flag(name), dest=name, help=text.replace("%", "%%"), metavar="VALUE", **without_value)
