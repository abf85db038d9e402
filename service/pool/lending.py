from __future__ import annotations

from service.state.tensors import TensorVersion


class Lending:
    """Count of who reads a version. For one thread."""

    def __init__(self) -> None:
        self._lent: dict[TensorVersion, int] = {}
        self._retired: set[TensorVersion] = set()

    def lend(self, version: TensorVersion) -> None:
        """Somebody reads it, until they give it back."""
        self._lent[version] = self._lent.get(version, 0) + 1

    def give_back(self, *versions: TensorVersion) -> None:
        """They read these no more."""
        for version in versions:
            left = self._lent.pop(version) - 1
            if left:
                self._lent[version] = left
            elif version in self._retired:
                self._retired.discard(version)
                version.memory.give_back()

    def retire(self, version: TensorVersion) -> None:
        """Nobody else will read it: its memory goes with the last who does."""
        if version in self._lent:
            self._retired.add(version)
        else:
            version.memory.give_back()
