"""Objects in S3, Google Cloud Storage or Azure, by obstore: a URL says where, the environment has the credentials.

`put_new` is a conditional write, which the store itself decides (If-None-Match: *).
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from service.state.objects import Data, Exists, Missing

if TYPE_CHECKING:
    from obstore.store import ObjectStore

SCHEMES: Final = ("s3", "gs", "az")
#: seconds: for a connection, for a whole request, and for all its repetitions
_CONNECT: Final = timedelta(seconds=5)
_REQUEST: Final = timedelta(minutes=10)
_REPEAT: Final = timedelta(seconds=20)


def open_remote(url: str) -> Remote:
    """The objects under a URL. Raises RuntimeError where it cannot be understood, or obstore cannot be loaded."""
    parts = urlsplit(url)
    if parts.scheme not in SCHEMES or not parts.netloc or parts.query or parts.fragment or "@" in parts.netloc:
        wanted = "s3://BUCKET/FOLDER, gs://BUCKET/FOLDER or az://CONTAINER/FOLDER"
        raise RuntimeError(f"--state is a URL that gradserve does not understand; {wanted} are")
    try:
        from obstore.exceptions import BaseError  # noqa: PLC0415 - loaded by those who keep their state in a cloud
        from obstore.store import from_url  # noqa: PLC0415 - as above
    except ImportError as error:
        raise RuntimeError(f"a state in {parts.scheme}:// needs the package obstore: {error}") from None
    try:
        # Who names an endpoint without TLS, as of a store on the same network, means it.
        plain = os.environ.get("AWS_ENDPOINT_URL", "").startswith("http://")
        options: Any = {"connect_timeout": _CONNECT, "timeout": _REQUEST, "allow_http": plain}
        return Remote(from_url(url, client_options=options, retry_config={"retry_timeout": _REPEAT, "max_retries": 5}))
    except (BaseError, ValueError) as error:
        raise RuntimeError(f"the state at {url} cannot be opened: {one_line(error)}") from None


class Remote:
    """The objects of an obstore store."""

    exclusive = False

    def __init__(self, store: ObjectStore) -> None:
        self._store = store

    def get(self, key: str, start: int = 0, stop: int | None = None) -> bytes:
        """As `Objects` has it."""
        with _told(key):
            if stop is None and not start:
                return bytes(self._store.get(key).bytes())
            size = self._store.head(key)["size"] if stop is None else stop
            return bytes(self._store.get_range(key, start=start, end=size)) if start < size else b""

    def put(self, key: str, data: Sequence[Data]) -> None:
        """As `Objects` has it."""
        with _told(key):
            self._store.put(key, b"".join(data), use_multipart=False)

    def put_new(self, key: str, data: Sequence[Data]) -> None:
        """As `Objects` has it."""
        with _told(key):
            self._store.put(key, b"".join(data), mode="create", use_multipart=False)

    def delete(self, keys: Sequence[str]) -> None:
        """As `Objects` has it."""
        try:
            with _told("several"):
                self._store.delete(list(keys))
        except Missing:  # some stores say so, and have left out what follows
            for key in keys:
                with suppress(Missing), _told(key):
                    self._store.delete(key)

    def list(self, prefix: str) -> Iterable[str]:
        """As `Objects` has it."""
        with _told(prefix):
            return [found["path"] for page in self._store.list(prefix or None) for found in page]

    def close(self) -> None:
        """As `Objects` has it: connections are closed by their owner."""


def one_line(error: Exception) -> str:
    """What an error of obstore's says, without the Rust structures that follow."""
    return " ".join(str(error).split("Debug source:")[0].split())


@contextmanager
def _told(key: str) -> Iterator[None]:
    """The errors of obstore as those of `Objects`."""
    from obstore.exceptions import AlreadyExistsError, BaseError  # noqa: PLC0415 - see open_remote

    try:
        yield
    except AlreadyExistsError:
        raise Exists(key) from None
    except FileNotFoundError:
        raise Missing(key) from None
    except (BaseError, ValueError) as error:
        raise OSError(errno.EIO, one_line(error)) from None
