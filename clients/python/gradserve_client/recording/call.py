"""A recorded function with arguments: which recording it goes by, what it feeds, and what comes back where."""

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
    Chosen,
    Fed,
    LeafType,
    Library,
    Which,
    is_array,
    names_of,
)
from gradserve_client.recording.array import RecordedArray
from gradserve_client.recording.emitting import FLOATING, lifted
from gradserve_client.recording.lines import RecordingError, users_line
from gradserve_client.recording.maps import TypedNode
from gradserve_client.recording.recorded import Ask, Recorded, Recordings, Steps
from gradserve_client.recording.recorder import Recorder
from gradserve_client.recording.trees import flatten, matched
from gradserve_client.registered import Registered
from gradserve_client.resident import Resident
from gradserve_client.tensors import Array

Feeds = dict[Node | str | int, Any]


class Source:
    """A function in Python, how it is recorded, and what came of that so far.

    `looks` gives the client that answers what the function looks at; without it, it may not look at anything.
    """

    def __init__(
        self, function: Callable[..., Any], static: Sequence[str] | str, looks: Callable[[], Client] | None
    ) -> None:
        self.function = function
        self.static = (static,) if isinstance(static, str) else tuple(static)
        self.looks = looks
        self.names = names_of(function)
        self._recordings: dict[Hashable, Recordings] = {}

    @property
    def name(self) -> str:
        """What the function is called."""
        return str(getattr(self.function, "__qualname__", self.function))

    def recordings_of(self, key: Hashable) -> Recordings:
        """The recordings for arguments of one kind."""
        return self._recordings.setdefault(key, Recordings())

    def called(
        self,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        wrt: Which = (),
        mapped: Which | None = (),
        library: Library = NUMPY,
    ) -> Steps[FunctionCall]:
        """The function with arguments. What the server keeps is asked for where its handle does not say its type."""
        arguments = Arguments(self.names, self.static, args, kwargs, library)
        types = []
        for array in arguments.arrays:
            known = array
            if isinstance(array, Resident) and (array.dtype is None or array.shape is None):
                known = (yield Ask("get", array, {})).handle
            assert known.dtype is not None
            assert known.shape is not None
            types.append(LeafType(np.dtype(known.dtype), known.shape))
        return FunctionCall(self, arguments, types, wrt, mapped)


class FunctionCall:
    """A function with arguments, about to be asked."""

    def __init__(
        self, source: Source, arguments: Arguments, given: Sequence[LeafType], wrt: Which, mapped: Which | None
    ) -> None:
        self._source = source
        self._arguments = arguments
        everything = [argument.key for argument in self._arguments.arguments]
        self._mapped = {*self._arguments.chosen(everything if mapped is None else mapped).places}
        self._given = given
        #: of one example, where there are many
        self._types = [self._example_type(place, kind) for place, kind in enumerate(given)]
        self._wrt: Chosen = self._arguments.chosen(wrt)
        for place in self._wrt.places:
            if self._types[place].dtype.kind not in FLOATING:
                told = f"{self._arguments.names[place]} is {self._types[place].dtype.name}"
                raise InputError(f"derivatives are by floats and complex numbers, and {told}")

    @property
    def given(self) -> list[Any]:
        """The arrays as the library has them that the call is made with."""
        return self._arguments.given

    def _example_type(self, place: int, given: LeafType) -> LeafType:
        if place not in self._mapped:
            return given
        if not given.shape:
            raise InputError(f"{self._arguments.names[place]} is mapped, and has no axis of examples")
        return LeafType(given.dtype, given.shape[1:])

    def types(self, recorded: Recorded) -> dict[Node | str | int, LeafType]:
        """What would be fed, by leaf."""
        return dict(zip(recorded.leaves, self._given, strict=True))

    def feeds(self, recorded: Recorded) -> Feeds:
        """The arrays, by leaf."""
        return dict(zip(recorded.leaves, self._arguments.arrays, strict=True))

    def wrt(self, recorded: Recorded) -> list[Node]:
        """The leaves by which one differentiates."""
        return [recorded.leaves[place] for place in self._wrt.places]

    def mapped(self, recorded: Recorded) -> list[Node]:
        """The leaves that have an axis of examples."""
        return [recorded.leaves[place] for place in sorted(self._mapped)]

    def built(self, parts: Any) -> Any:
        """Something for each array of `wrt`, in the structure of its argument."""
        return self._wrt.structure.build(iter(parts))

    def by_argument(self, recorded: Recorded, results: Results[Array]) -> Any:
        """Results by the leaves of `wrt`, likewise."""
        return self.built(results[node] for node in self.wrt(recorded))

    def along(self, recorded: Recorded, tree: Any, what: str) -> Feeds:
        """Tangents or vectors, by leaf."""
        return dict(zip(self.wrt(recorded), matched(tree, self._wrt.structure, what), strict=True))

    def run(self, ask: Callable[[Recorded], Ask]) -> Steps[tuple[Recorded, Any]]:
        """An answer by a recording whose guards hold."""
        recordings = self._source.recordings_of(self._arguments.key(self._types))
        return (yield from recordings.run(ask, self._record))

    def confirmed(self) -> Steps[Recorded]:
        """A recording whose guards hold, for calls that have no outputs."""
        recordings = self._source.recordings_of(self._arguments.key(self._types))
        if not recordings.kept:
            recordings.kept.append(self._record())
        if not recordings.kept[0].guards:
            return recordings.kept[0]
        return (yield from self.run(self._looks_at_guards))[0]

    def _looks_at_guards(self, recorded: Recorded) -> Ask:
        """A call that gives what came out at its guards: of each example, where there are many."""
        asked = {"feeds": self.feeds(recorded), "outputs": [guard.node for guard in recorded.guards]}
        if not self._mapped:
            return recorded.ask("forward", **asked)
        return recorded.ask("batch", mapped=self.mapped(recorded), **asked)

    def _record(self) -> Recorded:
        recorder = Recorder(RecordedArray, self._look if self._source.looks else None)
        with recorder.recording():
            named = zip(self._arguments.names, self._types, strict=True)
            leaves = [recorder.leaf(name, kind.shape, kind.dtype) for name, kind in named]
            args, kwargs = self._arguments.filled(leaves)
            given, structure = flatten(self._source.function(*args, **kwargs), is_array)
            if not given:
                raise InputError("the function gives back no array: there is nothing to compute")
            arrays = [lifted(each.value) for each in given]
        outputs = [TypedNode(array.node, array.shape, array.dtype) for array in arrays]
        registered = Registered(recorder.graph, requests.registration(recorder.graph, "", None))
        return Recorded(registered, recorder.leaves, outputs, structure, recorder.guards)

    def _look(self, graph: Graph, leaves: Sequence[Node], node: Node) -> Array:
        """A value of the example, which is the first one where there are many: the server computes it.

        Raises RecordingError where the arguments have no values yet.
        """
        assert self._source.looks is not None
        client = self._source.looks()
        examples = [self._example(client, place, array) for place, array in enumerate(self._arguments.arrays)]
        feeds: Any = dict(zip(leaves, examples, strict=True))
        return client.forward(graph, feeds, outputs=[node]).value

    def _example(self, client: Client, place: int, array: Fed) -> Array | Resident:
        if isinstance(array, LeafType):
            raise RecordingError(f"a look at a value ({users_line()}): the arguments have no values yet, only types")
        if place not in self._mapped:
            return array
        whole = client.get(array).array if isinstance(array, Resident) else array
        return np.ascontiguousarray(whole[0])
