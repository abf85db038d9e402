"""`gradserve keys`: add, list and revoke the keys of a file. A server that uses it notices by itself."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from pydantic import ValidationError

from engine import printable
from service.keys.caller import KeyScope
from service.keys.credential import digest_of, new_key
from service.keys.key_file import Keys, change_keys, read_keys
from service.keys.record import KEPT_LIMITS, KeyRecord

#: what a key is good for unless that is said: all that a client does, and nothing of who runs the server
USUAL: Final = (KeyScope.COMPUTE, KeyScope.READ, KeyScope.WRITE)

_Options = Mapping[str, str | None]


def run_keys(options: _Options, keys_file: Path | None) -> None:
    """Do what `options["action"]` says. Raises RuntimeError as one sentence."""
    if keys_file is None:
        raise RuntimeError("say which file has the keys: --keys-file FILE, or GRADSERVE_KEYS_FILE")
    try:
        _ACTIONS[options["action"] or ""](keys_file, options)
    except (OSError, ValueError) as error:
        reason = os.strerror(error.errno or 0) if isinstance(error, OSError) else str(error)
        raise RuntimeError(f"the file of keys {keys_file} cannot be used: {reason}") from None


def _add(file: Path, options: _Options) -> None:
    key = new_key()
    record = _record(options, digest_of(key).hex())

    def added(keys: Keys) -> Keys:
        if any(known.name == record.name for known in keys):
            raise RuntimeError(f"there is a key called {record.name} already; revoke it, or choose another name")
        return (*keys, record)

    change_keys(file, added)
    print(f"the key of {record.name}, shown this once:", file=sys.stderr)
    print(key)


def _record(options: _Options, digest: str) -> KeyRecord:
    """Raises RuntimeError for what cannot be."""
    name, namespace, scopes = options["name"] or "", options["namespace"], options["scopes"]
    try:
        return KeyRecord.model_validate(
            {
                "name": name,
                "sha256": digest,
                "namespace": name if namespace is None else namespace,
                "scopes": USUAL if scopes is None else tuple(dict.fromkeys(map(str.strip, scopes.split(",")))),
                "rate": options["rate"],
                "concurrency": options["concurrency"],
                **{limit: options[limit] for limit in KEPT_LIMITS},
            }
        )
    except ValidationError as error:
        field = str(error.errors()[0]["loc"][0])
        raise RuntimeError(f"{_WANTED[field]}, but came as {printable(options[field] or '') or 'nothing'}") from None


def _list(file: Path, _: _Options) -> None:
    rows = [("name", "namespace", "scopes", "rate", "at a time", "keeps", "added")]
    for key in read_keys(file):
        concurrency = "-" if key.concurrency is None else str(key.concurrency)
        namespace, scopes, rate = key.namespace or '""', ",".join(key.scopes), key.rate or "-"
        rows.append((key.name, namespace, scopes, rate, concurrency, _kept(key), key.added))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


def _kept(key: KeyRecord) -> str:
    """The limits that a key states, by their flags' names."""
    stated = {limit: getattr(key, limit) for limit in KEPT_LIMITS}
    return ",".join(f"{limit.replace('_', '-')}={most}" for limit, most in stated.items() if most is not None) or "-"


def _revoke(file: Path, options: _Options) -> None:
    name = options["name"] or ""
    if not file.exists():
        raise FileNotFoundError(2, "")

    def without(keys: Keys) -> Keys:
        left = tuple(key for key in keys if key.name != name)
        if len(left) == len(keys):
            raise RuntimeError(f"there is no key called {printable(name)}; gradserve keys list shows all")
        return left

    change_keys(file, without)
    print(f"{name} is revoked; servers that use {file} refuse it within 2 s")


_ACTIONS: Final = {"add": _add, "list": _list, "revoke": _revoke}
#: what each field of a key has to be
_WANTED: Final = {
    "name": "a name has at most 64 letters, digits and characters of _.-, the first one a letter, a digit or _",
    "namespace": "a namespace has at most 64 letters, digits and characters of _.-",
    "scopes": f"scopes are some of {', '.join(KeyScope)}, separated by commas",
    "rate": "a rate is a whole number of requests per s, min or h, as in 10/s",
    "concurrency": "a concurrency is a whole number of at least 1",
    **dict.fromkeys(
        KEPT_LIMITS, "what a namespace may keep is a whole number, for bytes with a unit if any, as in 64MiB"
    ),
}
