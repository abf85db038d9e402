"""`import_module`: translate a PyTorch module, exported for example arguments, to a graph."""

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
from gradserve_client.importing.free_extents import NO_FREE_AXES, FreeAxes, check_second_example, join_imports
from gradserve_client.tensors import Array
from gradserve_client.torch.exporting import export
from gradserve_client.torch.leaves import Leaves
from gradserve_client.torch.translator import Translator, unused_leaves
from gradserve_client.torch.values import Unknown

_IN_PLACE = Blocked("the module changes it in place", "return the new value instead of changing the old one")


def import_module(
    module: torch.nn.Module,
    args: Sequence[Any],
    kwargs: Mapping[str, Any] | None = None,
    *,
    free: FreeAxes | None = None,
    second: Sequence[Any] | None = None,
    second_kwargs: Mapping[str, Any] | None = None,
    limits: ImportLimits = DEFAULT_LIMITS,
) -> Imported:
    """Import a PyTorch module as a graph, for arguments of these shapes, in its current train or eval mode.

    Parameters are leaves under their own names, with their values. Frozen parameters and buffers are `state`. A
    parameter with several names is one leaf under the first of them. `buffers` has the new values of buffers that a run
    changes. Tensor arguments become inputs named like the parameters of `forward`, with `_0`, `_1`, ... or `_KEY`
    appended inside lists and dicts. Other arguments, such as numbers, become part of the graph. A single output is
    named `output`, several are `output.0`, `output.1`, ...; outputs in a dict or dataclass are named by its keys.

    Shapes are those of the example. `free` maps names of inputs to axes that can have any extent; `second` and
    `second_kwargs` must then be arguments that differ from the first in all of these extents. `limits` bounds what the
    import of each example can use.

    Raises ImportRefused listing everything that is unsupported, or if a limit is exceeded. Raises InputError if
    torch.export cannot trace the module.
    """
    first_import = _import(module, args, kwargs or {}, limits)
    if not free and second is None and second_kwargs is None:
        return first_import[0]
    second_import = _import(module, second or (), second_kwargs or {}, limits)
    free = free or NO_FREE_AXES
    check_second_example(free, first_import[1], second_import[1])
    return join_imports(first_import[0], second_import[0], free)


def _import(
    module: torch.nn.Module, args: Sequence[Any], kwargs: Mapping[str, Any], limits: ImportLimits
) -> tuple[Imported, dict[str, Array]]:
    """Import a module for one example. Return it, and the example's inputs by name."""
    obstacles, remarks = Obstacles(), list[Note]()
    program = export(module, args, kwargs, obstacles, remarks)
    name = f"the module {type(module).__name__}"
    budget = Budget(limits, name)
    translator = Translator(SourceGraph(budget=budget), obstacles, budget)
    leaves = Leaves(module, program, translator)
    translator.walk(program.graph)
    outputs, buffers = _results(program, leaves, translator)
    obstacles.raise_all(name, translator.tally)
    imported = _build(leaves, outputs, buffers, translator, remarks)
    examples = pytree.tree_leaves((tuple(args), dict(kwargs)))
    tensors = [each.numpy(force=True) for each in examples if isinstance(each, torch.Tensor)]
    return imported, dict(zip(leaves.inputs, tensors, strict=True))


def _results(program: Any, leaves: Leaves, translator: Translator) -> tuple[dict[str, Node], dict[str, Node]]:
    """Return the outputs by name, and the new values of buffers."""
    outputs: dict[str, Node] = {}
    buffers: dict[str, Node] = {}
    names = iter(_output_names(program.call_spec.out_spec))
    results = next(step for step in program.graph.nodes if step.op == "output").args[0]
    for spec, result in zip(program.graph_signature.output_specs, results, strict=True):
        kind = spec.kind.name
        if kind == "BUFFER_MUTATION":
            _add_output(buffers, leaves.name_of(spec.target), result, translator)
        elif kind != "USER_OUTPUT":
            translator.obstacles.add("in place", repr(spec.target), _IN_PLACE)
        else:
            _add_output(outputs, next(names), result, translator)
    return outputs, buffers


def _add_output(nodes: dict[str, Node], name: str, result: Any, translator: Translator) -> None:
    if not isinstance(result, torch.fx.Node):
        translator.remarks.append(Note("model", name, 1, f"it is {result!r}, which is neither a tensor nor an output"))
        return
    try:
        nodes[name] = translator.value_of(result).node_in(translator.graph)
    except Blocked as blocked:
        translator.obstacles.add("output", repr(name), blocked)
    except Unknown:
        pass  # the node that it depends on is an obstacle already


def _output_names(spec: Any) -> list[str]:
    """Return the names of the outputs, from their paths in the result of the module."""
    paths = [path for path, _ in pytree.tree_flatten_with_path(pytree.tree_unflatten(range(spec.num_leaves), spec))[0]]
    key_paths = [
        [str(getattr(key, "key", getattr(key, "name", getattr(key, "idx", key)))) for key in path] for path in paths
    ]
    return [".".join(keys if keys and not keys[0].isdigit() else ["output", *keys]) for keys in key_paths]


def _build(
    leaves: Leaves,
    outputs: Mapping[str, Node],
    buffers: Mapping[str, Node],
    translator: Translator,
    remarks: Sequence[Note],
) -> Imported:
    """Build the result: a graph of all inputs and of the nodes that outputs and changed buffers need."""
    changed = [leaves.state[name] for name in buffers]
    subgraph = translator.graph.subgraph([*leaves.inputs.values(), *changed, *outputs.values(), *buffers.values()])

    def in_subgraph(nodes: Mapping[str, Node]) -> dict[str, Node]:
        return {name: subgraph.nodes[node.id] for name, node in nodes.items() if node.id in subgraph.nodes}

    parameters, state = in_subgraph(leaves.parameters), in_subgraph(leaves.state)
    own = [*parameters, *state]
    return Imported(
        graph=subgraph.graph,
        inputs=in_subgraph(leaves.inputs),
        parameters=parameters,
        values={name: leaves.values[name] for name in own},
        outputs=in_subgraph(outputs),
        notes=(
            *translator.tally.notes(),
            *leaves.notes,
            *unused_leaves([*leaves.values], own),
            *translator.remarks,
            *remarks,
        ),
        state=state,
        buffers=in_subgraph(buffers),
        tally=translator.tally,
    )
