"""Key file: JSON records of keys with their hashes, readable only by its owner and replaced atomically."""

from __future__ import annotations

import fcntl
import os
import re
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Final, Literal, NamedTuple

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from service.core.keys.caller import Caller, KeyScope
from service.core.machine import WRITABLE_BY_OTHERS
from service.core.settings import Size

#: maximum size of a key file in bytes: a few hundred thousand keys
_MAX_BYTES: Final = 64 << 20
_RATE: Final = re.compile(r"([1-9][0-9]{0,8})/(s|min|h)")
_SECONDS: Final = {"s": 1.0, "min": 60.0, "h": 3600.0}


class Rate(NamedTuple):
    """Rate limit: `requests` per `seconds`."""

    requests: int
    seconds: float


def rate_of(text: str) -> Rate:
    """Parse `10/s`, `600/min` or `5000/h`. Raises ValueError."""
    match = _RATE.fullmatch(text)
    if match is None:
        raise ValueError("a rate is a whole number of requests per s, min or h, as in 10/s")
    return Rate(int(match[1]), _SECONDS[match[2]])


def _checked(text: str) -> str:
    rate_of(text)
    return text


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


class KeyRecord(BaseModel):
    """Record of a key, with its SHA-256 in hexadecimal instead of the key.

    A field `max_…` limits the namespace, in place of its share of the setting with that name.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str = Field(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}$")
    sha256: str = Field(pattern=r"^[0-9a-f]{64}$")
    namespace: str = Field(pattern=r"^[A-Za-z0-9_.-]{0,64}$")
    scopes: tuple[KeyScope, ...] = Field(min_length=1)
    rate: Annotated[str, AfterValidator(_checked)] | None = None
    concurrency: int | None = Field(None, ge=1)
    max_graphs: int | None = Field(None, ge=0)
    max_graph_bytes: Size | None = Field(None, ge=0)
    max_tensors: int | None = Field(None, ge=0)
    max_tensor_bytes: Size | None = Field(None, ge=0)
    max_answers: int | None = Field(None, ge=0)
    max_answer_bytes: Size | None = Field(None, ge=0)
    max_models: int | None = Field(None, ge=0)
    max_model_bytes: Size | None = Field(None, ge=0)
    added: str = Field(default_factory=_now)

    @property
    def caller(self) -> Caller:
        """Caller that the key identifies."""
        return Caller(self.name, self.namespace, frozenset(self.scopes))


#: storage limits of a namespace that a key may set
STORAGE_LIMITS: Final = tuple(name for name in KeyRecord.model_fields if name.startswith("max_"))


class KeyList(BaseModel):
    """Content of a key file."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    format: Literal[1] = 1
    keys: tuple[KeyRecord, ...] = ()


Keys = tuple[KeyRecord, ...]


def read_keys(path: Path) -> Keys:
    """Read a key file. Raises OSError, or ValueError with a reason that quotes nothing of the file."""
    with path.open("rb") as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise ValueError("it is not a regular file")
        if status.st_mode & WRITABLE_BY_OTHERS:
            raise ValueError("other users can write to it; run chmod 600")
        text = file.read(_MAX_BYTES + 1)
    if len(text) > _MAX_BYTES:
        raise ValueError(f"it is larger than {_MAX_BYTES} bytes")
    try:
        keys = KeyList.model_validate_json(text).keys
    except ValidationError as error:
        # Leave the value out of the message: it may be a key that should not be there.
        first = error.errors(include_input=False, include_context=False, include_url=False)[0]
        place = ".".join(map(str, first["loc"]))
        reason = first["msg"] if first["type"] != "json_invalid" else "it is not JSON"
        raise ValueError(f"{place}: {reason}" if place else reason) from None
    # Two keys of one name could not be distinguished in a log, nor revoked separately.
    for field in ("name", "sha256"):
        numbers: dict[str, int] = {}
        for number, key in enumerate(keys):
            if (first_number := numbers.setdefault(getattr(key, field), number)) != number:
                raise ValueError(f"keys.{number}.{field} is the same as that of keys.{first_number}")
    return keys


def change_keys(path: Path, change: Callable[[Keys], Keys]) -> None:
    """Replace the keys of a file by `change(keys)`. The file is created if it is missing.

    Concurrent changes are serialized. Raises OSError, ValueError, and the errors of `change`.
    """
    path = path.resolve()  # replace the target of a symbolic link, not the link
    with _folder_lock(path.parent):
        keys = read_keys(path) if path.exists() else ()
        _replace(path, KeyList(keys=change(keys)).model_dump_json(indent=2, exclude_none=True).encode() + b"\n")


@contextmanager
def _folder_lock(folder: Path) -> Iterator[None]:
    """Hold an exclusive lock on a folder. A lock on the file itself would not do, since the file is replaced."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _replace(path: Path, text: bytes) -> None:
    # Write a temporary file and rename it, so that readers see either the old or the new keys.
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            with suppress(FileNotFoundError):
                # If root edits the file of the server's user, that user must still be able to read it.
                owner = path.stat()
                if (owner.st_uid, owner.st_gid) != (os.geteuid(), os.getegid()):
                    os.fchown(file.fileno(), owner.st_uid, owner.st_gid)
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
