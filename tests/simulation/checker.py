"""Linearizability checker: Wing and Gong's search for an order that explains all answers, with Lowe's memoization.

Each operation takes effect at one moment of its interval; an operation without a known end takes effect at any later
time, or never. A register holds a number, or None. A write with `durable: false` may be lost when another server
begins: so the state of a register has all values since the last durable one, and a beginning keeps any one of them.
"""

from __future__ import annotations

from dataclasses import dataclass, field

REGISTERS = ("x", "y")
FOREVER = float("inf")
#: what an answer may report of the previous value: nothing, or that there was one
UNTOLD, SOMETHING = "untold", "something"
#: most states that the search visits
_MOST = 100_000

#: for each register, the values that it may go back to, and its current value last
Registers = tuple[tuple[int | None, ...], ...]


@dataclass(eq=False, slots=True)
class Operation:
    """One call: its request, its times and its answer.

    `kind`: read, write, delete (of the registers in `writes`), or begin. `answer`: the values that were read; `ok`;
    `412` if `match` does not hold; `404` if there is nothing to delete; `refused` if the call has no effect; None if it
    is unknown. `replaced`: the previous value according to the answer, `SOMETHING` or `UNTOLD`.
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

    @property
    def is_put(self) -> bool:
        """Whether it is sent as a PUT, whose answer tells whether there was a previous value."""
        values = list(self.writes.values())
        return self.kind == "write" and len(values) == 1 and values[0] is not None and values[0] % 2 == 1

    def after(self, state: Registers) -> list[Registers]:
        """The states that the operation may lead to; none if its answer would have been different."""
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
    """Whether one order explains the operations; None if the search takes too long.

    The first attempt omits operations without a known end or a visible effect, as if they never took effect.
    """
    seen = {value for each in operations for value in _seen(each)}
    relevant = [
        each for each in operations if each.returned != FOREVER or each.kind == "begin" or seen & _written_values(each)
    ]
    return _is_explained(relevant) or _is_explained(operations)


def _seen(operation: Operation) -> set[object]:
    """The values that an operation has seen in registers."""
    read = set(operation.answer) if isinstance(operation.answer, tuple) else set()
    return read | (set(operation.match.values()) if operation.answer == "ok" else set())


def _written_values(operation: Operation) -> set[object]:
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
