"""Models: registered graphs that are called by names, with their weights at the server."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import index
from typing import Any, Final, Protocol

import numpy.typing as npt

from gradserve_client.answers import Gradients, Values
from gradserve_client.errors import InputError
from gradserve_client.graph import Graph, Node, NodeLike
from gradserve_client.registered import Registered
from gradserve_client.resident import Resident
from gradserve_client.tensors import Array, ArrayLike, dtype_name

#: an input of a model: a leaf that declares dtype and shape, or a node with both, where -1 is a free extent
ModelInputLike = Node | tuple[NodeLike, npt.DTypeLike, Sequence[int]]


class BoundTensors(Protocol):
    """A mapping from leaves, by their handles, names or ids, to resident tensors or their names."""

    def items(self) -> Iterable[tuple[Any, Resident | str]]:
        """Leaves, and what they are bound to."""


NONE_BOUND: Final[BoundTensors] = {}


@dataclass(frozen=True)
class ModelValue:
    """What goes in or comes out of a model under a name: its node, dtype and shape, where -1 is a free extent."""

    node: int
    dtype: str
    shape: tuple[int, ...]

    @classmethod
    def from_wire(cls, stated: Mapping[str, Any]) -> ModelValue:
        """What an answer says of it."""
        return cls(index(stated["node"]), stated["dtype"], tuple(map(index, stated["shape"])))


@dataclass(frozen=True)
class BoundLeaf:
    """A leaf whose value is a resident tensor, of the dtype and shape that it has to have."""

    node: int
    tensor_name: str
    dtype: str
    shape: tuple[int, ...]

    @classmethod
    def from_wire(cls, stated: Mapping[str, Any]) -> BoundLeaf:
        """What an answer says of it."""
        shape = tuple(map(index, stated["shape"]))
        return cls(index(stated["node"]), stated["tensor_id"], stated["dtype"], shape)


@dataclass(frozen=True)
class ModelSummary:
    """A version of a model that the server keeps.

    `inputs` and `outputs` are by name, in the order of the model; `bound` are all other leaves that outputs need.
    """

    name: str
    etag: str
    graph_id: str
    description: str
    inputs: Mapping[str, ModelValue]
    outputs: Mapping[str, ModelValue]
    bound: tuple[BoundLeaf, ...]

    @classmethod
    def from_wire(cls, stated: Mapping[str, Any]) -> ModelSummary:
        """What an answer says of a model."""
        return cls(
            name=stated["name"],
            etag=stated["etag"],
            graph_id=stated["graph_id"],
            description=stated.get("description", ""),
            inputs={each["name"]: ModelValue.from_wire(each) for each in stated["inputs"]},
            outputs={each["name"]: ModelValue.from_wire(each) for each in stated["outputs"]},
            bound=tuple(BoundLeaf.from_wire(each) for each in stated["bound"]),
        )


class NamedModel:
    """A model that the server keeps, as it was when it was put or asked for; `etag` says which version that is.

    Its graph is asked for by the first call on it, where it is not at hand.
    """

    def __init__(self, summary: ModelSummary, graph: Registered | None = None) -> None:
        self.summary = summary
        self._graph = graph

    @property
    def name(self) -> str:
        """Its name."""
        return self.summary.name

    @property
    def etag(self) -> str:
        """Which version it is, for conditions."""
        return self.summary.etag

    @property
    def graph_id(self) -> str:
        """The hash of its graph."""
        return self.summary.graph_id

    @property
    def description(self) -> str:
        """What it is, for people."""
        return self.summary.description

    @property
    def inputs(self) -> Mapping[str, ModelValue]:
        """What goes in, by name."""
        return self.summary.inputs

    @property
    def outputs(self) -> Mapping[str, ModelValue]:
        """What comes out, by name."""
        return self.summary.outputs

    @property
    def bound(self) -> tuple[BoundLeaf, ...]:
        """The leaves whose values are resident tensors."""
        return self.summary.bound

    def __repr__(self) -> str:
        return f"<model {self.name}: {', '.join(self.inputs) or 'nothing'} to {', '.join(self.outputs)}>"

    def feeds(self, inputs: Mapping[str, ArrayLike | Resident]) -> dict[int, ArrayLike | Resident]:
        """What a call of the graph is fed: these for the inputs, and the tensors of what is bound.

        Raises InputError for names that are none of the inputs', and for inputs that are missing.
        """
        unknown, missing = sorted(inputs.keys() - self.inputs.keys()), sorted(self.inputs.keys() - inputs.keys())
        if unknown or missing:
            wrong = f"{unknown[0]!r} is none" if unknown else f"{missing[0]!r} is missing"
            raise InputError(f"the inputs of the model {self.name} are {_told(self.inputs)}: {wrong}")
        given = {self.inputs[name].node: value for name, value in inputs.items()}
        return {**given, **{leaf.node: Resident(leaf.tensor_name, "") for leaf in self.bound}}

    def nodes_of(self, names: Sequence[str] | None) -> list[int]:
        """The nodes of outputs, each once; of all of them, where no names are stated. Raises InputError."""
        chosen = self.outputs if names is None else names
        return [*dict.fromkeys(self._output(name).node for name in chosen)]

    def node_of(self, of: str | None) -> int:
        """The node of an output; of the only one, where no name is stated. Raises InputError."""
        if of is None and len(self.outputs) != 1:
            raise InputError(f"the model {self.name} has the outputs {_told(self.outputs)}: say which as `of`")
        return self._output(next(iter(self.outputs)) if of is None else of).node

    def _output(self, name: str) -> ModelValue:
        if name not in self.outputs:
            raise InputError(f"the outputs of the model {self.name} are {_told(self.outputs)}: {name!r} is none")
        return self.outputs[name]

    def leaves_of(self, wrt: Sequence[str] | None) -> list[int]:
        """The nodes of inputs; of all that are floats, where no names are stated. Raises InputError."""
        floats = [name for name, value in self.inputs.items() if value.dtype.startswith("float")]
        chosen = floats if wrt is None else wrt
        unknown = [name for name in chosen if name not in self.inputs]
        if unknown or not chosen:
            wrong = f"{unknown[0]!r} is none" if unknown else "there is none to differentiate by"
            raise InputError(f"the inputs of the model {self.name} are {_told(self.inputs)}: {wrong}")
        return [self.inputs[name].node for name in chosen]


class NamedValues:
    """Values by the names of a model's outputs. `answer` is what came, by nodes."""

    def __init__(self, answer: Values, model: NamedModel) -> None:
        self.answer = answer
        self.values: dict[str, Array] = _by_name(answer, "values", model.outputs)

    @property
    def value(self) -> Array:
        """The value of the only output. Raises InputError where there are several."""
        if len(self.values) != 1:
            raise InputError(f"the answer has the values {_told(self.values)}, and not one")
        return next(iter(self.values.values()))

    @property
    def stats(self) -> Mapping[str, Any]:
        """The receipt: what running it took, and on what."""
        return self.answer.stats

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {', '.join(self.values)}>"


class NamedGradients(NamedValues):
    """Values by the names of outputs, and gradients by the names of inputs."""

    def __init__(self, answer: Gradients, model: NamedModel) -> None:
        super().__init__(answer, model)
        self.gradients: dict[str, Array] = _by_name(answer, "gradients", model.inputs)
        without = set(answer.fields["disconnected"])
        self.disconnected = [name for name in self.gradients if model.inputs[name].node in without]


def _by_name(answer: Values, field: str, named: Mapping[str, ModelValue]) -> dict[str, Array]:
    """The tensors of a field under all names that their nodes have."""
    arrays: dict[int, Array] = {entry["node"]: entry["tensor"] for entry in answer.fields[field]}
    return {name: arrays[value.node] for name, value in named.items() if value.node in arrays}


def definition(
    graph: Registered | str,
    inputs: Mapping[str, ModelInputLike],
    outputs: Mapping[str, NodeLike],
    bound: BoundTensors,
    description: str,
) -> dict[str, Any]:
    """What a model is, as it is put, but for `graph_id`. Raises InputError."""
    nodes = graph.graph if isinstance(graph, Registered) else None
    stated: dict[str, Any] = {
        "inputs": [_input(name, each, nodes) for name, each in inputs.items()],
        "outputs": [{"name": name, "node": _id_of(node, nodes)} for name, node in outputs.items()],
        "bound": [{"node": _id_of(node, nodes), "tensor_id": _name_of(tensor)} for node, tensor in bound.items()],
    }
    return stated | ({"description": description} if description else {})


def _name_of(tensor: Resident | str) -> str:
    return tensor.name if isinstance(tensor, Resident) else tensor


def _input(name: str, stated: ModelInputLike, graph: Graph | None) -> dict[str, Any]:
    if isinstance(stated, Node):
        stated = (stated, *_declared(name, stated))
    node, dtype, shape = stated
    return {"name": name, "node": _id_of(node, graph), "dtype": dtype_name(dtype), "shape": [int(e) for e in shape]}


def _declared(name: str, leaf: Node) -> tuple[str, Sequence[int]]:
    dtype = leaf.attrs.get("dtype")
    shape = [] if leaf.attrs.get("zero_d") else leaf.attrs.get("shape")
    if dtype is None or shape is None:
        raise InputError(
            f"the input {name!r} of the model is {leaf.told}, which does not declare dtype and shape: state them as "
            f'{{"{name}": (node, "float64", [-1, 3])}}'
        )
    return dtype, shape


def _id_of(node: NodeLike, graph: Graph | None) -> int:
    """The id of a node, which is looked for in the graph where that is at hand."""
    if graph is not None:
        return graph.find(node).id
    if isinstance(node, Node):
        return node.id
    if isinstance(node, str):
        raise InputError(f"which node {node!r} is is not known of a graph by its id alone: state the node's id")
    return node


def _told(named: Mapping[str, Any]) -> str:
    return ", ".join(map(repr, named)) or "none"
