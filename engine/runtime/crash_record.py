"""Crash record: what this process computes at this moment, in memory that outlives it. Its supervisor reads it."""

from __future__ import annotations

from typing import Final, NamedTuple

#: bytes of a plan's digest, and of the words on where in it
_DIGEST: Final = 32
_WORDS: Final = 96
_NO_DIGEST: Final = bytes(_DIGEST)
#: before anything is known of where a run is
NOWHERE: Final = bytes(_WORDS)
#: bytes that a witness writes
CRASH_RECORD_BYTES: Final = 2 * _DIGEST + _WORDS


class LastWords(NamedTuple):
    """The digests of the plan that ran and of the one that was compiled, hexadecimal, or empty; and where in the run.

    It is the word of a process that has gone wrong: the words are printable ASCII, and may say anything.
    """

    running: str
    compiling: str
    place: str


class CrashRecord:
    """Record of what is going on, for a fraction of a microsecond each time. Belongs to one thread that runs plans."""

    __slots__ = ("_compiling", "_place", "_running")

    def __init__(self) -> None:
        self.attach(memoryview(bytearray(CRASH_RECORD_BYTES)))

    def attach(self, memory: memoryview) -> None:
        """Write here from now on, into WITNESS_BYTES that another process can read."""
        self._running, self._compiling = memory[:_DIGEST], memory[_DIGEST : 2 * _DIGEST]
        self._place = memory[2 * _DIGEST : CRASH_RECORD_BYTES]

    def runs(self, digest: bytes) -> None:
        """A plan begins."""
        self._place[:] = NOWHERE
        self._running[:] = digest

    def is_at(self, place: bytes) -> None:
        """It is here, in words that `place_named` made."""
        self._place[:] = place

    def ran(self) -> None:
        """It has come to its end."""
        self._running[:] = _NO_DIGEST

    def compiles(self, digest: bytes = _NO_DIGEST) -> None:
        """A plan is compiled in the background; or none is any more."""
        self._compiling[:] = digest


#: that of this process, as its runner
crash_record: Final = CrashRecord()


def place_named(words: str) -> bytes:
    """Words as a witness writes them."""
    return words.encode("ascii", "replace")[:_WORDS].ljust(_WORDS, b"\0")


def last_words(memory: memoryview) -> LastWords:
    """What a witness has written into WITNESS_BYTES."""
    said = bytes(memory[:CRASH_RECORD_BYTES])
    words = said[2 * _DIGEST :].split(b"\0")[0].decode("ascii", "replace")
    digests = said[:_DIGEST], said[_DIGEST : 2 * _DIGEST]
    running, compiling = ("" if digest == _NO_DIGEST else digest.hex() for digest in digests)
    return LastWords(running, compiling, "".join(c if c.isascii() and c.isprintable() else "?" for c in words))
