"""`import_model`: import of a file or model, with example inputs, as a graph."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
from onnx import ModelProto, TensorProto, ValueInfoProto, helper, numpy_helper

from gradserve_client.errors import GradserveError, InputError
from gradserve_client.graph import Node
from gradserve_client.importing import DEFAULT_LIMITS, Blocked, Budget, Imported, ImportLimits, Obstacles, SourceGraph
from gradserve_client.importing.free_extents import NO_FREE_AXES, FreeAxes, check_second_example, join_imports
from gradserve_client.onnx.leaf_notes import notes_of
from gradserve_client.onnx.reading import Model, array_of, opsets_of, read_model
from gradserve_client.onnx.scope import Known, Scope, Unknown, Value, named, wire_obstacle
from gradserve_client.onnx.sizes import held_bytes
from gradserve_client.onnx.translator import Translator
from gradserve_client.tensors import REALS, Array

#: example inputs, by name or in the model's order
Inputs = Mapping[str, Any] | Sequence[Any]
_TO_SUPPORTED: Final = "cast it, and everything computed from it, to a supported dtype before exporting"


def import_model(
    model: Model,
    inputs: Inputs,
    *,
    constants: Collection[str] = (),
    parameters: Collection[str] | None = None,
    max_steps: int | None = None,
    free: FreeAxes = NO_FREE_AXES,
    second: Inputs | None = None,
    limits: ImportLimits = DEFAULT_LIMITS,
) -> Imported:
    """Import an ONNX model as a graph, for inputs of these shapes.

    Float initialisers become parameters under their own names, or only those named in `parameters`; all other
    initialisers are constants. Inputs named in `constants` become part of the graph with the example's values; use this
    for inputs that state a shape. `max_steps` bounds loops that have no bound in the file.

    Shapes are fixed to those of the example, except for the extents in `free`, which maps names of inputs to axes.
    These may vary, and `second`, further example inputs that differ in all of them, checks it.

    `limits` bounds the resources that the import of each example may use, whatever the file contains. Files with
    external data are read only from the model's folder, and only if `model` is a path.

    Raises ImportRefused with all unsupported nodes, or if a limit is exceeded; and InputError if `model` is not a valid
    model or the inputs do not match it.
    """
    parsed = read_model(model, Budget(limits, "the model"))
    options = _Options(constants, parameters, max_steps, limits)
    first = _imported(parsed, _by_name(parsed, inputs), options)
    if not free and second is None:
        return first
    examples = _by_name(parsed, inputs), _by_name(parsed, second if second is not None else {})
    check_second_example(free, *examples)
    return join_imports(first, _imported(parsed, examples[1], options), free)


class _Options(NamedTuple):
    """Options of one import."""

    constants: Collection[str]
    parameters: Collection[str] | None
    max_steps: int | None
    limits: ImportLimits


def inputs_of(model: ModelProto) -> list[ValueInfoProto]:
    """Return the inputs that have no value in the file."""
    initialisers = {each.name for each in model.graph.initializer}
    return [each for each in model.graph.input if each.name not in initialisers]


def _by_name(model: ModelProto, inputs: Inputs) -> dict[str, Any]:
    """Return example inputs by name. Raises InputError if they are not the inputs of the model."""
    initialisers = {each.name for each in model.graph.initializer}
    names = [each.name for each in inputs_of(model)]
    examples = dict(inputs) if isinstance(inputs, Mapping) else dict(zip(names, inputs, strict=False))
    expected = ", ".join(repr(name) for name in names) or "none"
    if not isinstance(inputs, Mapping) and len(inputs) != len(names):
        raise InputError(f"the inputs of the model are {expected}: expected {len(names)}, got {len(inputs)}")
    unknown, missing = [*examples.keys() - {*names} - initialisers], [*{*names} - examples.keys()]
    if unknown or missing:
        problem = f"{min(unknown)!r} is unknown" if unknown else f"{min(missing)!r} is missing"
        raise InputError(f"the inputs of the model are {expected}: {problem}")
    return {each.name: _example(each, examples[each.name]) for each in model.graph.input if each.name in examples}


def dtype_of(stated: ValueInfoProto) -> np.dtype[Any]:
    """Return the dtype that a model states for an input. Raises InputError for a dtype that ONNX does not define."""
    element = stated.type.tensor_type.elem_type
    if element not in helper.get_all_tensor_dtypes():
        raise InputError(f"{stated.name!r} has the element type {element}, which ONNX does not define")
    dtype: np.dtype[Any] = helper.tensor_dtype_to_np_dtype(element)
    return dtype


def _example(stated: Any, value: Any) -> Any:
    """Convert an example to an array of the dtype that the model states. Return other values unchanged."""
    if isinstance(value, TensorProto):
        value = numpy_helper.to_array(value)
    if not stated.type.HasField("tensor_type") or value is None or isinstance(value, list):
        return value
    dtype = dtype_of(stated)
    array = np.asarray(value)
    if array.dtype == dtype:
        return array
    if array.dtype.kind not in "biuf" or (array.dtype.kind == "f" and dtype.kind != "f"):
        return array
    if isinstance(value, np.ndarray):
        raise InputError(f"{stated.name!r} is {dtype} in the model, but its example is {array.dtype}")
    return array.astype(dtype)


def _imported(model: ModelProto, inputs: Mapping[str, Any], options: _Options) -> Imported:
    name = f"the model {model.graph.name!r}" if model.graph.name else "the model"
    budget = Budget(options.limits, name)
    functions = {(each.domain, each.name, each.overload): each for each in model.functions}
    translator = Translator(functions, budget, options.max_steps)
    scope = Scope(SourceGraph(budget=budget), opsets_of(model))
    try:
        leaves = _initialisers(model, scope, inputs, options.parameters, budget)
        input_nodes = _inputs(scope, inputs, options.constants, translator.obstacles)
        _require_names(model)
        translator.walk(model.graph.node, scope)
        outputs = _outputs(model, scope, translator.obstacles)
        translator.obstacles.raise_all(name, translator.tally)
        return _build_import(scope, input_nodes, leaves, outputs, translator)
    except GradserveError:
        raise
    except Exception as error:  # whatever a file contains, callers must only have to catch the importer's errors
        raise InputError(f"the importer failed on {budget.location}: {type(error).__name__}: {error}") from error


def _initialisers(
    model: ModelProto, scope: Scope, inputs: Mapping[str, Any], parameters: Collection[str] | None, budget: Budget
) -> dict[str, Value]:
    """Return the values of the initialisers by name, and mark the floats that are trained."""
    if model.graph.sparse_initializer:
        raise InputError("the model has sparse initialisers: make them dense before importing it")
    values = {}
    for each in model.graph.initializer:
        if each.name in inputs:
            continue
        array = array_of(each)
        budget.locate("initializer", lambda each=each: repr(each.name))  # type: ignore[misc]
        budget.hold(held_bytes([array]))
        trained = array.dtype.kind == "f" and array.dtype.name in REALS
        trained = trained and (parameters is None or each.name in parameters)
        known = Known.MODEL if trained else Known.CONSTANT
        values[each.name] = scope[each.name] = Value(each.name, array, known, trained=trained)
    unknown = sorted({*(parameters or ())} - values.keys())
    if unknown:
        raise InputError(f"{unknown[0]!r} is not an initialiser of the model")
    return values


def _inputs(
    scope: Scope, inputs: Mapping[str, Any], constants: Collection[str], obstacles: Obstacles
) -> dict[str, Node]:
    """Create the leaves of inputs that are fed, by name. Inputs that are constants have no leaf."""
    unknown = sorted({*constants} - inputs.keys())
    if unknown:
        raise InputError(f"{unknown[0]!r} is not an input of the model and cannot be one of its constants")
    input_nodes = {}
    for name, example in inputs.items():
        if name in constants:
            scope[name] = Value(name, example, Known.CONSTANT)
            continue
        reason = wire_obstacle(example)
        if reason is not None:
            way_round = _TO_SUPPORTED if "unsupported dtype" in reason else ""
            obstacles.add("input", repr(name), Blocked(f"it holds {reason}", way_round))
            scope[name] = Value(name, None)
            continue
        input_nodes[name] = scope.graph.input(named(name), **_declared(example))
        scope[name] = Value(name, example, Known.DATA, frozenset({name}), input_nodes[name])
    return input_nodes


def _declared(example: Array) -> dict[str, Any]:
    return {"dtype": example.dtype.name, "shape": [*example.shape] or None, "zero_d": not example.shape or None}


def _require_names(model: ModelProto) -> None:
    """Raise InputError for a name that a node reads before any node or input defines it."""
    known = {each.name for each in (*model.graph.input, *model.graph.initializer)}
    for node in model.graph.node:
        for name in node.input:
            if name and name not in known:
                raise InputError(f"{node.op_type} reads {name!r}, which no earlier node computes")
        known |= {*node.output}


def _outputs(model: ModelProto, scope: Scope, obstacles: Obstacles) -> dict[str, Node]:
    outputs = {}
    for each in model.graph.output:
        value = scope.find(each.name)
        if value is None:
            raise InputError(f"no node computes the output {each.name!r}")
        try:
            outputs[each.name] = scope.node_of(value)
        except Blocked as blocked:
            obstacles.add("output", repr(each.name), blocked)
        except Unknown:
            pass  # the obstacle that it depends on has been recorded
    return outputs


def _build_import(
    scope: Scope,
    input_nodes: Mapping[str, Node],
    leaves: Mapping[str, Value],
    outputs: Mapping[str, Node],
    translator: Translator,
) -> Imported:
    """Build the result: all inputs, and the part of the graph that the outputs need."""
    subgraph = scope.graph.subgraph([*input_nodes.values(), *outputs.values()])
    parameters = {
        name: value
        for name, value in leaves.items()
        if value.trained and value.node is not None and value.node.id in subgraph.nodes
    }
    return Imported(
        graph=subgraph.graph,
        inputs={name: subgraph.nodes[node.id] for name, node in input_nodes.items()},
        parameters={
            name: subgraph.nodes[value.node.id] for name, value in parameters.items() if value.node is not None
        },
        values={name: value.example for name, value in parameters.items()},
        outputs={name: subgraph.nodes[node.id] for name, node in outputs.items()},
        notes=(*translator.tally.notes(), *notes_of(leaves.values(), parameters), *translator.remarks),
        tally=translator.tally,
    )
