"""The keys that are good now: those of the file, which is looked at again and again, and the one of the environment."""

from __future__ import annotations

import hmac
import logging
import os
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Final, NamedTuple

from service.keys.caller import Caller, KeyScope
from service.keys.credential import digest_of
from service.keys.key_file import read_keys
from service.keys.keyholder import Keyholder
from service.keys.record import KEPT_LIMITS, KeyRecord

#: seconds between two looks at the file
LOOK: Final = 1.0
#: what the environment's key is called; no key of a file can be
OF_THE_ENVIRONMENT: Final = "(environment)"

_logger = logging.getLogger("gradserve")


class _Held(NamedTuple):
    """A key: its digest, what is written of it, and who holds it. The environment's is written nowhere."""

    digest: bytes
    record: KeyRecord | None
    holder: Keyholder


class KeyRing:
    """Finder of who holds a key, by its digest. For one thread."""

    def __init__(self, file: Path | None, key: str | None) -> None:
        """The keys of a file, and one beside them that may do everything. Raises RuntimeError as one sentence."""
        self._file = file
        self._own: list[_Held] = [] if key is None else [_of_the_environment(key)]
        self._held = {held.digest: held for held in self._own}
        self._stated: dict[tuple[str, str], int] = {}
        self._due = 0.0
        self._seen: object = None
        if file is not None:
            self._seen = _signature(file)
            try:
                self._hold(read_keys(file))
            except (OSError, ValueError) as error:
                raise RuntimeError(f"the file of keys {file} cannot be used: {_reason(error)}") from None

    def __len__(self) -> int:
        return len(self._held)

    def find(self, digest: bytes) -> Keyholder | None:
        """Whoever holds the key of this digest, if it is good now.

        What decides how long that takes is a hash of the key, so it tells nothing of how a key begins.
        """
        if self._file is not None and time.monotonic() >= self._due:
            self._look(self._file)
        found = self._held.get(digest)
        return found.holder if found is not None and hmac.compare_digest(found.digest, digest) else None

    def stated(self, namespace: str, limit: str) -> int | None:
        """The most that a key of this namespace states for one of `KEPT_LIMITS`; None where none does."""
        return self._stated.get((namespace, limit))

    def _look(self, file: Path) -> None:
        """Read the file if it has changed. What cannot be read changes nothing: the keys of before stand."""
        self._due = time.monotonic() + LOOK
        seen = _signature(file)
        if seen == self._seen:
            return
        self._seen = seen
        try:
            self._hold(read_keys(file))
        except (OSError, ValueError) as error:
            said = "the file of keys %s cannot be used, so its earlier keys stay good: %s"
            _logger.error(said, file, _reason(error))  # noqa: TRY400 - the sentence says it all
        else:
            _logger.info("the file of keys %s has changed; keys that are good: %d", file, len(self))

    def _hold(self, records: Iterable[KeyRecord]) -> None:
        """Replace the keys of the file. Who is the same as before goes on with the share that is left."""
        before, self._held = self._held, {held.digest: held for held in self._own}
        for record in records:
            digest = bytes.fromhex(record.sha256)
            known = before.get(digest)
            if known is None or known.record != record:
                known = _Held(digest, record, Keyholder(record.caller, record.rate, record.concurrency))
            self._held.setdefault(digest, known)
        self._stated = _largest(held.record for held in self._held.values() if held.record is not None)


def _largest(records: Iterable[KeyRecord]) -> dict[tuple[str, str], int]:
    """For each namespace and limit, the most that one of its keys states."""
    found: dict[tuple[str, str], int] = {}
    for record in records:
        for limit in KEPT_LIMITS:
            stated = getattr(record, limit)
            if stated is not None:
                found[record.namespace, limit] = max(stated, found.get((record.namespace, limit), 0))
    return found


def _of_the_environment(key: str) -> _Held:
    return _Held(digest_of(key), None, Keyholder(Caller(OF_THE_ENVIRONMENT, "", frozenset(KeyScope))))


def _signature(file: Path) -> object:
    """What changes whenever the file does."""
    try:
        status = file.stat()
    except OSError as error:
        return error.errno
    return status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def _reason(error: Exception) -> str:
    return os.strerror(error.errno or 0) if isinstance(error, OSError) else str(error)
