"""Crash record: the plan that a process is running, in memory that its supervisor can read after a crash."""

from __future__ import annotations

from typing import Final, NamedTuple

#: bytes of a plan's digest, and of the text that tells the place in the plan
_DIGEST: Final = 32
_WORDS: Final = 96
_NO_DIGEST: Final = bytes(_DIGEST)
#: text while the place in the plan is unknown
UNKNOWN_PLACE: Final = bytes(_WORDS)
#: total bytes of a record
CRASH_RECORD_BYTES: Final = 2 * _DIGEST + _WORDS


class LastWords(NamedTuple):
    """Hexadecimal digests of the plans that were running and being compiled, or empty, and the place in the run.

    The crashed process may have written anything: the place is reduced to printable ASCII, but must not be trusted.
    """

    running: str
    compiling: str
    place: str


class CrashRecord:
    """Record of one thread that runs plans. Writing an entry takes a fraction of a microsecond."""

    __slots__ = ("_compiling", "_place", "_running")

    def __init__(self) -> None:
        self.attach(memoryview(bytearray(CRASH_RECORD_BYTES)))

    def attach(self, memory: memoryview) -> None:
        """Write to this memory from now on, CRASH_RECORD_BYTES that another process can read."""
        self._running, self._compiling = memory[:_DIGEST], memory[_DIGEST : 2 * _DIGEST]
        self._place = memory[2 * _DIGEST : CRASH_RECORD_BYTES]

    def begin_run(self, digest: bytes) -> None:
        """Record that a plan begins to run."""
        self._place[:] = UNKNOWN_PLACE
        self._running[:] = digest

    def set_place(self, place: bytes) -> None:
        """Record the place in the plan, as encoded by `place_named`."""
        self._place[:] = place

    def end_run(self) -> None:
        """Record that the run has ended."""
        self._running[:] = _NO_DIGEST

    def set_compiling(self, digest: bytes = _NO_DIGEST) -> None:
        """Record that a plan is being compiled in the background, or without a digest, that none is."""
        self._compiling[:] = digest


#: record of this process
crash_record: Final = CrashRecord()


def place_named(words: str) -> bytes:
    """Encode a place for a record."""
    return words.encode("ascii", "replace")[:_WORDS].ljust(_WORDS, b"\0")


def last_words(memory: memoryview) -> LastWords:
    """Parse a record."""
    record = bytes(memory[:CRASH_RECORD_BYTES])
    words = record[2 * _DIGEST :].split(b"\0")[0].decode("ascii", "replace")
    digests = record[:_DIGEST], record[_DIGEST : 2 * _DIGEST]
    running, compiling = ("" if digest == _NO_DIGEST else digest.hex() for digest in digests)
    return LastWords(running, compiling, "".join(c if c.isascii() and c.isprintable() else "?" for c in words))
