"""The command `gradserve`: serve, settings, ops."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

from pydantic import ValidationError

from engine import registry
from service.app import assemble
from service.pages.catalogue import catalogue_of
from service.settings import Settings, complaint, default, flag, variable
from service.web.server import serve


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one command; without one, serve."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    if not given or (given[0].startswith("-") and given[0] not in ("-h", "--help")):
        given.insert(0, "serve")
    options = vars(_parser().parse_args(given))
    options.pop("run")(options)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("gradserve", description="Send a computation graph, get gradients back.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    server = commands.add_parser("serve", help="serve until Ctrl-C (the default command)")
    _add_settings(server)
    server.set_defaults(run=_serve)
    settings = commands.add_parser("settings", help="list every setting: value, default, variable, meaning")
    _add_settings(settings)
    settings.set_defaults(run=_settings)
    ops = commands.add_parser("ops", help="list all ops, or describe one")
    ops.add_argument("name", nargs="?", help="an op, by its name or any alias")
    ops.set_defaults(run=_ops)
    return parser


def _add_settings(parser: argparse.ArgumentParser) -> None:
    for name, info in Settings.model_fields.items():
        text = f"{info.description} ({variable(name)})".replace("%", "%%")
        parser.add_argument(flag(name), dest=name, help=text, metavar="VALUE")


def _read(options: dict[str, str | None]) -> Settings:
    try:
        return Settings(**_stated(options))
    except ValidationError as error:
        _fail(complaint(error))


def _stated(options: dict[str, str | None]) -> dict[str, Any]:
    return {name: value for name, value in options.items() if value is not None}


def _serve(options: dict[str, str | None]) -> None:
    settings = _read(options)
    try:
        serve(settings, assemble)
    except OSError as error:
        _fail(f"cannot listen on {settings.host} port {settings.port}: {os.strerror(error.errno or 0)}")
    except RuntimeError as error:
        _fail(str(error))


def _settings(options: dict[str, str | None]) -> None:
    settings = _read(options)
    for name, info in Settings.model_fields.items():
        value, usual = getattr(settings, name), default(info, settings)
        print(f"{flag(name)} = {_shown(value)}   (default {_shown(usual)}; {variable(name)})")
        print(f"    {info.description}")


def _shown(value: object) -> str:
    return (",".join(map(str, value)) or "none") if isinstance(value, tuple) else str(value)


def _ops(options: dict[str, str | None]) -> None:
    name = options["name"]
    if name is None:
        for row in catalogue_of(registry())["ops"]:
            print(f"{row['name']:20} {', '.join(row['operands']):24} {row['summary']}")
        return
    op = registry().find(name)
    if op is None:
        _fail(f"there is no op called {name}; gradserve ops lists all ops")
    _describe(op.name)


def _describe(name: str) -> None:
    row = next(row for row in catalogue_of(registry())["ops"] if row["name"] == name)
    print(f"{row['name']}({', '.join(row['operands'])})\n\n{row['doc']}\n\ngradient: {row['gradient']}")
    print(f"dtypes: {', '.join(row['dtypes'])}")
    for attribute in row["attributes"]:
        usual = "required" if attribute["required"] else f"default {attribute.get('default', 'absent')}"
        print(f"attribute {attribute['name']} ({attribute['type']}, {usual}): {attribute['doc']}")
    for alias in row["aliases"]:
        print(f"alias {alias['name']} ({alias['systems']})")


def _fail(sentence: str) -> NoReturn:
    print(f"gradserve: {sentence}", file=sys.stderr)
    raise SystemExit(2)
