"""Objects in S3, Google Cloud Storage or Azure, by obstore: a URL says where, the environment has the credentials.

`put_new` is a conditional write, which the store itself decides (If-None-Match: *).
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from service.core.installed import needs_extra
from service.store.objects import Data, Denied, Exists, Missing

if TYPE_CHECKING:
    from obstore.store import ObjectStore

SCHEMES: Final = ("s3", "gs", "az")
#: time for a connection, and for all repetitions of what may be repeated
_CONNECT: Final = timedelta(seconds=5)
_REPEAT: Final = timedelta(seconds=20)
#: time for a request: so much for any, and what its bytes take at a slow rate; requests of like sizes have the same
_LEAST: Final = 5.0
_RATE: Final = 1 << 20
_SIZES: Final = (1 << 20, 16 << 20, 256 << 20, 5 << 30)

#: obstore's message for answers that reject the request itself, unlike those for one that was late or lost a race
_REFUSED: Final = re.compile(r"status(?: code)?:? (?:400|413)\b")

#: opens a store whose requests may take so long, repeated by itself or not
Opener = Callable[[timedelta, bool], "ObjectStore"]


def open_remote(url: str) -> Remote:
    """Open the objects under a URL. Raises RuntimeError for a malformed URL, and if obstore cannot be loaded."""
    parts = urlsplit(url)
    if parts.scheme not in SCHEMES or not parts.netloc or parts.query or parts.fragment or "@" in parts.netloc:
        wanted = "s3://BUCKET/FOLDER, gs://BUCKET/FOLDER or az://CONTAINER/FOLDER"
        raise RuntimeError(f"--state is a URL that gradserve does not understand; {wanted} are")
    with needs_extra(f"state in {parts.scheme}://", "obstore", "s3"):
        from obstore.exceptions import BaseError  # noqa: PLC0415 - an extra
        from obstore.store import from_url  # noqa: PLC0415 - as above
    # An endpoint without TLS, such as a store on the same network, is named on purpose.
    plain = os.environ.get("AWS_ENDPOINT_URL", "").startswith("http://")

    def opened(time: timedelta, repeats: bool) -> ObjectStore:
        options: Any = {"connect_timeout": _CONNECT, "timeout": time, "allow_http": plain}
        return from_url(
            url, client_options=options, retry_config={"retry_timeout": _REPEAT, "max_retries": 5 if repeats else 0}
        )

    try:
        return Remote(opened)
    except (BaseError, ValueError) as error:
        raise RuntimeError(f"the state at {url} cannot be opened: {one_line(error)}") from None


class Remote:
    """Objects of an obstore store, which is opened once for each timeout of requests."""

    exclusive = False

    def __init__(self, opened: Opener) -> None:
        self._open = opened
        self._stores: dict[tuple[timedelta, bool], ObjectStore] = {}
        self._store_for(0)

    def get(self, key: str, start: int = 0, stop: int | None = None) -> bytes:
        """Implement `Objects.get`."""
        with _translated(key):
            size = self._store_for(0).head(key)["size"] if stop is None else stop
            return bytes(self._store_for(size - start).get_range(key, start=start, end=size)) if start < size else b""

    def put(self, key: str, data: Sequence[Data]) -> None:
        """Implement `Objects.put`."""
        with _translated(key):
            self._store_for(_nbytes(data)).put(key, b"".join(data), use_multipart=False)

    def put_new(self, key: str, data: Sequence[Data]) -> None:
        """Implement `Objects.put_new`. It is sent once: the caller decides about a repetition."""
        nbytes = _nbytes(data)
        if nbytes > _SIZES[-1]:
            raise Denied(errno.EFBIG, f"{nbytes} bytes are more than one request may have, {_SIZES[-1]}")
        with _translated(key, makes=True):
            self._store_for(nbytes, repeats=False).put(key, b"".join(data), mode="create", use_multipart=False)

    def delete(self, keys: Sequence[str]) -> None:
        """Implement `Objects.delete`."""
        store = self._store_for(0)
        try:
            with _translated("several"):
                store.delete(list(keys))
        except Missing:  # some stores say so, and have left out what follows
            for key in keys:
                with suppress(Missing), _translated(key):
                    store.delete(key)

    def list(self, prefix: str, after: str = "") -> Iterable[str]:
        """Implement `Objects.list`."""
        with _translated(prefix):
            pages = self._store_for(0).list(prefix or None, offset=after or None)
            return [found["path"] for page in pages for found in page]

    def close(self) -> None:
        """Implement `Objects.close`: connections are closed by their owner."""

    def _store_for(self, nbytes: int, *, repeats: bool = True) -> ObjectStore:
        """Return the store for a request that sends or gets so many bytes."""
        size = next((size for size in _SIZES if nbytes <= size), _SIZES[-1])
        kind = timedelta(seconds=_LEAST + size / _RATE), repeats
        if kind not in self._stores:
            self._stores[kind] = self._open(*kind)
        return self._stores[kind]


def _nbytes(data: Sequence[Data]) -> int:
    return sum(map(len, data))


def one_line(error: Exception) -> str:
    """Return an error message of obstore's without the Rust structures that follow."""
    return " ".join(str(error).split("Debug source:")[0].split())


@contextmanager
def _translated(key: str, *, makes: bool = False) -> Iterator[None]:
    """Translate the errors of obstore to those of `Objects`; `makes` says that an object is being made."""
    from obstore.exceptions import AlreadyExistsError, BaseError  # noqa: PLC0415 - see open_remote

    try:
        yield
    except AlreadyExistsError:
        raise Exists(key) from None
    except FileNotFoundError as error:
        if makes:  # the bucket is not there
            raise Denied(errno.ENOENT, one_line(error)) from None
        raise Missing(key) from None
    except (BaseError, ValueError) as error:
        kind = Denied if makes and _is_refusal(error) else OSError
        raise kind(errno.EIO, one_line(error)) from None


def _is_refusal(error: Exception) -> bool:
    """Return whether the store has rejected the request as wrong or forbidden, and not failed at it."""
    from obstore import exceptions  # noqa: PLC0415 - see open_remote

    rejections = (
        exceptions.InvalidPathError,
        exceptions.NotSupportedError,
        exceptions.PermissionDeniedError,
        exceptions.UnauthenticatedError,
    )
    return isinstance(error, rejections) or _REFUSED.search(str(error)) is not None
