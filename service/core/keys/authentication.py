"""Authentication: check a request's key, scope and rate before its body is read.

Both HTTP front ends ask the `Gate`. The `KeyRing` has the keys that are valid now: those of the key file, which may
change, and the key from the environment. A `Keyholder` counts the requests of one key.
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
from service.core.keys.caller import ANONYMOUS, Caller, Credential, KeyScope, digest_of
from service.core.keys.key_file import Rate, rate_of
from service.core.keys.key_index import KeyIndex, index_keys, is_small

#: seconds between two checks of the file for changes
CHECK_SECONDS: Final = 1.0
#: name of the key from the environment; no key of a file can have it
ENVIRONMENT_KEY_NAME: Final = "(environment)"
_UNUSABLE: Final = (OSError, ValueError, SubprocessError)

_logger = logging.getLogger("gradserve")


class Keyholder:
    """Rate and concurrency of one key's requests. Not thread-safe.

    The rate limit is a token bucket, stored as one number (GCRA): the time until which the tokens taken would last, at
    one token per `seconds / requests`. It is at most `seconds` ahead, so the whole bucket may be taken at once.
    """

    __slots__ = ("_concurrency", "_in_work", "_rate", "_spent_until", "caller")

    def __init__(self, caller: Caller, rate: str | None = None, concurrency: int | None = None) -> None:
        self.caller = caller
        self._rate: Rate | None = None if rate is None else rate_of(rate)
        self._concurrency = concurrency
        self._in_work = 0
        self._spent_until = 0.0

    def enter(self) -> None:
        """Count a request until `leave` is called. Raises Refusal (rate_limited) without counting it."""
        if self._concurrency is not None and self._in_work >= self._concurrency:
            shown = f"{self._concurrency} {'request' if self._concurrency == 1 else 'requests'}"
            detail = (
                f"this key already has {shown} in progress, its limit; wait for a response before you send the next one"
            )
            raise Refusal("rate_limited", detail, expected=f"at most {shown} at a time", got="one more", retry_after=1)
        if self._rate is not None:
            self._take_one(self._rate, time.monotonic())
        self._in_work += 1

    def leave(self) -> None:
        """Stop counting a request: it is answered, or its client is gone."""
        self._in_work -= 1

    def _take_one(self, rate: Rate, now: float) -> None:
        spent_until = max(self._spent_until, now) + rate.seconds / rate.requests
        wait = spent_until - now - rate.seconds
        if wait > 1e-6:  # rounding makes the sum of the tokens slightly longer than the bucket
            shown = f"{rate.requests} in {rate.seconds:g} s"
            detail = (
                f"this key has reached its rate limit of {shown}; try again after the number of seconds in Retry-After"
            )
            raise Refusal(
                "rate_limited", detail, expected=f"at most {shown}", got="more", retry_after=max(1, math.ceil(wait))
            )
        self._spent_until = spent_until


#: keyholder of every request if no keys are configured
ANONYMOUS_HOLDER: Final = Keyholder(ANONYMOUS)


class KeyRing:
    """Valid keys by digest. Not thread-safe.

    A changed file is read immediately if it is small. A large one is read by a separate process, for which a thread
    waits; until then the previous keys stay valid.
    """

    def __init__(self, file: Path | None, key: str | None) -> None:
        """Read the keys of a file; `key` is an additional one with all permissions. Raises RuntimeError."""
        self._file = file
        self._environment_digest = None if key is None else digest_of(key)
        self._index = KeyIndex.build()
        #: keyholders that have made a request since the start, each with its record
        self._holders: dict[bytes, tuple[bytes, Keyholder]] = {}
        self._limits: dict[str, Mapping[str, int]] = {}
        self._next_check = 0.0
        self._file_signature: object = None
        self._reading: Future[KeyIndex] | None = None
        if self._environment_digest is not None:
            caller = Caller(ENVIRONMENT_KEY_NAME, "", frozenset(KeyScope))
            self._holders[self._environment_digest] = b"", Keyholder(caller)
        if file is not None:
            self._file_signature = _signature(file)
            try:
                self._index = index_keys(file)
            except _UNUSABLE as error:
                raise RuntimeError(f"cannot use the key file {file}: {_reason(error)}") from None

    def __len__(self) -> int:
        return len(self._index) + (self._environment_digest is not None)

    def find(self, digest: bytes) -> Keyholder | None:
        """Return the holder of the key with this digest, or None if it is not valid now.

        The search compares digests, so its duration reveals nothing about a prefix of a key.
        """
        if self._file is not None and (self._reading is not None or time.monotonic() >= self._next_check):
            self._reload_if_changed(self._file)
        if (cached := self._holders.get(digest)) is not None:
            return cached[1]
        record = self._index.record(digest)
        if record is None:
            return None
        fields = orjson.loads(record)
        caller = Caller(fields["name"], fields["namespace"], frozenset(map(KeyScope, fields["scopes"])))
        holder = Keyholder(caller, fields.get("rate"), fields.get("concurrency"))
        self._holders[digest] = record, holder
        return holder

    def storage_limit(self, namespace: str, limit: str) -> int | None:
        """Return the largest value that keys of this namespace set for one of `STORAGE_LIMITS`, or None."""
        if namespace not in self._limits:
            self._limits[namespace] = self._index.limits(namespace)
        return self._limits[namespace].get(limit)

    def _reload_if_changed(self, file: Path) -> None:
        """Read the file if it has changed. If it cannot be read, the previous keys stay valid."""
        if self._reading is None:
            self._next_check = time.monotonic() + CHECK_SECONDS
            signature = _signature(file)
            if signature == self._file_signature:
                return
            self._file_signature = signature
            self._reading = _begin_reading(file)
        if not self._reading.done():
            return
        reading, self._reading = self._reading, None
        try:
            self._replace_index(reading.result())
        except _UNUSABLE as error:
            message = "cannot use the key file %s, so its previous keys stay valid: %s"
            _logger.error(message, file, _reason(error))  # noqa: TRY400 - the sentence says it all
        else:
            _logger.info("the key file %s has changed; valid keys: %d", file, len(self))

    def _replace_index(self, index: KeyIndex) -> None:
        """Replace the keys of the file. A holder whose record is unchanged keeps its rate state."""
        self._index, self._limits = index, {}
        self._holders = {
            digest: (record, holder)
            for digest, (record, holder) in self._holders.items()
            if digest == self._environment_digest or index.record(digest) == record
        }


def _begin_reading(file: Path) -> Future[KeyIndex]:
    """Start to read a file; a large one on a thread."""
    reading: Future[KeyIndex] = Future()

    def read() -> None:
        try:
            reading.set_result(index_keys(file))
        except Exception as error:  # noqa: BLE001 - the future raises it for its reader
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
    """Scope that a request needs (None if anybody may make it), and the credential that it has."""

    needed: KeyScope | None
    credential: Credential


class Gate:
    """Check of requests against the keys; it admits every request if there is no key ring.

    `denied` is called with the code of every refusal.
    """

    def __init__(self, keys: KeyRing | None = None, denied: Callable[[str], None] = lambda _: None) -> None:
        self._keys = keys
        self._denied = denied

    def enter(self, access: Access) -> Keyholder:
        """Admit a request. Return its keyholder; call its `leave` when the request is over.

        Raises Refusal: unauthenticated, forbidden, rate_limited.
        """
        if self._keys is None or access.needed is None:
            holder = ANONYMOUS_HOLDER
            holder.enter()
            return holder
        try:
            if access.credential.digest is None:
                raise Refusal("unauthenticated", access.credential.complaint)
            match = self._keys.find(access.credential.digest)
            if match is None:
                raise Refusal("unauthenticated", "the server does not know this key; it may have been revoked")
            holder = match
            holder.caller.require(access.needed)
            holder.enter()
        except Refusal as refusal:
            self._denied(refusal.code)
            raise
        return holder
