"""Authentication: check the key, scope and rate of a request before its body is read.

Both doors ask the `Gate`. The `KeyRing` has the keys that are valid now: those of the key file, which may change, and
the key of the environment. A `Keyholder` counts the requests of one key.
"""

from __future__ import annotations

import logging
import math
import os
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from pathlib import Path
from subprocess import SubprocessError
from typing import Final, NamedTuple

import orjson

from service.core.errors import Refusal
from service.core.keys.caller import ANYONE, Caller, Credential, KeyScope, digest_of
from service.core.keys.key_file import Rate, rate_of
from service.core.keys.key_index import KeyIndex, index_keys, is_small

#: seconds between two looks at the file
LOOK: Final = 1.0
#: name of the environment's key; no key of a file can have it
OF_THE_ENVIRONMENT: Final = "(environment)"
_UNUSABLE: Final = (OSError, ValueError, SubprocessError)

_logger = logging.getLogger("gradserve")


class Keyholder:
    """Count of the requests of one key. For one thread.

    The rate is a token bucket, kept as one number (GCRA): the time until which the tokens taken would last, at one
    token in `seconds / requests`. It lies at most `seconds` ahead, so that the whole bucket may be taken at once.
    """

    __slots__ = ("_concurrency", "_in_work", "_rate", "_spent_until", "caller")

    def __init__(self, caller: Caller, rate: str | None = None, concurrency: int | None = None) -> None:
        self.caller = caller
        self._rate: Rate | None = None if rate is None else rate_of(rate)
        self._concurrency = concurrency
        self._in_work = 0
        self._spent_until = 0.0

    def enter(self) -> None:
        """Count a request until it leaves. Raises Refusal (rate_limited) without counting it."""
        if self._concurrency is not None and self._in_work >= self._concurrency:
            shown = f"{self._concurrency} {'request' if self._concurrency == 1 else 'requests'}"
            detail = f"this key has {shown} in work, its limit; send the next one when one of them is answered"
            raise Refusal("rate_limited", detail, expected=f"at most {shown} at a time", got="one more", retry_after=1)
        if self._rate is not None:
            self._take_one(self._rate, time.monotonic())
        self._in_work += 1

    def leave(self) -> None:
        """Note that a counted request is answered, or its client is gone."""
        self._in_work -= 1

    def _take_one(self, rate: Rate, now: float) -> None:
        spent_until = max(self._spent_until, now) + rate.seconds / rate.requests
        wait = spent_until - now - rate.seconds
        if wait > 1e-6:  # the sum of tokens is a hair longer than the bucket
            shown = f"{rate.requests} in {rate.seconds:g} s"
            detail = f"this key has used up its rate of {shown}; try again after the seconds in Retry-After"
            raise Refusal(
                "rate_limited", detail, expected=f"at most {shown}", got="more", retry_after=max(1, math.ceil(wait))
            )
        self._spent_until = spent_until


#: the keyholder of all requests if no keys are asked for
EVERYBODY: Final = Keyholder(ANYONE)


class KeyRing:
    """Valid keys by their digests. For one thread.

    A changed file is read at once if it is small. A large one is read by a process of its own, which a thread waits
    for; until it is done, the earlier keys stay valid.
    """

    def __init__(self, file: Path | None, key: str | None) -> None:
        """Read the keys of a file; `key` is one beside them that may do everything. Raises RuntimeError."""
        self._file = file
        self._own = None if key is None else digest_of(key)
        self._index = KeyIndex.of()
        #: keyholders that have come since the start, with their records
        self._holders: dict[bytes, tuple[bytes, Keyholder]] = {}
        self._limits: dict[str, Mapping[str, int]] = {}
        self._due = 0.0
        self._seen: object = None
        self._reading: Future[KeyIndex] | None = None
        if self._own is not None:
            caller = Caller(OF_THE_ENVIRONMENT, "", frozenset(KeyScope))
            self._holders[self._own] = b"", Keyholder(caller)
        if file is not None:
            self._seen = _signature(file)
            try:
                self._index = index_keys(file)
            except _UNUSABLE as error:
                raise RuntimeError(f"the file of keys {file} cannot be used: {_reason(error)}") from None

    def __len__(self) -> int:
        return len(self._index) + (self._own is not None)

    def find(self, digest: bytes) -> Keyholder | None:
        """Return the holder of the key with this digest, if it is valid now.

        The search compares digests: its duration tells nothing about the beginning of a key.
        """
        if self._file is not None and (self._reading is not None or time.monotonic() >= self._due):
            self._look(self._file)
        if (known := self._holders.get(digest)) is not None:
            return known[1]
        record = self._index.record(digest)
        if record is None:
            return None
        fields = orjson.loads(record)
        caller = Caller(fields["name"], fields["namespace"], frozenset(map(KeyScope, fields["scopes"])))
        holder = Keyholder(caller, fields.get("rate"), fields.get("concurrency"))
        self._holders[digest] = record, holder
        return holder

    def stated(self, namespace: str, limit: str) -> int | None:
        """Return the most that a key of this namespace states for one of `KEPT_LIMITS`; None where none does."""
        if namespace not in self._limits:
            self._limits[namespace] = self._index.limits(namespace)
        return self._limits[namespace].get(limit)

    def _look(self, file: Path) -> None:
        """Read the file if it has changed. One that cannot be read changes nothing: the earlier keys stay valid."""
        if self._reading is None:
            self._due = time.monotonic() + LOOK
            signature = _signature(file)
            if signature == self._seen:
                return
            self._seen = signature
            self._reading = _begin_reading(file)
        if not self._reading.done():
            return
        reading, self._reading = self._reading, None
        try:
            self._replace_index(reading.result())
        except _UNUSABLE as error:
            said = "the file of keys %s cannot be used, so its earlier keys stay good: %s"
            _logger.error(said, file, _reason(error))  # noqa: TRY400 - the sentence says it all
        else:
            _logger.info("the file of keys %s has changed; keys that are good: %d", file, len(self))

    def _replace_index(self, index: KeyIndex) -> None:
        """Replace the keys of the file. A holder whose record is the same keeps the rest of its rate."""
        self._index, self._limits = index, {}
        self._holders = {
            digest: (record, holder)
            for digest, (record, holder) in self._holders.items()
            if digest == self._own or index.record(digest) == record
        }


def _begin_reading(file: Path) -> Future[KeyIndex]:
    """Read a file, a large one on a thread."""
    reading: Future[KeyIndex] = Future()

    def read() -> None:
        try:
            reading.set_result(index_keys(file))
        except Exception as error:  # noqa: BLE001 - whoever looks at the future raises it
            reading.set_exception(error)

    try:
        small = is_small(file)
    except OSError:
        small = True
    if small:
        read()
    else:
        threading.Thread(target=read, name="keys", daemon=True).start()
    return reading


def _signature(file: Path) -> object:
    """Return a value that changes whenever the file does."""
    try:
        status = file.stat()
    except OSError as error:
        return error.errno
    return status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def _reason(error: Exception) -> str:
    return os.strerror(error.errno or 0) if isinstance(error, OSError) else str(error)


class Access(NamedTuple):
    """Scope that a request needs, None if anybody may make it, and the key that it comes with."""

    needed: KeyScope | None
    credential: Credential


class Gate:
    """Gate that admits requests by their keys; all of them, if there is no ring of keys.

    `denied` gets the code of every refusal.
    """

    def __init__(self, keys: KeyRing | None = None, denied: Callable[[str], None] = lambda _: None) -> None:
        self._keys = keys
        self._denied = denied

    def enter(self, access: Access) -> Keyholder:
        """Admit a request, and return its keyholder, on which `leave` must be called when the request is over.

        Raises Refusal: unauthenticated, forbidden, rate_limited.
        """
        if self._keys is None or access.needed is None:
            holder = EVERYBODY
            holder.enter()
            return holder
        try:
            if access.credential.digest is None:
                raise Refusal("unauthenticated", access.credential.complaint)
            known = self._keys.find(access.credential.digest)
            if known is None:
                raise Refusal("unauthenticated", "the server does not know this key; it may have been revoked")
            holder = known
            holder.caller.require(access.needed)
            holder.enter()
        except Refusal as refusal:
            self._denied(refusal.code)
            raise
        return holder
