"""Objects in S3, Google Cloud Storage or Azure, through obstore; the environment has the credentials.

`put_new` is a conditional write, on which the store itself decides (If-None-Match: *).
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
#: timeouts of a connection, and of a request with all its repetitions
_CONNECT: Final = timedelta(seconds=5)
_RETRY: Final = timedelta(seconds=20)
#: timeout of a request: a base, and the time for its bytes at a slow rate; sizes are rounded up to one of these
_BASE_SECONDS: Final = 5.0
_BYTES_PER_SECOND: Final = 1 << 20
_SIZES: Final = (1 << 20, 16 << 20, 256 << 20, 5 << 30)

#: obstore's messages for responses that reject a request itself, unlike timeouts and lost races
_REFUSED: Final = re.compile(r"status(?: code)?:? (?:400|413)\b")

#: function that opens a store, given the timeout of its requests and whether obstore may repeat them
Opener = Callable[[timedelta, bool], "ObjectStore"]


def open_remote(url: str) -> Remote:
    """Open the objects under a URL. Raises RuntimeError for a malformed URL, and if obstore cannot be loaded."""
    parts = urlsplit(url)
    if parts.scheme not in SCHEMES or not parts.netloc or parts.query or parts.fragment or "@" in parts.netloc:
        supported = "s3://BUCKET/FOLDER, gs://BUCKET/FOLDER or az://CONTAINER/FOLDER"
        raise RuntimeError(f"--state is not a supported URL; use {supported}")
    with needs_extra(f"state in {parts.scheme}://", "obstore", "s3"):
        from obstore.exceptions import BaseError  # noqa: PLC0415 - an extra
        from obstore.store import from_url  # noqa: PLC0415 - as above
    # Someone who names an endpoint without TLS, such as a store in the same network, means it.
    plain = os.environ.get("AWS_ENDPOINT_URL", "").startswith("http://")

    def opened(time: timedelta, repeats: bool) -> ObjectStore:
        options: Any = {"connect_timeout": _CONNECT, "timeout": time, "allow_http": plain}
        return from_url(
            url, client_options=options, retry_config={"retry_timeout": _RETRY, "max_retries": 5 if repeats else 0}
        )

    try:
        return Remote(opened)
    except (BaseError, ValueError) as error:
        raise RuntimeError(f"cannot open the state at {url}: {one_line(error)}") from None


class Remote:
    """Objects of an obstore store, which is opened once for each timeout: obstore has no timeouts per request."""

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
        except Missing:  # some stores raise this, and skip the rest
            for key in keys:
                with suppress(Missing), _translated(key):
                    store.delete(key)

    def list(self, prefix: str, after: str = "") -> Iterable[str]:
        """Implement `Objects.list`."""
        with _translated(prefix):
            pages = self._store_for(0).list(prefix or None, offset=after or None)
            return [entry["path"] for page in pages for entry in page]

    def close(self) -> None:
        """Implement `Objects.close`: there is nothing to close."""

    def _store_for(self, nbytes: int, *, repeats: bool = True) -> ObjectStore:
        """Return the store whose timeout suits a request with so many bytes."""
        size = next((size for size in _SIZES if nbytes <= size), _SIZES[-1])
        kind = timedelta(seconds=_BASE_SECONDS + size / _BYTES_PER_SECOND), repeats
        if kind not in self._stores:
            self._stores[kind] = self._open(*kind)
        return self._stores[kind]


def _nbytes(data: Sequence[Data]) -> int:
    return sum(map(len, data))


def one_line(error: Exception) -> str:
    """Return an error message of obstore without the Rust structures at its end."""
    return " ".join(str(error).split("Debug source:")[0].split())


@contextmanager
def _translated(key: str, *, makes: bool = False) -> Iterator[None]:
    """Translate errors of obstore to those of `Objects`; `makes` tells that an object is being created."""
    from obstore.exceptions import AlreadyExistsError, BaseError  # noqa: PLC0415 - see open_remote

    try:
        yield
    except AlreadyExistsError:
        raise Exists(key) from None
    except FileNotFoundError as error:
        if makes:  # the bucket does not exist
            raise Denied(errno.ENOENT, one_line(error)) from None
        raise Missing(key) from None
    except (BaseError, ValueError) as error:
        kind = Denied if makes and _is_refusal(error) else OSError
        raise kind(errno.EIO, one_line(error)) from None


def _is_refusal(error: Exception) -> bool:
    """Return whether the store has rejected the request as wrong or forbidden, instead of failing."""
    from obstore import exceptions  # noqa: PLC0415 - see open_remote

    rejections = (
        exceptions.InvalidPathError,
        exceptions.NotSupportedError,
        exceptions.PermissionDeniedError,
        exceptions.UnauthenticatedError,
    )
    return isinstance(error, rejections) or _REFUSED.search(str(error)) is not None
