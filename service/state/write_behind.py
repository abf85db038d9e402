"""Writes that can be seen and are not on disk yet."""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence

from service.state.writes import Name, Write, name_of


class WriteBehind:
    """Writes that wait, the newest of each name, in groups without a common name.

    What was kept as one is in one group, and a group is written as one: so what is on disk is never half of anything,
    and whatever is newer than a group waits for it or goes with it.
    """

    def __init__(self) -> None:
        self._groups: dict[Name, dict[Name, Write]] = {}

    def __len__(self) -> int:
        """Return how many writes wait."""
        return len(self._groups)

    def __contains__(self, name: Name) -> bool:
        """Return whether a write of this name waits."""
        return name in self._groups

    def add(self, writes: Iterable[Write]) -> None:
        """Have these wait, in place of older ones; they are one group, with all that share a name with them."""
        fresh = {name_of(write): write for write in writes}
        group: dict[Name, Write] = {}
        for other in self._of(fresh):
            group, smaller = (other, group) if len(other) > len(group) else (group, other)
            group |= smaller
            self._groups |= dict.fromkeys(smaller, group)
        group |= fresh
        self._groups |= dict.fromkeys(fresh, group)

    def put_back(self, writes: Iterable[Write]) -> None:
        """Have a group that was taken wait again, but for what has been replaced meanwhile."""
        self.add([self._groups.get(name, {name: write})[name] for write in writes for name in [name_of(write)]])

    def drain(self, names: Container[Name] | None) -> list[Sequence[Write]]:
        """Take out the groups that have one of these names; None: all of them."""
        taken = self._of(name for name in self._groups if names is None or name in names)
        for group in taken:
            for name in group:
                del self._groups[name]
        return [list(group.values()) for group in taken]

    def _of(self, names: Iterable[Name]) -> list[dict[Name, Write]]:
        """The groups that have these names, each once."""
        found = (self._groups[name] for name in names if name in self._groups)
        return list({id(group): group for group in found}.values())
