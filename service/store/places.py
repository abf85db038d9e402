"""Places of state, as the setting `--state` names them: open one, check its format, and lock it."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

import orjson

from service.core.settings import MAX_SHARDS, NO_STATE, flag
from service.store.commit_objects import COMMITS
from service.store.folder import Folder
from service.store.journal import Journal, MemoryJournal
from service.store.object_journal import ObjectJournal
from service.store.objects import SHARD_FOLDERS, Exists, Missing, Objects
from service.store.remote import open_remote

FORMAT_KEY: Final = "FORMAT"
#: content of the object FORMAT: a single journal, for one server; or shards, which servers share
WHOLE_FORMAT: Final = b"gradserve state 1\n"
SHARED_FORMAT: Final = b"gradserve state 2\n"
#: object beside FORMAT with the number of shards, and its own format
SHARDS_KEY: Final = "SHARDS"
_SHARDS_FORMAT: Final = "gradserve shards 1"
#: number of shards of a state without that object: earlier versions wrote none
UNRECORDED_SHARDS: Final = 16
#: attempts to write the number, if the store reports a conflict without keeping any object
_ATTEMPTS: Final = 10


def open_state(place: str | None, lease: float = 1.0) -> Journal:
    """Open the journal of a place: a folder, an s3://, gs:// or az:// URL, or nothing (`memory`, None).

    `lease`: seconds for which a look at a shared place stays valid. Raises RuntimeError.
    """
    if place is None or place == NO_STATE:
        return MemoryJournal()
    objects, has_state = claim_objects(place)
    with _errors_in_words(place, objects):
        if not has_state:
            write_format(objects)
    return ObjectJournal(objects, place_name(place), lease=lease)


def prepare_shared(objects: Objects, name: str, shards: int) -> None:
    """Mark an empty place as a state of so many shards; check that a state has this form and this number. Blocks.

    It may be repeated, and several servers may call it at once. Raises OSError if the store does not respond or rejects
    the request; RuntimeError with one sentence if the place has something else.
    """
    if not _has_form(objects, name, SHARED_FORMAT):
        write_format(objects, SHARED_FORMAT)
    for _ in range(_ATTEMPTS):
        if require_shards(objects, name, shards):
            return
        with suppress(Exists):  # another server has just recorded its number
            objects.put_new(SHARDS_KEY, [shards_record(shards)])
            return
    raise OSError(errno.EBUSY, f"the object {SHARDS_KEY} exists, but cannot be read")


def require_shards(objects: Objects, name: str, shards: int) -> bool:
    """Check that a shared state has so many shards; return whether its number is recorded. Blocks.

    Raises RuntimeError with one sentence for another number or an invalid record, and OSError.
    """
    recorded = number = recorded_shards(objects, name)
    if recorded is None and shards != UNRECORDED_SHARDS and [*objects.list(SHARD_FOLDERS)]:
        # An earlier version has written here, or another server has recorded its number since the first check.
        recorded = recorded_shards(objects, name)
        number = recorded or UNRECORDED_SHARDS
    if number not in (None, shards):
        raise RuntimeError(
            f"{name} has {number} shards, but {flag('shards')} is {shards}; set {flag('shards')} {number}, or convert "
            "the state with gradserve backup and gradserve restore, into an empty place"
        )
    return recorded is not None


def recorded_shards(objects: Objects, name: str) -> int | None:
    """Return the recorded number of shards of a state; None if there is none.

    Raises RuntimeError with one sentence if the record is not valid, and OSError.
    """
    try:
        content = objects.get(SHARDS_KEY, 0, 100)
    except Missing:
        return None
    try:
        return parse_shards(content)
    except ValueError as error:
        raise RuntimeError(f"{name} cannot be used: {SHARDS_KEY} {error}") from None


def shards_record(shards: int) -> bytes:
    """Encode a number of shards."""
    return orjson.dumps({"format": _SHARDS_FORMAT, "shards": shards}) + b"\n"


def parse_shards(content: bytes) -> int:
    """Decode a number of shards. Raises ValueError; its message ends a sentence that begins with the object's name."""
    try:
        record = orjson.loads(content)
        form, shards = record["format"], record["shards"]
    except (orjson.JSONDecodeError, KeyError, TypeError):
        raise ValueError("is damaged, or was not written by gradserve") from None
    if form != _SHARDS_FORMAT:
        raise ValueError(f"has the format {form!r}, but this version of gradserve only reads {_SHARDS_FORMAT!r}")
    if type(shards) is not int or not 1 <= shards <= MAX_SHARDS:
        raise ValueError(f"names {shards!r} shards, but a state has 1 to {MAX_SHARDS}")
    return shards


def claim_objects(place: str, form: bytes = WHOLE_FORMAT) -> tuple[Objects, bool]:
    """Open the objects of a place, and lock it if it is a folder; return also whether there is any state.

    Raises RuntimeError with one sentence, also if the state has another form. A place that is not ours is not changed.
    """
    objects = open_objects(place, make=True)
    with _errors_in_words(place, objects):
        has_state = _has_form(objects, place_name(place), form)
        if isinstance(objects, Folder):
            commits = COMMITS.rstrip("/")
            objects.require_private()
            objects.lock()
            objects.require_writable(commits)
            objects.require_private(commits)
            objects.clean(commits)
        return objects, has_state


def inspect_place(place: str, form: bytes = WHOLE_FORMAT) -> None:
    """Check an existing place as `claim_objects` does, but neither lock nor change it. Raises RuntimeError."""
    objects = open_objects(place)
    with _errors_in_words(place, objects):
        _has_form(objects, place_name(place), form)
        if isinstance(objects, Folder):
            commits = COMMITS.rstrip("/")
            objects.require_private(*([commits] if (objects.path / commits).is_dir() else []))
    objects.close()


def open_objects(place: str, *, make: bool = False) -> Objects:
    """Open the objects of a place without locking it. With `make`, a missing folder is created. Raises RuntimeError."""
    if "://" in place:
        return open_remote(place)
    try:
        return Folder(Path(place), make=make)
    except OSError as error:
        raise _unusable(place, error) from None


def place_name(place: str) -> str:
    """Return the name of a place in messages."""
    return f"the state at {place}" if "://" in place else f"the state folder {place}"


def place_format(objects: Objects, name: str) -> bytes | None:
    """Return the form of the state in a place, WHOLE_FORMAT or SHARED_FORMAT; None if the place is empty.

    Raises RuntimeError if there is anything else, and OSError.
    """
    content = _read_format(objects)
    if content is None:
        stranger = next(iter(objects.list("")), None)
        if stranger is None:
            return None
        content = _read_format(objects)  # another server may have begun here since the first check
    if content is None:
        problem = f"{name} was not written by gradserve: it has {stranger!r} but no {FORMAT_KEY}"
        raise RuntimeError(f"{problem}; set --state to an empty or another place")
    if content not in (WHOLE_FORMAT, SHARED_FORMAT):
        known = " and ".join(repr(form.decode().strip()) for form in (WHOLE_FORMAT, SHARED_FORMAT))
        shown = content.decode("ascii", "replace").strip()
        raise RuntimeError(f"{name} has the format {shown!r}, but this version of gradserve only reads {known}")
    return content


def _has_form(objects: Objects, name: str, form: bytes) -> bool:
    """Return whether there is state in a place. Raises RuntimeError if it has another form, and OSError."""
    present = place_format(objects, name)
    if present is not None and present != form:
        use = (
            "servers share with --cluster on"
            if present == SHARED_FORMAT
            else "is for a single server, without --cluster on"
        )
        advice = "gradserve backup and gradserve restore convert it, into an empty place"
        raise RuntimeError(f"{name} has the format {present.decode().strip()!r}, which {use}; {advice}")
    return present is not None


def _read_format(objects: Objects) -> bytes | None:
    """Return the content of the object FORMAT, or None."""
    try:
        return objects.get(FORMAT_KEY, 0, 100)
    except Missing:
        return None


def write_format(objects: Objects, form: bytes = WHOLE_FORMAT) -> None:
    """Mark the place as ours, in this form."""
    with suppress(Exists):  # another server has just begun here as well
        objects.put_new(FORMAT_KEY, [form])


@contextmanager
def _errors_in_words(place: str, objects: Objects) -> Iterator[None]:
    """Turn errors into RuntimeError with a sentence about the place, and close its objects."""
    try:
        yield
    except BlockingIOError:
        objects.close()
        problem = f"{place_name(place)} is in use by another server"
        raise RuntimeError(f"{problem}; set another --state for this server") from None
    except OSError as error:
        objects.close()
        raise _unusable(place, error) from None
    except RuntimeError:
        objects.close()
        raise


def _unusable(place: str, error: OSError) -> RuntimeError:
    problem = f"cannot use {place_name(place)}: {error.strerror or error}"
    return RuntimeError(f"{problem}; set another --state, or {NO_STATE} to store nothing on disk")
