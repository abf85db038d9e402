"""The commands of `gradserve`: serve, settings, ops, keys, backup, restore, ingress, doctor."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

from engine import printable
from schemas import OpInfo
from service.app import run_server
from service.commands.keys import run_keys
from service.logs import begin_log
from service.pages.catalogue import shipped_catalogue
from service.settings import (
    PASSED_OVER,
    REMOVED,
    SECRETS,
    Settings,
    default,
    flag,
    read_settings,
    removed_settings,
    service_links,
    shown,
    variable,
)
from service.state.opening import SHARED_FORMAT, WHOLE_FORMAT
from service.web.listening import reason

_logger = logging.getLogger("gradserve")

Options = dict[str, str | None]


def _settings_of(options: Options) -> Settings:
    try:
        return read_settings(**{name: value for name, value in _stated(options).items() if name not in REMOVED})
    except RuntimeError as error:
        _fail(str(error))


def _stated(options: Options) -> dict[str, Any]:
    return {name: value for name, value in options.items() if value is not None}


def _serve(options: Options) -> None:
    links = service_links(os.environ)
    settings = _settings_of(options)
    try:
        begin_log(settings)
        if links:
            _logger.warning(PASSED_OVER, ", ".join(links))
        for warning in removed_settings(os.environ, _stated(options)):
            _logger.warning(warning)
        run_server(settings)
    except BrokenPipeError:
        raise
    except (OSError, UnicodeError) as error:
        _fail(f"cannot listen on {printable(settings.host)} port {settings.port}: {reason(error)}")
    except RuntimeError as error:
        _fail(str(error))


def _settings(options: Options) -> None:
    settings = _settings_of(options)
    for name, info in Settings.model_fields.items():
        value, usual = shown(name, getattr(settings, name)), shown(name, default(info, settings))
        called = variable(name) if name in SECRETS else flag(name)
        print(f"{called} = {value}   (default {usual}; {variable(name)})")
        print(f"    {info.description}")


def _ops(options: Options) -> None:
    name = options["name"]
    catalogue = shipped_catalogue()
    if name is None:
        for row in catalogue.content["ops"]:
            print(f"{row['name']:20} {', '.join(row['operands']):24} {row['summary']}")
        return
    op = catalogue.find(name)
    if op is None:
        advice = catalogue.hint(name) or "gradserve ops lists all ops"
        _fail(f"there is no op called {printable(name)}; {advice}")
    _describe(op)


def _describe(row: OpInfo) -> None:
    print(f"{row['name']}({', '.join(row['operands'])})\n\n{row['doc']}\n\ngradient: {row['gradient']}")
    print(f"dtypes: {', '.join(row['dtypes'])}")
    for attribute in row["attributes"]:
        usual = "required" if attribute["required"] else f"default {attribute.get('default', 'absent')}"
        print(f"attribute {attribute['name']} ({attribute['type']}, {usual}): {attribute['doc']}")
    for alias in row["aliases"]:
        print(f"alias {alias['name']} ({alias['systems']})")


def _keys(options: Options) -> None:
    try:
        run_keys(options, _settings_of({"keys_file": options.pop("keys_file")}).keys_file)
    except RuntimeError as error:
        _fail(str(error))


def _doctor(options: Options) -> None:
    from service.commands.doctor import run_doctor  # noqa: PLC0415 - an HTTP client, which no other command needs

    as_json = bool(options.pop("json"))
    if not run_doctor(_settings_of(options), as_json=as_json):
        raise SystemExit(1)


def _ingress(options: Options) -> None:
    from service.commands.ingress import run_ingress  # noqa: PLC0415 - what no server imports

    try:
        run_ingress(options)
    except BrokenPipeError:
        raise
    except (OSError, UnicodeError) as error:
        where = f"{printable(options['host'] or '')} port {printable(options['port'] or '')}"
        _fail(f"cannot listen on {where}: {reason(error)}")
    except RuntimeError as error:
        _fail(str(error))


def _fail(sentence: str) -> NoReturn:
    print(f"gradserve: {sentence}", file=sys.stderr)
    raise SystemExit(2)


def _backup(options: Options) -> None:
    from service.state.backup import backup  # noqa: PLC0415 - what a server that serves has no use for

    file = _file(options)
    state = _settings_of(options).state
    with _failing_with(f"cannot back up {state} into {file}"):
        print(f"{file} has {backup(state, file)} commits of {state}")


def _restore(options: Options) -> None:
    from service.state.backup import restore  # noqa: PLC0415 - as above

    file = _file(options)
    settings = _settings_of(options)
    state, form = settings.state, SHARED_FORMAT if settings.cluster == "on" else WHOLE_FORMAT
    with _failing_with(f"cannot restore {file} into {state}"):
        print(f"{state} has {restore(file, state, form)} commits of {file}")


def _file(options: Options) -> Path:
    return Path(options.pop("file") or "")


@contextmanager
def _failing_with(what: str) -> Iterator[None]:
    """Report a file error in one sentence, and exit."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        _fail(f"{what}: {error.strerror or error}")
    except RuntimeError as error:
        _fail(str(error))


#: by command; each ends with SystemExit if it fails
RUN = {
    "serve": _serve,
    "settings": _settings,
    "ops": _ops,
    "keys": _keys,
    "backup": _backup,
    "restore": _restore,
    "ingress": _ingress,
    "doctor": _doctor,
}
