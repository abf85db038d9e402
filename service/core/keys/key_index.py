"""Compact index of a key file: the server holds 100,000 keys at about 120 bytes each.

pydantic records would take 3 KiB each, and parsing 100,000 of them would block the event loop for seconds. So a file
larger than `IN_PROCESS_BYTES` is parsed by a separate process, `python -m service.core.keys.key_index FILE`, which
writes the index to its standard output. An index is two sorted tables of JSON texts: the record of each key by the
key's SHA-256, and the limits that keys set for their namespace by the SHA-256 of the namespace.
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

from service.core.keys.key_file import STORAGE_LIMITS, KeyRecord, read_keys
from service.core.settings import without_secrets

#: largest file in bytes that is parsed in-process, which takes a few milliseconds
IN_PROCESS_BYTES: Final = 64 << 10
#: timeout in seconds of the process that parses a larger file
_PATIENCE: Final = 120.0
_DIGEST: Final = 32
#: fields that an index does not store; the digest is the row's key
_UNINDEXED: Final = {"sha256", "added"}


class SortedTable:
    """Read-only map from 32-byte digests to short texts, stored in three byte blocks."""

    def __init__(self, blocks: Iterable[bytes | memoryview]) -> None:
        """`blocks` are the sorted digests, the offset of each text (uint32, and the end of the last), and the texts."""
        self.blocks = tuple(blocks)
        digests, starts, texts = self.blocks
        self._digests, self._starts, self._texts = memoryview(digests), memoryview(starts).cast("I"), memoryview(texts)

    @classmethod
    def build(cls, texts: Mapping[bytes, bytes]) -> SortedTable:
        """Build a table from a mapping."""
        digests = sorted(texts)
        starts = [0, *accumulate(len(texts[digest]) for digest in digests)]
        return cls(
            (b"".join(digests), np.array(starts, "uint32").tobytes(), b"".join(texts[digest] for digest in digests))
        )

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
    """Keys of a file by digest, and limits of namespaces."""

    def __init__(self, records: SortedTable, limits: SortedTable) -> None:
        self._records, self._limits = records, limits

    @classmethod
    def build(cls, keys: Iterable[KeyRecord] = ()) -> KeyIndex:
        """Build the index of these keys."""
        records: dict[bytes, bytes] = {}
        limits: dict[bytes, dict[str, int]] = {}
        for key in keys:
            records[bytes.fromhex(key.sha256)] = key.model_dump_json(exclude=_UNINDEXED, exclude_none=True).encode()
            for limit in STORAGE_LIMITS:
                if (value := getattr(key, limit)) is not None:
                    largest = limits.setdefault(_digest_of_namespace(key.namespace), {})
                    largest[limit] = max(value, largest.get(limit, 0))
        return cls(
            SortedTable.build(records),
            SortedTable.build({digest: orjson.dumps(largest) for digest, largest in limits.items()}),
        )

    @classmethod
    def of_bytes(cls, data: bytes) -> KeyIndex:
        """Load an index that `to_bytes` has serialized."""
        sizes = np.frombuffer(data[:48], "uint64").tolist()
        bounds = pairwise(accumulate(sizes, initial=48))
        blocks = [memoryview(data)[start:end] for start, end in bounds]
        return cls(SortedTable(blocks[:3]), SortedTable(blocks[3:]))

    def to_bytes(self) -> bytes:
        """Serialize the index: the sizes of six blocks (uint64), then the blocks."""
        blocks = (*self._records.blocks, *self._limits.blocks)
        return b"".join((np.array([len(block) for block in blocks], "uint64").tobytes(), *blocks))

    def __len__(self) -> int:
        return len(self._records)

    def record(self, digest: bytes) -> bytes | None:
        """Return a key's record as JSON without the digest; None if the key is not in the file."""
        return self._records.find(digest)

    def limits(self, namespace: str) -> Mapping[str, int]:
        """Return the largest value that keys of this namespace set for each of `STORAGE_LIMITS`, if any sets one."""
        text = self._limits.find(_digest_of_namespace(namespace))
        return {} if text is None else orjson.loads(text)


def is_small(file: Path) -> bool:
    """Return whether a key file can be parsed in a few milliseconds."""
    return file.stat().st_size <= IN_PROCESS_BYTES


def index_keys(file: Path) -> KeyIndex:
    """Read and index a key file; a large one in a separate process. Raises OSError, or ValueError with the reason."""
    if is_small(file):
        return KeyIndex.build(read_keys(file))
    command = (sys.executable, "-P", "-m", "service.core.keys.key_index", str(file))
    environment = {**without_secrets(os.environ), "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    process = subprocess.run(command, capture_output=True, env=environment, timeout=_PATIENCE, check=False)  # noqa: S603  our own program
    if process.returncode:
        messages = process.stderr.decode(errors="replace").splitlines()
        raise ValueError(messages[-1] if messages else "the process that reads it has exited")
    return KeyIndex.of_bytes(process.stdout)


def _digest_of_namespace(namespace: str) -> bytes:
    return sha256(namespace.encode()).digest()


if __name__ == "__main__":
    try:
        records = read_keys(Path(sys.argv[1]))
    except (OSError, ValueError) as unusable:
        sys.exit(unusable.strerror if isinstance(unusable, OSError) else str(unusable))
    sys.stdout.buffer.write(KeyIndex.build(records).to_bytes())
