"""Commands of `gradserve`: serve, settings, ops, keys, backup, restore, ingress, doctor."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NoReturn

from pydantic import ValidationError

from engine import printable
from schemas import OpInfo
from service.app import run_server
from service.core.keys.caller import KeyScope, digest_of, new_key
from service.core.keys.key_file import STORAGE_LIMITS, KeyRecord, Keys, change_keys, read_keys
from service.core.logs import set_up_logging
from service.core.settings import (
    IGNORED_LINKS,
    REMOVED,
    SECRETS,
    Settings,
    default,
    flag,
    format_setting,
    read_settings,
    removed_settings,
    service_links,
    variable,
)
from service.store.places import SHARED_FORMAT, WHOLE_FORMAT
from service.web.listening import describe_bind_error
from service.web.pages.catalogue import shipped_catalogue

#: default scopes of a key: everything that clients need, nothing that operators need
DEFAULT_SCOPES: Final = (KeyScope.COMPUTE, KeyScope.READ, KeyScope.WRITE)

_logger = logging.getLogger("gradserve")

Options = dict[str, str | None]


def run_keys(options: Mapping[str, str | None], keys_file: Path | None) -> None:
    """Add, list or revoke keys of a file, depending on `options["action"]`. Raises RuntimeError with one sentence."""
    if keys_file is None:
        raise RuntimeError("no key file is set; use --keys-file FILE or GRADSERVE_KEYS_FILE")
    try:
        _ACTIONS[options["action"] or ""](keys_file, options)
    except (OSError, ValueError) as error:
        reason = os.strerror(error.errno or 0) if isinstance(error, OSError) else str(error)
        raise RuntimeError(f"cannot use the key file {keys_file}: {reason}") from None


def _add(file: Path, options: Mapping[str, str | None]) -> None:
    key = new_key()
    record = _record(options, digest_of(key).hex())

    def add(keys: Keys) -> Keys:
        if any(existing.name == record.name for existing in keys):
            raise RuntimeError(f"a key called {record.name} already exists; revoke it, or choose another name")
        return (*keys, record)

    change_keys(file, add)
    print(f"the key called {record.name}, which is shown only once:", file=sys.stderr)
    print(key)


def _record(options: Mapping[str, str | None], digest: str) -> KeyRecord:
    """Build the record of a key. Raises RuntimeError for invalid options."""
    name, namespace, scopes = options["name"] or "", options["namespace"], options["scopes"]
    try:
        return KeyRecord.model_validate(
            {
                "name": name,
                "sha256": digest,
                "namespace": name if namespace is None else namespace,
                "scopes": DEFAULT_SCOPES if scopes is None else tuple(dict.fromkeys(map(str.strip, scopes.split(",")))),
                "rate": options["rate"],
                "concurrency": options["concurrency"],
                **{limit: options[limit] for limit in STORAGE_LIMITS},
            }
        )
    except ValidationError as error:
        field = str(error.errors()[0]["loc"][0])
        shown = printable(options[field] or "")
        raise RuntimeError(f"{_FIELD_RULES[field]}; got {f'“{shown}”' if shown else 'an empty text'}") from None


def _list(file: Path, _: Mapping[str, str | None]) -> None:
    rows = [("name", "namespace", "scopes", "rate", "concurrency", "quotas", "added")]
    for key in read_keys(file):
        concurrency = "-" if key.concurrency is None else str(key.concurrency)
        namespace, scopes, rate = key.namespace or '""', ",".join(key.scopes), key.rate or "-"
        limit_values = ((limit.replace("_", "-"), getattr(key, limit)) for limit in STORAGE_LIMITS)
        limits = ",".join(f"{name}={value}" for name, value in limit_values if value is not None) or "-"
        rows.append((key.name, namespace, scopes, rate, concurrency, limits, key.added))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


def _revoke(file: Path, options: Mapping[str, str | None]) -> None:
    name = options["name"] or ""
    if not file.exists():
        raise FileNotFoundError(2, "")

    def remove(keys: Keys) -> Keys:
        remaining = tuple(key for key in keys if key.name != name)
        if len(remaining) == len(keys):
            raise RuntimeError(f"there is no key called {printable(name)}; gradserve keys list shows all keys")
        return remaining

    change_keys(file, remove)
    print(f"{name} is revoked; servers that use {file} reject it within 2 s")


_ACTIONS: Final = {"add": _add, "list": _list, "revoke": _revoke}
#: error message for each invalid field of a key
_FIELD_RULES: Final = {
    "name": "a name has at most 64 letters, digits and characters of _.-, and begins with a letter, a digit or _",
    "namespace": "a namespace has at most 64 letters, digits and characters of _.-",
    "scopes": f"scopes are one or more of {', '.join(KeyScope)}, separated by commas",
    "rate": "a rate is a whole number of requests per s, min or h, as in 10/s",
    "concurrency": "the concurrency must be a whole number of at least 1",
    **dict.fromkeys(STORAGE_LIMITS, "a quota is a whole number; bytes may have a unit, as in 64MiB"),
}


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
        set_up_logging(settings)
        if links:
            _logger.warning(IGNORED_LINKS, ", ".join(links))
        for warning in removed_settings(os.environ, _stated(options)):
            _logger.warning(warning)
        run_server(settings)
    except BrokenPipeError:
        raise
    except (OSError, UnicodeError) as error:
        _fail(f"cannot listen on port {settings.port} on {printable(settings.host)}: {describe_bind_error(error)}")
    except RuntimeError as error:
        _fail(str(error))


def _settings(options: Options) -> None:
    settings = _settings_of(options)
    for name, info in Settings.model_fields.items():
        value, default_value = (
            format_setting(name, getattr(settings, name)),
            format_setting(name, default(info, settings)),
        )
        label = variable(name) if name in SECRETS else flag(name)
        print(f"{label} = {value}   (default {default_value}; {variable(name)})")
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
        default_text = "required" if attribute["required"] else f"default {attribute.get('default', 'absent')}"
        print(f"attribute {attribute['name']} ({attribute['type']}, {default_text}): {attribute['doc']}")
    for alias in row["aliases"]:
        print(f"alias {alias['name']} ({alias['systems']})")


def _keys(options: Options) -> None:
    try:
        run_keys(options, _settings_of({"keys_file": options.pop("keys_file")}).keys_file)
    except RuntimeError as error:
        _fail(str(error))


def _doctor(options: Options) -> None:
    from service.admin.doctor import run_doctor  # noqa: PLC0415 - imports an HTTP client that no other command needs

    as_json = bool(options.pop("json"))
    if not run_doctor(_settings_of(options), as_json=as_json):
        raise SystemExit(1)


def _ingress(options: Options) -> None:
    from service.admin.ingress import run_ingress  # noqa: PLC0415 - a server does not need it

    try:
        run_ingress(options)
    except BrokenPipeError:
        raise
    except (OSError, UnicodeError) as error:
        address = f"port {printable(options['port'] or '')} on {printable(options['host'] or '')}"
        _fail(f"cannot listen on {address}: {describe_bind_error(error)}")
    except RuntimeError as error:
        _fail(str(error))


def _fail(sentence: str) -> NoReturn:
    print(f"gradserve: {sentence}", file=sys.stderr)
    raise SystemExit(2)


def _backup(options: Options) -> None:
    from service.store.backup import backup  # noqa: PLC0415 - a running server does not need it

    file = _file(options)
    state = _settings_of(options).state
    with _failing_with(f"cannot back up {state} to {file}"):
        print(f"backed up {backup(state, file)} commits from {state} to {file}")


def _restore(options: Options) -> None:
    from service.store.backup import restore  # noqa: PLC0415 - as above

    file = _file(options)
    settings = _settings_of(options)
    state, form = settings.state, SHARED_FORMAT if settings.cluster == "on" else WHOLE_FORMAT
    with _failing_with(f"cannot restore {file} to {state}"):
        print(f"restored {restore(file, state, form, settings.shards)} commits from {file} to {state}")


def _file(options: Options) -> Path:
    return Path(options.pop("file") or "")


@contextmanager
def _failing_with(action: str) -> Iterator[None]:
    """Report a file error in one sentence that begins with `action`, and exit."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        _fail(f"{action}: {error.strerror or error}")
    except RuntimeError as error:
        _fail(str(error))


#: function of each command; it raises SystemExit if the command fails
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
