"""`import_model`: from a file and example inputs to a graph."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
from onnx import ModelProto, TensorProto, ValueInfoProto, helper, numpy_helper

from gradserve_client.errors import GradserveError, InputError
from gradserve_client.graph import Node
from gradserve_client.importing import DEFAULT_LIMITS, Blocked, Budget, Imported, ImportLimits, Obstacles, SourceGraph
from gradserve_client.importing.free_extents import NOTHING_FREE, Free, joined, require_second
from gradserve_client.onnx.notes_of import notes_of
from gradserve_client.onnx.reading import Model, array_of, opsets_of, read_model
from gradserve_client.onnx.scope import Known, Scope, Unknown, Value, named, unsendable
from gradserve_client.onnx.sizes import held_bytes
from gradserve_client.onnx.translator import Translator
from gradserve_client.tensors import REALS, Array

#: example inputs, by name or in order
Inputs = Mapping[str, Any] | Sequence[Any]
_TO_WIRE: Final = "cast it, and what is computed with it, to a dtype of the wire before exporting"


def import_model(
    model: Model,
    inputs: Inputs,
    *,
    constants: Collection[str] = (),
    parameters: Collection[str] | None = None,
    max_steps: int | None = None,
    free: Free = NOTHING_FREE,
    second: Inputs | None = None,
    limits: ImportLimits = DEFAULT_LIMITS,
) -> Imported:
    """A model of ONNX as a graph, for inputs of these shapes.

    Initialisers of floats become parameters under their own names, or only those that `parameters` names; the others
    are constants. Inputs that `constants` names become part of the graph with the example's values: those that say a
    shape, as a rule. `max_steps` bounds loops that the file does not bound.

    Shapes are the example's, but for the extents of inputs that `free` has, axes by name: these may be any, as
    `second`, example inputs that differ in all of them, has to show.

    `limits` bounds what the import of each example may use, whatever the file says. Files with external data are read
    from the model's folder alone, and only where `model` is a path.

    Raises ImportRefused with all that cannot be said, and beyond the limits; and InputError for what is no model, and
    for inputs that are not its own.
    """
    read = read_model(model, Budget(limits, "the model"))
    options = _Options(constants, parameters, max_steps, limits)
    first = _imported(read, _by_name(read, inputs), options)
    if not free and second is None:
        return first
    examples = _by_name(read, inputs), _by_name(read, second if second is not None else {})
    require_second(free, *examples)
    return joined(first, _imported(read, examples[1], options), free)


class _Options(NamedTuple):
    """Options of one import."""

    constants: Collection[str]
    parameters: Collection[str] | None
    max_steps: int | None
    limits: ImportLimits


def inputs_of(model: ModelProto) -> list[ValueInfoProto]:
    """The inputs that have no value in the file."""
    own = {each.name for each in model.graph.initializer}
    return [each for each in model.graph.input if each.name not in own]


def _by_name(model: ModelProto, inputs: Inputs) -> dict[str, Any]:
    """Example inputs by name. Raises InputError where they are not those of the model."""
    own = {each.name for each in model.graph.initializer}
    names = [each.name for each in inputs_of(model)]
    given = dict(inputs) if isinstance(inputs, Mapping) else dict(zip(names, inputs, strict=False))
    told = ", ".join(repr(name) for name in names) or "none"
    if not isinstance(inputs, Mapping) and len(inputs) != len(names):
        raise InputError(f"the inputs of the model are {told}: {len(names)}, and not {len(inputs)}")
    unknown, missing = [*given.keys() - {*names} - own], [*{*names} - given.keys()]
    if unknown or missing:
        wrong = f"{min(unknown)!r} is none" if unknown else f"{min(missing)!r} is missing"
        raise InputError(f"the inputs of the model are {told}: {wrong}")
    return {each.name: _example(each, given[each.name]) for each in model.graph.input if each.name in given}


def dtype_of(stated: ValueInfoProto) -> np.dtype[Any]:
    """Give the dtype that a model states for an input. Raises InputError for one that ONNX does not define."""
    element = stated.type.tensor_type.elem_type
    if element not in helper.get_all_tensor_dtypes():
        raise InputError(f"{stated.name!r} has the element type {element}, which ONNX does not define")
    dtype: np.dtype[Any] = helper.tensor_dtype_to_np_dtype(element)
    return dtype


def _example(stated: Any, value: Any) -> Any:
    """An example as an array of the dtype that the model states; what is no array is left as it is."""
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
        raise InputError(f"{stated.name!r} is {dtype} in the model, and its example {array.dtype}")
    return array.astype(dtype)


def _imported(model: ModelProto, inputs: Mapping[str, Any], options: _Options) -> Imported:
    name = f"the model {model.graph.name!r}" if model.graph.name else "the model"
    budget = Budget(options.limits, name)
    functions = {(each.domain, each.name, each.overload): each for each in model.functions}
    translator = Translator(functions, budget, options.max_steps)
    scope = Scope(SourceGraph(budget=budget), opsets_of(model))
    try:
        leaves = _initialisers(model, scope, inputs, options.parameters, budget)
        fed = _inputs(scope, inputs, options.constants, translator.obstacles)
        _require_names(model)
        translator.walk(model.graph.node, scope)
        outputs = _outputs(model, scope, translator.obstacles)
        translator.obstacles.raise_all(name, translator.tally)
        return _made(scope, fed, leaves, outputs, translator)
    except GradserveError:
        raise
    except Exception as error:  # whatever a file contains, callers need to catch the importer's own errors alone
        raise InputError(f"the importer fails on {budget.location}: {type(error).__name__}: {error}") from error


def _initialisers(
    model: ModelProto, scope: Scope, inputs: Mapping[str, Any], parameters: Collection[str] | None, budget: Budget
) -> dict[str, Value]:
    """The values of the file, of which floats may be trained: those by name."""
    if model.graph.sparse_initializer:
        raise InputError("the model has sparse initialisers: make them dense before it is imported")
    found = {}
    for each in model.graph.initializer:
        if each.name in inputs:
            continue
        array = array_of(each)
        budget.locate("initializer", lambda each=each: repr(each.name))  # type: ignore[misc]
        budget.hold(held_bytes([array]))
        trained = array.dtype.kind == "f" and array.dtype.name in REALS
        trained = trained and (parameters is None or each.name in parameters)
        known = Known.MODEL if trained else Known.CONSTANT
        found[each.name] = scope[each.name] = Value(each.name, array, known, trained=trained)
    unknown = sorted({*(parameters or ())} - found.keys())
    if unknown:
        raise InputError(f"{unknown[0]!r} is no initialiser of the model")
    return found


def _inputs(
    scope: Scope, inputs: Mapping[str, Any], constants: Collection[str], obstacles: Obstacles
) -> dict[str, Node]:
    """The leaves that are fed, by name; those that are constants are none."""
    unknown = sorted({*constants} - inputs.keys())
    if unknown:
        raise InputError(f"{unknown[0]!r} is no input of the model, and cannot be one of its constants")
    fed = {}
    for name, example in inputs.items():
        if name in constants:
            scope[name] = Value(name, example, Known.CONSTANT)
            continue
        reason = unsendable(example)
        if reason is not None:
            obstacles.meet(
                "input", repr(name), Blocked(f"it is of {reason}", _TO_WIRE if "wire lacks" in reason else "")
            )
            scope[name] = Value(name, None)
            continue
        fed[name] = scope.graph.input(named(name), **_declared(example))
        scope[name] = Value(name, example, Known.DATA, frozenset({name}), fed[name])
    return fed


def _declared(example: Array) -> dict[str, Any]:
    return {"dtype": example.dtype.name, "shape": [*example.shape] or None, "zero_d": not example.shape or None}


def _require_names(model: ModelProto) -> None:
    """Raise InputError for a name that a node reads and nothing gives."""
    known = {each.name for each in (*model.graph.input, *model.graph.initializer)}
    for node in model.graph.node:
        for name in node.input:
            if name and name not in known:
                raise InputError(f"{node.op_type} reads {name!r}, which nothing before it gives")
        known |= {*node.output}


def _outputs(model: ModelProto, scope: Scope, obstacles: Obstacles) -> dict[str, Node]:
    found = {}
    for each in model.graph.output:
        value = scope.find(each.name)
        if value is None:
            raise InputError(f"nothing gives the output {each.name!r}")
        try:
            found[each.name] = scope.node_of(value)
        except Blocked as blocked:
            obstacles.meet("output", repr(each.name), blocked)
        except Unknown:
            pass  # what it depends on has been noted
    return found


def _made(
    scope: Scope,
    fed: Mapping[str, Node],
    leaves: Mapping[str, Value],
    outputs: Mapping[str, Node],
    translator: Translator,
) -> Imported:
    """What the outputs need, and all inputs."""
    part = scope.graph.part([*fed.values(), *outputs.values()])
    kept = {
        name: value
        for name, value in leaves.items()
        if value.trained and value.node is not None and value.node.id in part.nodes
    }
    return Imported(
        graph=part.graph,
        inputs={name: part.nodes[node.id] for name, node in fed.items()},
        parameters={name: part.nodes[value.node.id] for name, value in kept.items() if value.node is not None},
        values={name: value.example for name, value in kept.items()},
        outputs={name: part.nodes[node.id] for name, node in outputs.items()},
        notes=(*translator.tally.notes(), *notes_of(leaves.values(), kept), *translator.remarks),
        tally=translator.tally,
    )
