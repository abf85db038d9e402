"""`import_module`: from a module of PyTorch and example arguments to a graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch.utils import _pytree as pytree

from gradserve_client.graph import Node
from gradserve_client.importing import (
    DEFAULT_LIMITS,
    Blocked,
    Budget,
    Imported,
    ImportLimits,
    Note,
    Obstacles,
    SourceGraph,
)
from gradserve_client.importing.free_extents import NOTHING_FREE, Free, joined, require_second
from gradserve_client.tensors import Array
from gradserve_client.torch.exporting import exported
from gradserve_client.torch.leaves import Leaves
from gradserve_client.torch.translator import Translator, unread
from gradserve_client.torch.values import Unknown

_IN_PLACE = Blocked("it is changed in place by the module", "give the new value back in place of changing the old one")


def import_module(
    module: torch.nn.Module,
    args: Sequence[Any],
    kwargs: Mapping[str, Any] | None = None,
    *,
    free: Free | None = None,
    second: Sequence[Any] | None = None,
    second_kwargs: Mapping[str, Any] | None = None,
    limits: ImportLimits = DEFAULT_LIMITS,
) -> Imported:
    """A module of PyTorch as a graph, for arguments of these shapes, in train or eval mode as it is.

    Parameters are leaves under their own names, which have their values; those that require no gradient, and buffers,
    are `state`. A parameter under several names is one leaf, under the first of them. What a run changes of the
    buffers is in `buffers`. Arguments that are tensors are inputs by the names of `forward`'s parameters, with `_0`,
    `_1`, … or `_KEY` for those within lists and dicts; others, such as numbers, become part of the graph. One output is
    called `output`, several `output.0`, `output.1`, …; what is in a dict or a dataclass has its names.

    Shapes are the example's, but for the extents of inputs that `free` has, axes by name: these may be any, as
    `second` and `second_kwargs`, arguments that differ in all of them, have to show. `limits` bounds what the import of
    each example may use.

    Raises ImportRefused with all that cannot be said, and beyond the limits; and InputError for what torch.export
    cannot trace.
    """
    first = _imported(module, args, kwargs or {}, limits)
    if not free and second is None and second_kwargs is None:
        return first[0]
    other = _imported(module, second or (), second_kwargs or {}, limits)
    free = free or NOTHING_FREE
    require_second(free, first[1], other[1])
    return joined(first[0], other[0], free)


def _imported(
    module: torch.nn.Module, args: Sequence[Any], kwargs: Mapping[str, Any], limits: ImportLimits
) -> tuple[Imported, dict[str, Array]]:
    """A module, and the examples of its inputs by name."""
    obstacles, remarks = Obstacles(), list[Note]()
    program = exported(module, args, kwargs, obstacles, remarks)
    name = f"the module {type(module).__name__}"
    budget = Budget(limits, name)
    translator = Translator(SourceGraph(budget=budget), obstacles, budget)
    leaves = Leaves(module, program, translator)
    translator.walk(program.graph)
    outputs, buffers = _results(program, leaves, translator)
    obstacles.raise_all(name, translator.tally)
    made = _made(leaves, outputs, buffers, translator, remarks)
    examples = pytree.tree_leaves((tuple(args), dict(kwargs)))
    tensors = [each.numpy(force=True) for each in examples if isinstance(each, torch.Tensor)]
    return made, dict(zip(leaves.inputs, tensors, strict=True))


def _results(program: Any, leaves: Leaves, translator: Translator) -> tuple[dict[str, Node], dict[str, Node]]:
    """The outputs by name, and the new values of buffers."""
    outputs: dict[str, Node] = {}
    buffers: dict[str, Node] = {}
    names = iter(_names(program.call_spec.out_spec))
    results = next(step for step in program.graph.nodes if step.op == "output").args[0]
    for spec, stated in zip(program.graph_signature.output_specs, results, strict=True):
        kind = spec.kind.name
        if kind == "BUFFER_MUTATION":
            _put(buffers, leaves.name_of(spec.target), stated, translator)
        elif kind != "USER_OUTPUT":
            translator.obstacles.meet("in place", repr(spec.target), _IN_PLACE)
        else:
            _put(outputs, next(names), stated, translator)
    return outputs, buffers


def _put(found: dict[str, Node], name: str, stated: Any, translator: Translator) -> None:
    if not isinstance(stated, torch.fx.Node):
        translator.remarks.append(Note("model", name, 1, f"it is {stated!r}, which is no tensor and no output"))
        return
    try:
        found[name] = translator.value_of(stated).given_by(translator.graph)
    except Blocked as blocked:
        translator.obstacles.meet("output", repr(name), blocked)
    except Unknown:
        pass  # what it depends on has been noted


def _names(spec: Any) -> list[str]:
    """What the outputs are called, by where they stand in what the module gives."""
    paths = [path for path, _ in pytree.tree_flatten_with_path(pytree.tree_unflatten(range(spec.num_leaves), spec))[0]]
    told = [
        [str(getattr(key, "key", getattr(key, "name", getattr(key, "idx", key)))) for key in path] for path in paths
    ]
    return [".".join(keys if keys and not keys[0].isdigit() else ["output", *keys]) for keys in told]


def _made(
    leaves: Leaves,
    outputs: Mapping[str, Node],
    buffers: Mapping[str, Node],
    translator: Translator,
    remarks: Sequence[Note],
) -> Imported:
    """What the outputs and the changed buffers need, and all inputs."""
    changed = [leaves.state[name] for name in buffers]
    part = translator.graph.part([*leaves.inputs.values(), *changed, *outputs.values(), *buffers.values()])

    def kept(nodes: Mapping[str, Node]) -> dict[str, Node]:
        return {name: part.nodes[node.id] for name, node in nodes.items() if node.id in part.nodes}

    parameters, state = kept(leaves.parameters), kept(leaves.state)
    own = [*parameters, *state]
    return Imported(
        graph=part.graph,
        inputs=kept(leaves.inputs),
        parameters=parameters,
        values={name: leaves.values[name] for name in own},
        outputs=kept(outputs),
        notes=(*translator.tally.notes(), *leaves.notes, *unread([*leaves.values], own), *translator.remarks, *remarks),
        state=state,
        buffers=kept(buffers),
        tally=translator.tally,
    )
