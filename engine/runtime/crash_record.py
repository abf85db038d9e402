"""Crash record: the plan that this process runs, in memory that outlives it. Its supervisor reads it after a crash."""

from __future__ import annotations

from typing import Final, NamedTuple

#: bytes of a plan's digest, and of the words that say where in the plan
_DIGEST: Final = 32
_WORDS: Final = 96
_NO_DIGEST: Final = bytes(_DIGEST)
#: the words while nothing is known of where a run is
NOWHERE: Final = bytes(_WORDS)
#: bytes of a record
CRASH_RECORD_BYTES: Final = 2 * _DIGEST + _WORDS


class LastWords(NamedTuple):
    """Digests of the plan that ran and of the one that was compiled, hexadecimal or empty, and the place in the run.

    A process that has gone wrong wrote it: the words are printable ASCII, and may say anything.
    """

    running: str
    compiling: str
    place: str


class CrashRecord:
    """Record of one thread that runs plans. To write an entry takes a fraction of a microsecond."""

    __slots__ = ("_compiling", "_place", "_running")

    def __init__(self) -> None:
        self.attach(memoryview(bytearray(CRASH_RECORD_BYTES)))

    def attach(self, memory: memoryview) -> None:
        """Write from now on into CRASH_RECORD_BYTES that another process can read."""
        self._running, self._compiling = memory[:_DIGEST], memory[_DIGEST : 2 * _DIGEST]
        self._place = memory[2 * _DIGEST : CRASH_RECORD_BYTES]

    def runs(self, digest: bytes) -> None:
        """Note that a plan begins."""
        self._place[:] = NOWHERE
        self._running[:] = digest

    def is_at(self, place: bytes) -> None:
        """Note where the run is, in words that `place_named` made."""
        self._place[:] = place

    def ran(self) -> None:
        """Note that the run has ended."""
        self._running[:] = _NO_DIGEST

    def compiles(self, digest: bytes = _NO_DIGEST) -> None:
        """Note that a plan is compiled in the background; without a digest, that none is any more."""
        self._compiling[:] = digest


#: the record of this process
crash_record: Final = CrashRecord()


def place_named(words: str) -> bytes:
    """Encode words as a record holds them."""
    return words.encode("ascii", "replace")[:_WORDS].ljust(_WORDS, b"\0")


def last_words(memory: memoryview) -> LastWords:
    """Read a record."""
    record = bytes(memory[:CRASH_RECORD_BYTES])
    words = record[2 * _DIGEST :].split(b"\0")[0].decode("ascii", "replace")
    digests = record[:_DIGEST], record[_DIGEST : 2 * _DIGEST]
    running, compiling = ("" if digest == _NO_DIGEST else digest.hex() for digest in digests)
    return LastWords(running, compiling, "".join(c if c.isascii() and c.isprintable() else "?" for c in words))
