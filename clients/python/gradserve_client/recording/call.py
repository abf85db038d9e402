"""One call of a recorded function: choose or make the recording, build the feeds, and assign results to arguments."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np

from gradserve_client import requests
from gradserve_client.answers import Results
from gradserve_client.client import Client
from gradserve_client.errors import InputError
from gradserve_client.graph import Graph, Node
from gradserve_client.recording.arguments import (
    NUMPY,
    Arguments,
    Feed,
    LeafType,
    Library,
    Selection,
    Selector,
    is_array,
    names_of,
)
from gradserve_client.recording.array import RecordedArray
from gradserve_client.recording.emitting import FLOATING, lift
from gradserve_client.recording.lines import RecordingError, users_line
from gradserve_client.recording.maps import TypedNode
from gradserve_client.recording.recorded import ClientCall, Recorded, Recordings, Steps
from gradserve_client.recording.recorder import Recorder
from gradserve_client.recording.trees import flatten, match_leaves
from gradserve_client.registered import Registered
from gradserve_client.resident import Resident
from gradserve_client.tensors import Array

Feeds = dict[Node | str | int, Any]


class Source:
    """A Python function with its recordings.

    `value_client` returns the client that computes the values that the function reads; None if it may not read any.
    """

    def __init__(
        self, function: Callable[..., Any], static: Sequence[str] | str, value_client: Callable[[], Client] | None
    ) -> None:
        self.function = function
        self.static = (static,) if isinstance(static, str) else tuple(static)
        self.value_client = value_client
        self.names = names_of(function)
        self._recordings: dict[Hashable, Recordings] = {}

    @property
    def name(self) -> str:
        """The name of the function."""
        return str(getattr(self.function, "__qualname__", self.function))

    def recordings_of(self, key: Hashable) -> Recordings:
        """Return the recordings for one combination of structure and types."""
        return self._recordings.setdefault(key, Recordings())

    def bind(
        self,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        wrt: Selector = (),
        mapped: Selector | None = (),
        library: Library = NUMPY,
    ) -> Steps[FunctionCall]:
        """Bind arguments. The dtype and shape of a resident tensor are fetched if its handle lacks them."""
        arguments = Arguments(self.names, self.static, args, kwargs, library)
        types = []
        for array in arguments.arrays:
            typed = array
            if isinstance(array, Resident) and (array.dtype is None or array.shape is None):
                typed = (yield ClientCall("get", array, {})).handle
            assert typed.dtype is not None
            assert typed.shape is not None
            types.append(LeafType(np.dtype(typed.dtype), typed.shape))
        return FunctionCall(self, arguments, types, wrt, mapped)


class FunctionCall:
    """A function with its arguments."""

    def __init__(
        self, source: Source, arguments: Arguments, types: Sequence[LeafType], wrt: Selector, mapped: Selector | None
    ) -> None:
        self._source = source
        self._arguments = arguments
        all_arguments = [argument.key for argument in self._arguments.arguments]
        self._mapped = {*self._arguments.select(all_arguments if mapped is None else mapped).positions}
        self._types = types
        #: the types of a single example, if there are many
        self._example_types = [self._example_type(position, leaf_type) for position, leaf_type in enumerate(types)]
        self._wrt: Selection = self._arguments.select(wrt)
        for position in self._wrt.positions:
            if self._example_types[position].dtype.kind not in FLOATING:
                description = f"{self._arguments.names[position]} is {self._example_types[position].dtype.name}"
                raise InputError(f"derivatives are with respect to floats or complex numbers, but {description}")

    @property
    def library_arrays(self) -> list[Any]:
        """The arrays among the arguments, as the library has them."""
        return self._arguments.library_arrays

    def _example_type(self, position: int, leaf_type: LeafType) -> LeafType:
        if position not in self._mapped:
            return leaf_type
        if not leaf_type.shape:
            raise InputError(f"{self._arguments.names[position]} is mapped, but has no axis of examples")
        return LeafType(leaf_type.dtype, leaf_type.shape[1:])

    def types(self, recorded: Recorded) -> dict[Node | str | int, LeafType]:
        """Return the types of the feeds, by leaf."""
        return dict(zip(recorded.leaves, self._types, strict=True))

    def feeds(self, recorded: Recorded) -> Feeds:
        """Return the arrays to feed, by leaf."""
        return dict(zip(recorded.leaves, self._arguments.arrays, strict=True))

    def wrt(self, recorded: Recorded) -> list[Node]:
        """Return the leaves to differentiate with respect to."""
        return [recorded.leaves[position] for position in self._wrt.positions]

    def mapped(self, recorded: Recorded) -> list[Node]:
        """Return the leaves with an axis of examples."""
        return [recorded.leaves[position] for position in sorted(self._mapped)]

    def build(self, parts: Any) -> Any:
        """Return the structure of the `wrt` arguments, with one part for each array."""
        return self._wrt.structure.build(iter(parts))

    def by_argument(self, recorded: Recorded, results: Results[Array]) -> Any:
        """Return the results of the `wrt` leaves, in the structure of their arguments."""
        return self.build(results[node] for node in self.wrt(recorded))

    def tangents_by_leaf(self, recorded: Recorded, tree: Any, role: str) -> Feeds:
        """Return the tangents or vectors of `tree` by leaf of `wrt`. Raises InputError if the structure differs.

        `role` names the tree in messages.
        """
        return dict(zip(self.wrt(recorded), match_leaves(tree, self._wrt.structure, role), strict=True))

    def run(self, call_on: Callable[[Recorded], ClientCall]) -> Steps[tuple[Recorded, Any]]:
        """Make the call on a recording whose guards hold."""
        recordings = self._source.recordings_of(self._arguments.key(self._example_types))
        return (yield from recordings.run(call_on, self._record))

    def validated(self) -> Steps[Recorded]:
        """Return a recording whose guards hold, for calls that have no outputs."""
        recordings = self._source.recordings_of(self._arguments.key(self._example_types))
        if not recordings.recordings:
            recordings.recordings.append(self._record())
        if not recordings.recordings[0].guards:
            return recordings.recordings[0]
        return (yield from self.run(self._guard_call))[0]

    def _guard_call(self, recorded: Recorded) -> ClientCall:
        """Return a call that computes the guards, in each example if there are many."""
        options = {"feeds": self.feeds(recorded), "outputs": [guard.node for guard in recorded.guards]}
        if not self._mapped:
            return recorded.request("forward", **options)
        return recorded.request("batch", mapped=self.mapped(recorded), **options)

    def _record(self) -> Recorded:
        recorder = Recorder(RecordedArray, self._read_value if self._source.value_client else None)
        with recorder.recording():
            named_types = zip(self._arguments.names, self._example_types, strict=True)
            leaves = [recorder.leaf(name, leaf_type.shape, leaf_type.dtype) for name, leaf_type in named_types]
            args, kwargs = self._arguments.replace_arrays(leaves)
            result_leaves, structure = flatten(self._source.function(*args, **kwargs), is_array)
            if not result_leaves:
                raise InputError("the function returns no array, so there is nothing to compute")
            arrays = [lift(each.value) for each in result_leaves]
        outputs = [TypedNode(array.node, array.shape, array.dtype) for array in arrays]
        registered = Registered(recorder.graph, requests.registration(recorder.graph, "", None))
        return Recorded(registered, recorder.leaves, outputs, structure, recorder.guards)

    def _read_value(self, graph: Graph, leaves: Sequence[Node], node: Node) -> Array:
        """Compute a value for the arguments, or for the first example if there are many.

        Raises RecordingError if the arguments are types without values.
        """
        assert self._source.value_client is not None
        client = self._source.value_client()
        examples = [
            self._first_example(client, position, array) for position, array in enumerate(self._arguments.arrays)
        ]
        feeds: Any = dict(zip(leaves, examples, strict=True))
        return client.forward(graph, feeds, outputs=[node]).value

    def _first_example(self, client: Client, position: int, array: Feed) -> Array | Resident:
        if isinstance(array, LeafType):
            raise RecordingError(f"a value is read ({users_line()}), but the arguments have no values yet, only types")
        if position not in self._mapped:
            return array
        full_array = client.get(array).array if isinstance(array, Resident) else array
        return np.ascontiguousarray(full_array[0])
