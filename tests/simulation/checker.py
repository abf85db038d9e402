"""Whether some order of operations explains all answers: Wing and Gong's search, with the memory of Lowe.

Each operation has the interval in which it was under way. It takes effect at one moment within; one that nobody knows
the end of takes effect at any time later, or never. A register holds a number, or None. What was written with
`durable: false` may be gone once another server has begun: so of each register all is remembered that it had since it
was last durable, and a beginning keeps any one of these.
"""

from __future__ import annotations

from dataclasses import dataclass, field

REGISTERS = ("x", "y")
FOREVER = float("inf")
#: what an answer may tell of the value that was there before: nothing, or that there was one
UNTOLD, SOMETHING = "untold", "something"
#: situations that the search looks at
_MOST = 100_000

#: of each register what it may go back to, what it is last
Registers = tuple[tuple[int | None, ...], ...]


@dataclass(eq=False, slots=True)
class Operation:
    """One call: its request, its times and its answer.

    `kind`: read, write, delete (of the registers that `writes` has), or begin. `answer`: what was read; `ok`; `412`
    where `match` does not hold; `404` where nothing is there to delete; `refused` where nothing was to come of it; None
    where nobody knows. `replaced`: the value that the answer says was there before, `SOMETHING` or `UNTOLD`.
    """

    kind: str
    called: float
    names: tuple[str, ...] = ()
    writes: dict[str, int | None] = field(default_factory=dict)
    match: dict[str, int | None] = field(default_factory=dict)
    durable: bool = True
    returned: float = FOREVER
    answer: object = None
    replaced: object = UNTOLD

    def after(self, state: Registers) -> list[Registers]:
        """The states that it may lead to; none, where it would have been answered otherwise."""
        now = {name: values[-1] for name, values in zip(REGISTERS, state, strict=True)}
        if self.kind == "begin":
            first, second = ([(value,) for value in dict.fromkeys(values)] for values in state)
            return [(a, b) for a in first for b in second]
        if self.kind == "read":
            return [state] if tuple(now[name] for name in self.names) == self.answer else []
        if self.answer == "refused":
            return [state]
        if self.answer == "404":
            return [state] if any(now[name] is None for name in self.writes) else []
        holds = all(now[name] == value for name, value in self.match.items())
        if self.kind == "delete":
            holds &= all(now[name] is not None for name in self.writes)
        if self.answer == "412":
            return [] if holds else [state]
        return [self._written(state)] if holds and all(map(self._may_replace, map(now.get, self.writes))) else []

    def _may_replace(self, value: int | None) -> bool:
        return self.replaced in (UNTOLD, value) or (self.replaced == SOMETHING and value is not None)

    def _written(self, state: Registers) -> Registers:
        return tuple(
            values
            if name not in self.writes
            else (self.writes[name],)
            if self.durable
            else (*values, self.writes[name])
            for name, values in zip(REGISTERS, state, strict=True)
        )


def is_linearizable(operations: list[Operation]) -> bool | None:
    """Whether they are explained by one order; None where that takes too long to find out.

    First without those that nobody knows the end of and nobody has seen anything of, as if they never took effect.
    """
    seen = {value for each in operations for value in _seen(each)}
    known = [each for each in operations if each.returned != FOREVER or each.kind == "begin" or seen & _made(each)]
    return _is_explained(known) or _is_explained(operations)


def _seen(operation: Operation) -> set[object]:
    """The values that somebody has found in registers."""
    read = set(operation.answer) if isinstance(operation.answer, tuple) else set()
    return read | (set(operation.match.values()) if operation.answer == "ok" else set())


def _made(operation: Operation) -> set[object]:
    return set(operation.writes.values())


def _is_explained(operations: list[Operation]) -> bool | None:
    ordered = sorted(operations, key=lambda operation: operation.called)
    must = sum(1 << i for i, each in enumerate(ordered) if each.returned != FOREVER)
    visited: set[tuple[int, Registers]] = set()
    stack: list[tuple[int, Registers]] = [(0, ((None,), (None,)))]
    while stack:
        done, state = stack.pop()
        if done & must == must:
            return True
        if (done, state) in visited:
            continue
        visited.add((done, state))
        if len(visited) > _MOST:
            return None
        first = min(each.returned for i, each in enumerate(ordered) if not done >> i & 1)
        for i, each in enumerate(ordered):
            if each.called > first:
                break
            if not done >> i & 1:
                stack += [(done | 1 << i, then) for then in each.after(state)]
    return False
