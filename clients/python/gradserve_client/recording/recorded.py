"""The result of recording a function, and the choice among several recordings of it."""

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
#: maximum number of times that a function is recorded again, for one set of types, because a guard failed
_MAX_RERECORDINGS: Final = 8


class ClientCall(NamedTuple):
    """A client call to make, on a registered graph or a tensor. The driver sends its result back."""

    call: str
    target: Any
    options: Mapping[str, Any]


#: a generator that yields client calls and receives their results, driven with or without asyncio
Steps = Generator[ClientCall, Any, T]


class Recorded:
    """A recorded graph, with a leaf for each array among the arguments, its outputs, and its guards."""

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
        """Return the outputs as a map of the client. The map is created once."""
        if self._map is None:
            leaf_attrs = [(leaf, leaf.attrs) for leaf in self.leaves]
            inputs = [
                TypedNode(leaf, tuple(attrs.get("shape", ())), np.dtype(attrs["dtype"])) for leaf, attrs in leaf_attrs
            ]
            self._map = Map(client, self.registered, inputs, self.outputs)
        return self._map

    def request(self, call: str, /, **options: Any) -> ClientCall:
        """Return a call on the graph."""
        return ClientCall(call, self.registered, options)

    @property
    def requested_nodes(self) -> list[Node]:
        """The nodes whose values every call requests: outputs and guards, without duplicates."""
        nodes = [*(output.node for output in self.outputs), *(guard.node for guard in self.guards)]
        return [*dict.fromkeys(nodes)]

    def build(self, leaf_of: Callable[[TypedNode], Any]) -> Any:
        """Return the structure of the function's result, with `leaf_of(output)` in place of each array."""
        return self.structure.build(map(leaf_of, self.outputs))

    def values(self, results: Results[Array]) -> Any:
        """Return the function's result, with NumPy arrays."""
        return self.build(lambda output: results[output.node])

    def scalar_output(self, call: str) -> Node:
        """Return the only output. Raises InputError unless the function returns one float."""
        if len(self.outputs) != 1 or self.outputs[0].shape or self.outputs[0].dtype.kind != "f":
            raise InputError(
                f"{call} needs a function that returns one float, but this one returns {self._output_types}: "
                "use vjp or jacobian"
            )
        return self.outputs[0].node

    def request_each(self, call: str, /, **options: Any) -> ClientCall:
        """Return a call that differentiates the only output in each example. With several elements, it has Jacobians.

        Raises InputError unless the function returns one array of floats.
        """
        if len(self.outputs) != 1 or self.outputs[0].dtype.kind != "f":
            raise InputError(
                f"batch needs a function that returns one array of floats, but this one returns {self._output_types}"
            )
        (output,) = self.outputs
        return ClientCall(
            call, self._registered_opset_2 if output.shape else self.registered, {"of": output.node, **options}
        )

    @cached_property
    def _registered_opset_2(self) -> Registered:
        """The same graph, declared as opset 2, which has Jacobians of examples."""
        copy = self.registered.graph.copy()
        copy.opset = 2
        return Registered(self.registered.graph, requests.registration(copy, "", None))

    @property
    def _output_types(self) -> str:
        return ", ".join(f"{each.dtype.name}{list(each.shape)}" for each in self.outputs)

    def require_floats(self, call: str) -> None:
        """Raise InputError unless all outputs have derivatives."""
        for output in self.outputs:
            if output.dtype.kind not in FLOATING:
                dtype_name = output.dtype.name
                raise InputError(
                    f"{call} needs a function that returns floats or complex numbers, but this one returns {dtype_name}"
                )

    def failed_outcomes(self, results: Results[Array]) -> list[float]:
        """Return the values of the guards up to the first that fails; nothing if all guards hold.

        Raises RecordingError if the examples of a batch disagree.
        """
        outcomes = list[float]()
        for guard in self.guards:
            value = results[guard.node]
            first = value.reshape(-1)[0] if value.size else guard.outcome
            if not np.array_equal(value, np.full_like(value, first), equal_nan=True):
                raise RecordingError(
                    f"the examples of a batch differ in a value that the function reads ({guard.line}): "
                    "choose with where()"
                )
            outcomes.append(float(first))
            if not guard.holds(value):
                return outcomes
        return []

    def may_match(self, outcomes: Sequence[float]) -> bool:
        """Return whether this recording's guards begin with the outcomes that failed another recording.

        Both read the same values up to that point, so a recording with a different outcome cannot be valid either.
        """
        own_outcomes = [guard.outcome for guard in self.guards[: len(outcomes)]]
        return bool(np.array_equal(own_outcomes, outcomes[: len(own_outcomes)], equal_nan=True))


class Recordings:
    """The recordings of a function for one set of types, the most recently valid one first."""

    def __init__(self) -> None:
        self.recordings: list[Recorded] = []

    def run(
        self, call_on: Callable[[Recorded], ClientCall], record: Callable[[], Recorded]
    ) -> Steps[tuple[Recorded, Any]]:
        """Make the call on a recording, old or new, whose guards all hold. Results of others are discarded.

        Raises RecordingError if the function was recorded again too often.
        """
        tried, outcomes, failed_line = list[Recorded](), list[float](), ""
        while True:
            untried = [each for each in self.recordings if each not in tried and each.may_match(outcomes)]
            recorded = untried[0] if untried else self._record_new(record, failed_line)
            answer = yield call_on(recorded)
            failed_outcomes = recorded.failed_outcomes(answer.values)
            if not failed_outcomes:
                self.recordings = [recorded, *(each for each in self.recordings if each is not recorded)]
                return recorded, answer
            tried.append(recorded)
            outcomes, failed_line = failed_outcomes, str(recorded.guards[len(failed_outcomes) - 1].line)

    def _record_new(self, record: Callable[[], Recorded], failed_line: str) -> Recorded:
        if len(self.recordings) > _MAX_RERECORDINGS:
            raise RecordingError(
                f"the function was recorded again {_MAX_RERECORDINGS} times, because a value that it reads "
                f"({failed_line}) keeps changing: choose with where(), which reads no value"
            )
        recorded = record()
        self.recordings.append(recorded)
        return recorded
