"""Compact index of a key file: the server's view of 100,000 keys in some 120 bytes each.

Records of pydantic would take 3 KiB each, and reading 100,000 of them would hold up the event loop for seconds. So a
file above `AT_ONCE` bytes is read by a process of its own, `python -m service.core.keys.key_index FILE`, which writes
the index to its standard output. An index is two sorted tables of JSON texts: the record of each key by the key's
SHA-256, and the limits that its keys state by the SHA-256 of the namespace.
"""

from __future__ import annotations

import os
import subprocess
import sys
from bisect import bisect_left
from collections.abc import Iterable, Mapping
from hashlib import sha256
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Final

import numpy as np
import orjson

from service.core.keys.key_file import KEPT_LIMITS, KeyRecord, read_keys
from service.core.settings import without_secrets

#: bytes of a file that are read in some milliseconds
AT_ONCE: Final = 64 << 10
#: seconds that the process which reads a larger file may take
_PATIENCE: Final = 120.0
_DIGEST: Final = 32
#: fields that an index does not need: the digest is its row's key
_LEFT_OUT: Final = {"sha256", "added"}


class SortedTable:
    """Read-only map from digests of 32 bytes to short texts, in three blocks of bytes."""

    def __init__(self, blocks: Iterable[bytes | memoryview]) -> None:
        """`blocks` are the sorted digests, where each text begins (uint32, with the end of the last), and the texts."""
        self.blocks = tuple(blocks)
        digests, starts, texts = self.blocks
        self._digests, self._starts, self._texts = memoryview(digests), memoryview(starts).cast("I"), memoryview(texts)

    @classmethod
    def of(cls, texts: Mapping[bytes, bytes]) -> SortedTable:
        """Make a table of these texts."""
        digests = sorted(texts)
        starts = [0, *accumulate(len(texts[digest]) for digest in digests)]
        return cls((b"".join(digests), np.array(starts, "uint32").tobytes(), b"".join(texts[each] for each in digests)))

    def __len__(self) -> int:
        return len(self._digests) // _DIGEST

    def find(self, digest: bytes) -> bytes | None:
        """Return the text of a digest, or None."""
        row = bisect_left(range(len(self)), digest, key=self._digest)
        if row == len(self) or self._digest(row) != digest:
            return None
        return bytes(self._texts[self._starts[row] : self._starts[row + 1]])

    def _digest(self, row: int) -> bytes:
        return bytes(self._digests[_DIGEST * row : _DIGEST * (row + 1)])


class KeyIndex:
    """Keys of a file by their digests, and the limits of namespaces."""

    def __init__(self, records: SortedTable, limits: SortedTable) -> None:
        self._records, self._limits = records, limits

    @classmethod
    def of(cls, keys: Iterable[KeyRecord] = ()) -> KeyIndex:
        """Make the index of these keys."""
        records: dict[bytes, bytes] = {}
        limits: dict[bytes, dict[str, int]] = {}
        for key in keys:
            records[bytes.fromhex(key.sha256)] = key.model_dump_json(exclude=_LEFT_OUT, exclude_none=True).encode()
            for limit in KEPT_LIMITS:
                if (stated := getattr(key, limit)) is not None:
                    largest = limits.setdefault(_digest_of_namespace(key.namespace), {})
                    largest[limit] = max(stated, largest.get(limit, 0))
        return cls(
            SortedTable.of(records),
            SortedTable.of({digest: orjson.dumps(largest) for digest, largest in limits.items()}),
        )

    @classmethod
    def of_bytes(cls, data: bytes) -> KeyIndex:
        """Return the index that `to_bytes` has written."""
        sizes = np.frombuffer(data[:48], "uint64").tolist()
        bounds = pairwise(accumulate(sizes, initial=48))
        blocks = [memoryview(data)[start:end] for start, end in bounds]
        return cls(SortedTable(blocks[:3]), SortedTable(blocks[3:]))

    def to_bytes(self) -> bytes:
        """Return the index as bytes: the sizes of six blocks (uint64), and the blocks."""
        blocks = (*self._records.blocks, *self._limits.blocks)
        return b"".join((np.array([len(block) for block in blocks], "uint64").tobytes(), *blocks))

    def __len__(self) -> int:
        return len(self._records)

    def record(self, digest: bytes) -> bytes | None:
        """Return the record of a key as JSON without the digest; None if the key is not in the file."""
        return self._records.find(digest)

    def limits(self, namespace: str) -> Mapping[str, int]:
        """Return the largest value that keys of this namespace state for each of `KEPT_LIMITS`, if one does."""
        text = self._limits.find(_digest_of_namespace(namespace))
        return {} if text is None else orjson.loads(text)


def is_small(file: Path) -> bool:
    """Return whether a key file takes no more than milliseconds to read."""
    return file.stat().st_size <= AT_ONCE


def index_keys(file: Path) -> KeyIndex:
    """Read a key file, a large one in a process of its own. Raises OSError; ValueError with what is wrong."""
    if is_small(file):
        return KeyIndex.of(read_keys(file))
    command = (sys.executable, "-P", "-m", "service.core.keys.key_index", str(file))
    environment = {**without_secrets(os.environ), "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    reading = subprocess.run(command, capture_output=True, env=environment, timeout=_PATIENCE, check=False)  # noqa: S603  our own program
    if reading.returncode:
        said = reading.stderr.decode(errors="replace").splitlines()
        raise ValueError(said[-1] if said else "the process that reads it has ended")
    return KeyIndex.of_bytes(reading.stdout)


def _digest_of_namespace(namespace: str) -> bytes:
    return sha256(namespace.encode()).digest()


if __name__ == "__main__":
    try:
        listed = read_keys(Path(sys.argv[1]))
    except (OSError, ValueError) as unusable:
        sys.exit(unusable.strerror if isinstance(unusable, OSError) else str(unusable))
    sys.stdout.buffer.write(KeyIndex.of(listed).to_bytes())
