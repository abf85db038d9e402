"""The result of an import: a graph with named leaves and outputs, and the values of the model's own leaves."""

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

#: characters that names of tensors and models cannot have; see docs/wire.md
_INVALID: Final = re.compile(r"[^A-Za-z0-9_.-]|^[.-]")
_MAX_LENGTH: Final = 128


@dataclass(frozen=True)
class Imported:
    """A model as a graph: the result of every importer.

    `inputs` are the leaves that a caller feeds, by the model's names. `parameters` are the leaves that are trained, and
    `state` the other leaves, such as running statistics; `values` holds the values of both. `outputs` are nodes by
    name, in the order of the model. `buffers` maps the names of `state` leaves that a run changes to the nodes with the
    new values. `notes` tell which ops became several nodes, how often, and which leaves stand for several tensors of
    the model. `tally` counts the ops of the model. Shapes are those of the example, except for extents that were
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
        """All leaves by name: inputs, parameters and state."""
        return {**self.inputs, **self.parameters, **self.state}

    def feeds(self, inputs: Mapping[str, ArrayLike]) -> dict[Node, Array]:
        """Return the feeds of a call: the given inputs, and the values of all other leaves.

        Raises InputError for unknown names, and for missing inputs.
        """
        unknown, missing = [*inputs.keys() - self.inputs.keys()], [*self.inputs.keys() - inputs.keys()]
        if unknown or missing:
            known_names = ", ".join(repr(name) for name in self.inputs) or "none"
            problem = f"{min(unknown)!r} is unknown" if unknown else f"{min(missing)!r} is missing"
            raise InputError(f"the inputs of this model are {known_names}: {problem}")
        input_feeds = {
            self.inputs[name]: as_array(array, self.inputs[name].attrs.get("dtype")) for name, array in inputs.items()
        }
        return {**input_feeds, **{self.leaves[name]: value for name, value in self.values.items()}}

    def register(self, client: Client, description: str = "") -> RegisteredGraph:
        """Register the graph on the client's server."""
        return client.register(self.graph, description=description)

    def keep(self, client: Client, name: str) -> dict[Node, Resident]:
        """Store the values of parameters and state as resident tensors, and return their handles, to pass as feeds.

        A tensor is named `name`, a dot, and the name of its leaf, with `_` for characters that tensor names cannot
        have. Raises InputError, before anything is stored, if two names become the same or a name is too long.
        """
        names = self.tensor_names(name)
        return {self.leaves[leaf]: client.put(names[leaf], value) for leaf, value in self.values.items()}

    def to_model(self, client: Client, name: str, description: str = "") -> Model:
        """Store everything as a model on the server: named inputs and outputs, and the weights as resident tensors.

        The graph is registered, and the values of parameters and state are stored as by `keep`. Extents that were
        declared free stay free. Invalid characters in the names of the model, its inputs and its outputs become `_`.
        Raises InputError, before anything is stored, if two names become the same or a name is too long.
        """
        model_names, inputs = _valid_names([name], "model"), _valid_names(self.inputs, "input")
        outputs = _valid_names(self.outputs, "output")
        bound = self.keep(client, name)
        return client.put_model(
            model_names[name],
            self.register(client, description),
            inputs={inputs[leaf]: node for leaf, node in self.inputs.items()},
            outputs={outputs[output]: node for output, node in self.outputs.items()},
            bound=bound,
            description=description,
        )

    def tensor_names(self, name: str) -> dict[str, str]:
        """Return the name under which `keep` stores the value of each leaf. Raises InputError as `keep` does."""
        valid = _valid_names([f"{name}.{leaf}" for leaf in self.values], "tensor")
        return {leaf: valid[f"{name}.{leaf}"] for leaf in self.values}


def _valid_names(names: Iterable[str], kind: str) -> dict[str, str]:
    """Return each name with invalid characters replaced. Raises InputError if one is too long, or two are the same."""
    valid, originals = {name: _INVALID.sub("_", name) or "_" for name in names}, dict[str, str]()
    for name, valid_name in valid.items():
        if len(valid_name) > _MAX_LENGTH:
            article = "an" if kind[0] in "io" else "a"
            raise InputError(
                f"{valid_name!r} is too long for the name of {article} {kind}: the limit is {_MAX_LENGTH} characters"
            )
        if valid_name in originals:
            raise InputError(f"{originals[valid_name]!r} and {name!r} would both become the {kind} {valid_name!r}")
        originals[valid_name] = name
    return valid
