"""Limits on the resources of one import, and their running totals."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields

from gradserve_client.errors import InputError
from gradserve_client.importing.obstacles import ImportRefused, Obstacle


@dataclass(frozen=True)
class ImportLimits:
    """Limits on one import, so that a small model cannot exhaust the machine.

    `nodes` limits the nodes that the importer appends to the graph and its functions. `steps` limits how often it
    translates or runs a node of the model: in every call of a function, and in every iteration of a loop. Running a
    node counts one more step for each MiB that it reads and writes. `bytes` limits the arrays that the importer holds
    at the same time, including the model's own tensors.

    Raises InputError for a limit that is not a positive integer.
    """

    nodes: int = 1_000_000
    steps: int = 200_000
    bytes: int = 8 * 2**30

    def __post_init__(self) -> None:
        for field in fields(self):
            limit = getattr(self, field.name)
            if not isinstance(limit, int) or isinstance(limit, bool) or limit < 1:
                raise InputError(f"the limit on {field.name} must be a positive integer, not {limit!r}")


DEFAULT_LIMITS = ImportLimits()


class Budget:
    """The running totals of one import. Every method that adds raises ImportRefused beyond a limit."""

    def __init__(self, limits: ImportLimits, model: str) -> None:
        self.limits = limits
        self.nodes = 0
        self.steps = 0
        self.bytes = 0
        self._model = model
        self._op = "model"
        self._place: Callable[[], str] = lambda: "its start"

    def locate(self, op: str, place: Callable[[], str]) -> None:
        """Set the node of the model that messages name. `place` is called only when a message needs it."""
        self._op, self._place = op, place

    @property
    def location(self) -> str:
        """The node of the model that is being imported, as messages name it."""
        return f"{self._op} (at {self._place()})"

    def add_node(self) -> None:
        """Count a node that is appended to the graph."""
        self.nodes += 1
        if self.nodes > self.limits.nodes:
            raise self._refusal("nodes")

    def add_steps(self, count: int = 1) -> None:
        """Count nodes of the model that are translated or run."""
        self.steps += count
        if self.steps > self.limits.steps:
            raise self._refusal("steps")

    def require(self, count: int) -> None:
        """Raise ImportRefused unless `count` more bytes fit, without counting them."""
        if self.bytes + count > self.limits.bytes:
            raise self._refusal("bytes")

    def hold(self, count: int) -> None:
        """Count the bytes of arrays that stay in memory."""
        self.require(count)
        self.bytes += count

    @contextmanager
    def temporary(self) -> Iterator[None]:
        """Release, on exit, the bytes that were held inside the context."""
        held = self.bytes
        try:
            yield
        finally:
            self.bytes = held

    def _refusal(self, kind: str) -> ImportRefused:
        reason = f"the import would exceed its limit of {getattr(self.limits, kind)} {kind}"
        way_round = f"raise it with limits=ImportLimits({kind}=...), or --limit-{kind}, if you trust the model"
        return ImportRefused(self._model, [Obstacle(self._op, reason, way_round, (self._place(),))])
