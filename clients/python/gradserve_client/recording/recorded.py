"""What came of recording a function once, and which of several recordings a call goes by."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from functools import cached_property
from typing import Any, Final, NamedTuple, TypeVar

import numpy as np

from gradserve_client import requests
from gradserve_client.answers import Results
from gradserve_client.client import Client
from gradserve_client.errors import InputError
from gradserve_client.graph import Node
from gradserve_client.recording.emitting import FLOATING
from gradserve_client.recording.lines import RecordingError
from gradserve_client.recording.maps import Map, TypedNode
from gradserve_client.recording.recorder import Guard
from gradserve_client.recording.trees import Structure
from gradserve_client.registered import Registered
from gradserve_client.tensors import Array

T = TypeVar("T")
#: how often a function is recorded anew for one set of types, where its looks come out otherwise
_MOST_ANEW: Final = 8


class Ask(NamedTuple):
    """A call of a client is to be made, on a registered graph, or of a tensor; what comes back is the answer."""

    call: str
    on: Any
    asked: Mapping[str, Any]


#: what asks, and waits for the answers: who drives it does, with or without asyncio
Steps = Generator[Ask, Any, T]


class Recorded:
    """A graph with its leaves, one for each array among the arguments; its outputs; and its guards."""

    def __init__(
        self,
        registered: Registered,
        leaves: Sequence[Node],
        outputs: Sequence[TypedNode],
        structure: Structure,
        guards: Sequence[Guard],
    ) -> None:
        self.registered = registered
        self.leaves = leaves
        self.outputs = outputs
        self.structure = structure
        self.guards = guards
        self._map: Map | None = None

    def map(self, client: Client) -> Map:
        """What it computes beside its guards, by the client that asks for it; the same one each time."""
        if self._map is None:
            attrs = [(leaf, leaf.attrs) for leaf in self.leaves]
            inputs = [TypedNode(leaf, tuple(has.get("shape", ())), np.dtype(has["dtype"])) for leaf, has in attrs]
            self._map = Map(client, self.registered, inputs, self.outputs)
        return self._map

    def ask(self, call: str, /, **asked: Any) -> Ask:
        """A call on its graph."""
        return Ask(call, self.registered, asked)

    @property
    def asked(self) -> list[Node]:
        """The nodes that every call asks for: outputs and guards, each once."""
        nodes = [*(output.node for output in self.outputs), *(guard.node for guard in self.guards)]
        return [*dict.fromkeys(nodes)]

    def built(self, of: Callable[[TypedNode], Any]) -> Any:
        """What the function gives back, with something in place of each array."""
        return self.structure.build(map(of, self.outputs))

    def values(self, results: Results[Array]) -> Any:
        """What the function gives back."""
        return self.built(lambda output: results[output.node])

    def scalar(self, call: str) -> Node:
        """The only output, which is one float. Raises InputError where it is something else."""
        if len(self.outputs) != 1 or self.outputs[0].shape or self.outputs[0].dtype.kind != "f":
            raise InputError(
                f"{call} is of functions that give one float, and this one gives {self._told}: take vjp or jacobian"
            )
        return self.outputs[0].node

    def ask_each(self, call: str, /, **asked: Any) -> Ask:
        """A call that differentiates the only output, which is of floats, in each example: of several it has Jacobians.

        Raises InputError where it is something else.
        """
        if len(self.outputs) != 1 or self.outputs[0].dtype.kind != "f":
            raise InputError(
                f"batch differentiates functions that give one array of floats, and this one gives {self._told}"
            )
        (output,) = self.outputs
        return Ask(call, self._of_opset_2 if output.shape else self.registered, {"of": output.node, **asked})

    @cached_property
    def _of_opset_2(self) -> Registered:
        """The same graph and nodes, stated as of the opset since which there are Jacobians of examples."""
        stated = self.registered.graph.copy()
        stated.opset = 2
        return Registered(self.registered.graph, requests.registration(stated, "", None))

    @property
    def _told(self) -> str:
        return ", ".join(f"{each.dtype.name}{list(each.shape)}" for each in self.outputs)

    def floats(self, call: str) -> None:
        """Raises InputError where an output has no derivatives."""
        for output in self.outputs:
            if output.dtype.kind not in FLOATING:
                given = output.dtype.name
                raise InputError(
                    f"{call} is of functions that give floats or complex numbers, and this one gives {given}"
                )

    def surprises(self, results: Results[Array]) -> list[float]:
        """What came out at the guards up to the first that does not hold; nothing where all hold."""
        seen = list[float]()
        for guard in self.guards:
            value = results[guard.node]
            first = value.reshape(-1)[0] if value.size else guard.outcome
            if not np.array_equal(value, np.full_like(value, first), equal_nan=True):
                raise RecordingError(
                    f"the examples of a batch come out differently where the function looks at a value ({guard.line}): "
                    "choose with where()"
                )
            seen.append(float(first))
            if not guard.holds(value):
                return seen
        return []

    def may_fit(self, seen: Sequence[float]) -> bool:
        """Whether what came out at another recording's guards speaks for this one: they looked alike until then."""
        outcomes = [guard.outcome for guard in self.guards[: len(seen)]]
        return bool(np.array_equal(outcomes, seen[: len(outcomes)], equal_nan=True))


class Recordings:
    """The recordings of a function for one set of types, the latest that held first."""

    def __init__(self) -> None:
        self.kept: list[Recorded] = []

    def run(self, ask: Callable[[Recorded], Ask], record: Callable[[], Recorded]) -> Steps[tuple[Recorded, Any]]:
        """An answer all of whose guards hold, by a recording that is kept or made anew; others are discarded.

        Raises RecordingError where the function was recorded anew too often.
        """
        tried, seen, surprise = list[Recorded](), list[float](), ""
        while True:
            untried = [each for each in self.kept if each not in tried and each.may_fit(seen)]
            recorded = untried[0] if untried else self._record(record, surprise)
            answer = yield ask(recorded)
            surprises = recorded.surprises(answer.values)
            if not surprises:
                self.kept = [recorded, *(each for each in self.kept if each is not recorded)]
                return recorded, answer
            tried.append(recorded)
            seen, surprise = surprises, str(recorded.guards[len(surprises) - 1].line)

    def _record(self, record: Callable[[], Recorded], surprise: str) -> Recorded:
        if len(self.kept) > _MOST_ANEW:
            raise RecordingError(
                f"the function was recorded anew {_MOST_ANEW} times, since what it looks at ({surprise}) comes out "
                "otherwise again and again: choose with where(), which needs no look"
            )
        recorded = record()
        self.kept.append(recorded)
        return recorded
