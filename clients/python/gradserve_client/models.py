"""Models: registered graphs with named inputs and outputs, and their weights on the server."""

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

#: an input of a model: a leaf that declares dtype and shape, or a tuple of node, dtype and shape; -1 is a free extent
ModelInputLike = Node | tuple[NodeLike, npt.DTypeLike, Sequence[int]]


class BoundTensors(Protocol):
    """A mapping from leaves, as node objects, names or ids, to resident tensors or their names."""

    def items(self) -> Iterable[tuple[Any, Resident | str]]:
        """Return pairs of a leaf and its tensor."""


NONE_BOUND: Final[BoundTensors] = {}


@dataclass(frozen=True)
class ModelValue:
    """A named input or output of a model: its node, dtype and shape, in which -1 is a free extent."""

    node: int
    dtype: str
    shape: tuple[int, ...]

    @classmethod
    def from_wire(cls, entry: Mapping[str, Any]) -> ModelValue:
        """Read an input or output from a response."""
        return cls(index(entry["node"]), entry["dtype"], tuple(map(index, entry["shape"])))


@dataclass(frozen=True)
class BoundLeaf:
    """A leaf that is bound to a resident tensor, with the dtype and shape that the tensor must have."""

    node: int
    tensor_name: str
    dtype: str
    shape: tuple[int, ...]

    @classmethod
    def from_wire(cls, entry: Mapping[str, Any]) -> BoundLeaf:
        """Read a bound leaf from a response."""
        shape = tuple(map(index, entry["shape"]))
        return cls(index(entry["node"]), entry["tensor_id"], entry["dtype"], shape)


@dataclass(frozen=True)
class ModelSummary:
    """The metadata of one version of a model.

    `inputs` and `outputs` are keyed by name, in the order of the model. `bound` are all other leaves that the outputs
    need.
    """

    name: str
    etag: str
    graph_id: str
    description: str
    inputs: Mapping[str, ModelValue]
    outputs: Mapping[str, ModelValue]
    bound: tuple[BoundLeaf, ...]

    @classmethod
    def from_wire(cls, entry: Mapping[str, Any]) -> ModelSummary:
        """Read the summary of a model from a response."""
        return cls(
            name=entry["name"],
            etag=entry["etag"],
            graph_id=entry["graph_id"],
            description=entry.get("description", ""),
            inputs={each["name"]: ModelValue.from_wire(each) for each in entry["inputs"]},
            outputs={each["name"]: ModelValue.from_wire(each) for each in entry["outputs"]},
            bound=tuple(BoundLeaf.from_wire(each) for each in entry["bound"]),
        )


class NamedModel:
    """A model as it was when it was stored or fetched; `etag` identifies that version.

    Its graph is fetched by the first call, unless the client has it.
    """

    def __init__(self, summary: ModelSummary, graph: Registered | None = None) -> None:
        self.summary = summary
        self._graph = graph

    @property
    def name(self) -> str:
        """The name of the model."""
        return self.summary.name

    @property
    def etag(self) -> str:
        """The identifier of this version, for conditions."""
        return self.summary.etag

    @property
    def graph_id(self) -> str:
        """The hash of the model's graph."""
        return self.summary.graph_id

    @property
    def description(self) -> str:
        """The description of the model, for people."""
        return self.summary.description

    @property
    def inputs(self) -> Mapping[str, ModelValue]:
        """The inputs by name."""
        return self.summary.inputs

    @property
    def outputs(self) -> Mapping[str, ModelValue]:
        """The outputs by name."""
        return self.summary.outputs

    @property
    def bound(self) -> tuple[BoundLeaf, ...]:
        """The leaves that are bound to resident tensors."""
        return self.summary.bound

    def __repr__(self) -> str:
        return f"<model {self.name}: {', '.join(self.inputs) or 'nothing'} to {', '.join(self.outputs)}>"

    def feeds(self, inputs: Mapping[str, ArrayLike | Resident]) -> dict[int, ArrayLike | Resident]:
        """Return the feeds of a call on the graph: the inputs, and the tensors of bound leaves.

        Raises InputError for unknown names, and for missing inputs.
        """
        unknown, missing = sorted(inputs.keys() - self.inputs.keys()), sorted(self.inputs.keys() - inputs.keys())
        if unknown or missing:
            problem = f"{unknown[0]!r} is unknown" if unknown else f"{missing[0]!r} is missing"
            raise InputError(f"the inputs of the model {self.name} are {_list_names(self.inputs)}: {problem}")
        feeds = {self.inputs[name].node: value for name, value in inputs.items()}
        return {**feeds, **{leaf.node: Resident(leaf.tensor_name, "") for leaf in self.bound}}

    def nodes_of(self, names: Sequence[str] | None) -> list[int]:
        """Return the nodes of outputs without duplicates; of all outputs if `names` is None.

        Raises InputError for an unknown name.
        """
        selected = self.outputs if names is None else names
        return [*dict.fromkeys(self._output(name).node for name in selected)]

    def node_of(self, of: str | None) -> int:
        """Return the node of an output; of the only output if `of` is None. Raises InputError."""
        if of is None and len(self.outputs) != 1:
            raise InputError(f"the model {self.name} has the outputs {_list_names(self.outputs)}: pass one as `of`")
        return self._output(next(iter(self.outputs)) if of is None else of).node

    def _output(self, name: str) -> ModelValue:
        if name not in self.outputs:
            raise InputError(
                f"the outputs of the model {self.name} are {_list_names(self.outputs)}: {name!r} is unknown"
            )
        return self.outputs[name]

    def leaves_of(self, wrt: Sequence[str] | None) -> list[int]:
        """Return the nodes of inputs; of all inputs with a float dtype if `wrt` is None. Raises InputError."""
        floats = [name for name, value in self.inputs.items() if value.dtype.startswith("float")]
        selected = floats if wrt is None else wrt
        unknown = [name for name in selected if name not in self.inputs]
        if unknown or not selected:
            problem = f"{unknown[0]!r} is unknown" if unknown else "nothing to differentiate with respect to"
            raise InputError(f"the inputs of the model {self.name} are {_list_names(self.inputs)}: {problem}")
        return [self.inputs[name].node for name in selected]


class NamedValues:
    """Values by the names of a model's outputs. `answer` has the same results by node."""

    def __init__(self, answer: Values, model: NamedModel) -> None:
        self.answer = answer
        self.values: dict[str, Array] = _by_name(answer, "values", model.outputs)

    @property
    def value(self) -> Array:
        """The value of the only output. Raises InputError if there are several."""
        if len(self.values) != 1:
            raise InputError(f"expected exactly one value, but the answer has {_list_names(self.values)}")
        return next(iter(self.values.values()))

    @property
    def stats(self) -> Mapping[str, Any]:
        """The execution statistics of the call: time, memory and hardware, as docs/wire.md lists them."""
        return self.answer.stats

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {', '.join(self.values)}>"


class NamedGradients(NamedValues):
    """Values by the names of outputs, and gradients by the names of inputs.

    `disconnected` lists the inputs that have no differentiable path to the output. Their gradients are zero.
    """

    def __init__(self, answer: Gradients, model: NamedModel) -> None:
        super().__init__(answer, model)
        self.gradients: dict[str, Array] = _by_name(answer, "gradients", model.inputs)
        disconnected_nodes = set(answer.fields["disconnected"])
        self.disconnected = [name for name in self.gradients if model.inputs[name].node in disconnected_nodes]


def _by_name(answer: Values, field: str, values_by_name: Mapping[str, ModelValue]) -> dict[str, Array]:
    """Return the tensors of a field by name. A node with several names is listed under each of them."""
    arrays: dict[int, Array] = {entry["node"]: entry["tensor"] for entry in answer.fields[field]}
    return {name: arrays[value.node] for name, value in values_by_name.items() if value.node in arrays}


def definition(
    graph: Registered | str,
    inputs: Mapping[str, ModelInputLike],
    outputs: Mapping[str, NodeLike],
    bound: BoundTensors,
    description: str,
) -> dict[str, Any]:
    """Return the fields of a model, except `graph_id`. Raises InputError."""
    nodes = graph.graph if isinstance(graph, Registered) else None
    fields: dict[str, Any] = {
        "inputs": [_input(name, model_input, nodes) for name, model_input in inputs.items()],
        "outputs": [{"name": name, "node": _node_id(node, nodes)} for name, node in outputs.items()],
        "bound": [{"node": _node_id(node, nodes), "tensor_id": _tensor_name(tensor)} for node, tensor in bound.items()],
    }
    return fields | ({"description": description} if description else {})


def _tensor_name(tensor: Resident | str) -> str:
    return tensor.name if isinstance(tensor, Resident) else tensor


def _input(name: str, model_input: ModelInputLike, graph: Graph | None) -> dict[str, Any]:
    if isinstance(model_input, Node):
        model_input = (model_input, *_declared(name, model_input))
    node, dtype, shape = model_input
    return {"name": name, "node": _node_id(node, graph), "dtype": dtype_name(dtype), "shape": [int(e) for e in shape]}


def _declared(name: str, leaf: Node) -> tuple[str, Sequence[int]]:
    dtype = leaf.attrs.get("dtype")
    shape = [] if leaf.attrs.get("zero_d") else leaf.attrs.get("shape")
    if dtype is None or shape is None:
        raise InputError(
            f"the input {name!r} of the model is {leaf.told}, which does not declare dtype and shape: pass them as "
            f'{{"{name}": (node, "float64", [-1, 3])}}'
        )
    return dtype, shape


def _node_id(node: NodeLike, graph: Graph | None) -> int:
    """Return the id of a node, which is looked up in the graph if the client has it."""
    if graph is not None:
        return graph.find(node).id
    if isinstance(node, Node):
        return node.id
    if isinstance(node, str):
        raise InputError(
            f"a node cannot be looked up by name ({node!r}) in a graph given by its id: pass the node's id"
        )
    return node


def _list_names(names: Mapping[str, Any]) -> str:
    return ", ".join(map(repr, names)) or "none"
