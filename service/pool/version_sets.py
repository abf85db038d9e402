"""Sets of versions that are read together, each known to workers under one name for as long as it is read.

What a tensor is may change between two tasks of one request; what a set is never does.
"""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping
from hashlib import blake2b

from service.pool.lending import Lending
from service.pool.replica import TensorKey
from service.state.tensors import TensorVersion


class VersionSets:
    """The sets that somebody reads, among what tasks read. For one thread."""

    def __init__(self, residents: MutableMapping[TensorKey, TensorVersion], lending: Lending) -> None:
        self._residents = residents
        self._lending = lending
        self._readers: dict[str, int] = {}

    def enter(self, found: Mapping[str, TensorVersion]) -> str:
        """Somebody reads these versions, which are lent: the name of their set."""
        name = _name_of(found)
        self._readers[name] = self._readers.get(name, 0) + 1
        for tensor, version in found.items():
            self._residents[name, tensor] = version
        return name

    def leave(self, name: str, found: Mapping[str, TensorVersion]) -> list[TensorKey]:
        """They read them no more, and give them back. What nobody reads under this name any more."""
        unread = list[TensorKey]()
        self._readers[name] -= 1
        if not self._readers[name]:
            del self._readers[name]
            unread = [(name, tensor) for tensor in found]
            for key in unread:
                del self._residents[key]
        self._lending.give_back(*found.values())
        return unread


def _name_of(found: Mapping[str, TensorVersion]) -> str:
    """What workers know these versions by: the same for the same."""
    digest = blake2b(digest_size=16)
    for name in sorted(found):
        digest.update(f"{name}\n{found[name].etag}\n".encode())
    return f"={digest.hexdigest()}"
