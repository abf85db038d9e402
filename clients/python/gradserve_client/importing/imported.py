"""What an importer gives: a graph whose leaves and outputs have names, and the values of the model's own leaves."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from gradserve_client.client import Client, Model, RegisteredGraph
from gradserve_client.errors import InputError
from gradserve_client.graph import Node
from gradserve_client.importing.notes import Note, Tally
from gradserve_client.importing.source_graph import SourceGraph
from gradserve_client.resident import Resident
from gradserve_client.tensors import Array, ArrayLike, as_array

#: what names of resident tensors and of models may not have, as docs/wire.md has it
_REFUSED: Final = re.compile(r"[^A-Za-z0-9_.-]|^[.-]")
_LONGEST: Final = 128


@dataclass(frozen=True)
class Imported:
    """A model as a graph: what every importer gives.

    `inputs` are the leaves that a caller feeds, by the model's names for them; `parameters` those that are trained,
    under their own names, and `state` those that are neither, such as running statistics: both have their `values`.
    `outputs` are nodes by name, in the order of the model. `buffers` are those of `state` that a run changes: by name,
    the node that is the new value. `notes` say what was said by several nodes and how often, and which leaves stand for
    several things. `tally` counts the ops of the model. Shapes are those of the example, but for extents that were
    declared free.
    """

    graph: SourceGraph
    inputs: Mapping[str, Node]
    parameters: Mapping[str, Node]
    values: Mapping[str, Array]
    outputs: Mapping[str, Node]
    notes: tuple[Note, ...] = ()
    state: Mapping[str, Node] = field(default_factory=dict)
    buffers: Mapping[str, Node] = field(default_factory=dict)
    tally: Tally = field(default_factory=Tally)

    def __repr__(self) -> str:
        return (
            f"<imported: {len(self.graph)} nodes, {len(self.inputs)} inputs, {len(self.parameters)} parameters, "
            f"{len(self.outputs)} outputs>"
        )

    @property
    def leaves(self) -> dict[str, Node]:
        """All leaves, by name: inputs, parameters and state."""
        return {**self.inputs, **self.parameters, **self.state}

    def feeds(self, inputs: Mapping[str, ArrayLike]) -> dict[Node, Array]:
        """What a call of the graph is fed: these for the inputs, and the values of all else.

        Raises InputError for names that are none of the inputs', and for inputs that are missing.
        """
        unknown, missing = [*inputs.keys() - self.inputs.keys()], [*self.inputs.keys() - inputs.keys()]
        if unknown or missing:
            told = ", ".join(repr(name) for name in self.inputs) or "none"
            wrong = f"{min(unknown)!r} is none" if unknown else f"{min(missing)!r} is missing"
            raise InputError(f"the inputs of this model are {told}: {wrong}")
        given = {
            self.inputs[name]: as_array(array, self.inputs[name].attrs.get("dtype")) for name, array in inputs.items()
        }
        return {**given, **{self.leaves[name]: value for name, value in self.values.items()}}

    def register(self, client: Client, description: str = "") -> RegisteredGraph:
        """The graph, kept by a server."""
        return client.register(self.graph, description=description)

    def keep(self, client: Client, name: str) -> dict[Node, Resident]:
        """The values of parameters and state as resident tensors, `name` before each name: feeds for further calls.

        Characters that a resident tensor's name cannot have become `_`. Raises InputError where two names become one,
        or one is too long; nothing is put then.
        """
        names = self.tensor_names(name)
        return {self.leaves[leaf]: client.put(names[leaf], value) for leaf, value in self.values.items()}

    def to_model(self, client: Client, name: str, description: str = "") -> Model:
        """The whole as a model that the server keeps: its inputs and outputs by name, its weights at home.

        The graph is registered, and the values of parameters and state are put as `keep` does. Extents that were
        declared free are free. Characters that names cannot have become `_`, in those of the model, of inputs and of
        outputs, too. Raises InputError where two names become one, or one is too long; nothing is put then.
        """
        named, inputs = _written([name], "model"), _written(self.inputs, "input")
        outputs = _written(self.outputs, "output")
        bound = self.keep(client, name)
        return client.put_model(
            named[name],
            self.register(client, description),
            inputs={inputs[leaf]: node for leaf, node in self.inputs.items()},
            outputs={outputs[output]: node for output, node in self.outputs.items()},
            bound=bound,
            description=description,
        )

    def tensor_names(self, name: str) -> dict[str, str]:
        """Under which name `keep` puts the value of each leaf. Raises InputError as `keep` does."""
        written = _written([f"{name}.{leaf}" for leaf in self.values], "tensor")
        return {leaf: written[f"{name}.{leaf}"] for leaf in self.values}


def _written(names: Iterable[str], kind: str) -> dict[str, str]:
    """Each name as the server takes it. Raises InputError where one is too long, or two become one."""
    written, taken = {name: _REFUSED.sub("_", name) or "_" for name in names}, dict[str, str]()
    for name, taking in written.items():
        if len(taking) > _LONGEST:
            article = "an" if kind[0] in "io" else "a"
            raise InputError(f"{taking!r} is longer than the name of {article} {kind} may be, {_LONGEST} characters")
        if taking in taken:
            raise InputError(f"{taken[taking]!r} and {name!r} would both be the {kind} {taking!r}")
        taken[taking] = name
    return written
