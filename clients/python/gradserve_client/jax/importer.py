"""`import_function`: translate a JAX function, traced on example arguments, to a graph."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import jax
import jax.numpy as jnp
import numpy as np

from gradserve_client.errors import InputError
from gradserve_client.graph import Node
from gradserve_client.importing import DEFAULT_LIMITS, Blocked, Budget, ImportLimits, SourceGraph
from gradserve_client.importing.free_extents import NO_FREE_AXES, FreeAxes, check_second_example, join_imports
from gradserve_client.jax.context import CustomRules
from gradserve_client.jax.imported_function import ImportedFunction, normalize_argnums
from gradserve_client.jax.translator import Translator
from gradserve_client.jax.trees import RESULT, Tree, argument_names
from gradserve_client.jax.values import Scope, Value, key_words, require_threefry, unsupported
from gradserve_client.tensors import Array

#: maximum length of a node's name
_MAX_NAME_LENGTH: Final = 128


def import_function(
    function: Callable[..., Any],
    *arguments: Any,
    parameters: int | Sequence[int] = 0,
    max_steps: int | None = None,
    unroll: bool = False,
    custom_rules: CustomRules = "keep",
    free: FreeAxes = NO_FREE_AXES,
    second: Sequence[Any] | None = None,
    limits: ImportLimits = DEFAULT_LIMITS,
) -> ImportedFunction:
    """Import a JAX function as a graph, for arguments of the shapes and dtypes of these examples (pytrees of arrays).

    `parameters` selects the arguments to train, like `argnums` of `jax.grad`. Their float leaves become parameters of
    the graph with the examples as values, and their other leaves become state. The leaves of all other arguments become
    inputs. A leaf is named by its argument and keys, such as `params.dense.0.w`. Names of outputs start with `result`.

    `max_steps` bounds `while` loops, whose number of steps depends on data. The floats of a loop that reaches the bound
    are NaN. `unroll` unrolls the steps of `scan`. `custom_rules` selects how functions with `custom_vjp` or
    `custom_jvp` are differentiated: "keep" uses their rules; "body" differentiates their bodies and adds a note.

    Shapes are those of the examples. `free` maps names of leaves to axes that can have any extent; `second` must then
    be a second set of arguments that differs from the first in all of these extents. `limits` bounds what the import of
    each example can use.

    Raises ImportRefused listing everything that is unsupported, or if a limit is exceeded. Raises InputError for
    arguments that are not pytrees of arrays, or have dtypes that JAX is not configured for.
    """
    options = _Options(function, parameters, max_steps, unroll, custom_rules, limits)
    first = options.run(arguments)
    if not free and second is None:
        return first
    second_arguments = tuple(second) if second is not None else ()
    if len(second_arguments) != len(arguments):
        raise InputError(f"the second example must have {len(arguments)} arguments, not {len(second_arguments)}")
    check_second_example(free, *(options.inputs(each) for each in (arguments, second_arguments)))
    joint = join_imports(first, options.run(second_arguments), free)
    assert isinstance(joint, ImportedFunction)
    return joint


@dataclass(frozen=True)
class _Options:
    """The function and the options of an import."""

    function: Callable[..., Any]
    parameters: int | Sequence[int]
    max_steps: int | None
    unroll: bool
    custom_rules: CustomRules
    limits: ImportLimits

    def trees(self, arguments: Sequence[Any]) -> list[Tree]:
        names = argument_names(self.function, len(arguments))
        return [Tree.of(name, argument) for name, argument in zip(names, arguments, strict=True)]

    def inputs(self, arguments: Sequence[Any]) -> dict[str, Array]:
        """Return the example's inputs by name."""
        parameter_positions = self.parameter_positions(arguments)
        return {
            name: value
            for i, (tree, argument) in enumerate(zip(self.trees(arguments), arguments, strict=True))
            if i not in parameter_positions
            for name, value in zip(tree.names, _leaves(tree, argument), strict=True)
        }

    def parameter_positions(self, arguments: Sequence[Any]) -> tuple[int, ...]:
        """Return the positions of the arguments that are parameters."""
        if not arguments:
            return ()
        normalized = normalize_argnums(self.parameters, len(arguments))
        return (normalized,) if isinstance(normalized, int) else normalized

    def run(self, arguments: Sequence[Any]) -> ImportedFunction:
        if self.custom_rules not in {"keep", "body"}:
            raise InputError(f"custom_rules must be 'keep' or 'body', not {self.custom_rules!r}")
        trees = self.trees(arguments)
        for tree, argument in zip(trees, arguments, strict=True):
            _leaves(tree, argument)
        closed, shapes = jax.make_jaxpr(self.function, return_shape=True)(*arguments)
        name = getattr(self.function, "__name__", "")
        name = f"the function {name!r}" if name else "the function"
        budget = Budget(self.limits, name)
        translator = Translator(budget, self.max_steps, self.unroll, self.custom_rules)
        leaves = _Leaves(Scope(SourceGraph(budget=budget)), translator)
        parameter_positions = self.parameter_positions(arguments)
        values = [
            leaves.value(name, example, trained=i in parameter_positions)
            for i, (tree, argument) in enumerate(zip(trees, arguments, strict=True))
            for name, example in zip(tree.names, jax.tree_util.tree_leaves(argument), strict=True)
        ]
        results = Tree.of(RESULT, shapes)
        outputs = dict(zip(results.names, translator.walk(closed, values, leaves.scope), strict=True))
        nodes = leaves.outputs(outputs)
        translator.obstacles.raise_all(name, translator.tally)
        argnums = normalize_argnums(self.parameters, len(arguments)) if arguments else ()
        return leaves.build(nodes, tuple(trees), results, argnums)


def _leaves(tree: Tree, argument: Any) -> list[Array]:
    """Return the leaves of an argument as arrays. Raises InputError for other objects and unavailable dtypes."""
    return [_array(name, leaf) for name, leaf in zip(tree.names, jax.tree_util.tree_leaves(argument), strict=True)]


def _array(name: str, leaf: Any) -> Array:
    if isinstance(leaf, jax.Array) and jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.prng_key):
        return key_words(leaf)
    if isinstance(leaf, np.ndarray | np.generic) and leaf.dtype.kind in "biufc":
        canonical = jax.dtypes.canonicalize_dtype(leaf.dtype)
        if canonical != leaf.dtype:
            raise InputError(
                f"{name!r} is {leaf.dtype}, which JAX converts to {canonical}: set jax_enable_x64, or pass {canonical}"
            )
    if not isinstance(leaf, jax.Array | np.ndarray | np.generic | bool | int | float | complex):
        raise InputError(f"{name!r} is {type(leaf).__name__}, not an array: bind it with functools.partial")
    return np.asarray(jnp.asarray(leaf))


@dataclass
class _Leaves:
    """The leaves of the graph, while it is translated."""

    scope: Scope
    translator: Translator

    def __post_init__(self) -> None:
        self.inputs: dict[str, Node] = {}
        self.parameters: dict[str, Node] = {}
        self.state: dict[str, Node] = {}
        self.values: dict[str, Array] = {}

    def value(self, name: str, leaf: Any, *, trained: bool) -> Value:
        """Add a leaf of an argument to the graph."""
        value = Value.of_type(jax.typeof(leaf))
        try:
            require_threefry(jax.typeof(leaf))
        except Blocked as blocked:
            self.translator.obstacles.add("input", repr(name), blocked)
        reason = unsupported(value.dtype)
        if reason is not None:
            self.translator.obstacles.add("input", repr(name), Blocked(f"it holds {reason}"))
            return value.with_node(self.scope.graph.input())
        shape = [*value.node_shape]
        declared: Mapping[str, Any] = {"dtype": value.dtype.name, "shape": shape or None, "zero_d": not shape or None}
        node_name = name if len(name) <= _MAX_NAME_LENGTH else None
        if trained and value.is_float and not value.is_key:
            node = self.parameters[name] = self.scope.graph.parameter(node_name, **declared)
        else:
            node = self.scope.graph.input(node_name, **declared)
            (self.state if trained else self.inputs)[name] = node
        if trained:
            self.values[name] = _array(name, leaf)
        return value.with_node(node)

    def outputs(self, results: Mapping[str, Value]) -> dict[str, Node]:
        """Return one node per result. A result that is a leaf, or the same node as another, gets an `identity`."""
        nodes: dict[str, Node] = {}
        used_ids = {node.id for node in (*self.inputs.values(), *self.parameters.values(), *self.state.values())}
        for name, value in results.items():
            try:
                node = self.scope.node_of(value)
            except Blocked as blocked:
                self.translator.obstacles.add("output", repr(name), blocked)
                continue
            nodes[name] = node.identity() if node.id in used_ids else node
            used_ids.add(nodes[name].id)
        return nodes

    def build(
        self, outputs: Mapping[str, Node], arguments: tuple[Tree, ...], results: Tree, argnums: int | tuple[int, ...]
    ) -> ImportedFunction:
        """Build the result: a graph of the leaves and of the nodes that the outputs need."""
        kinds = (self.inputs, self.parameters, self.state, outputs)
        subgraph = self.scope.graph.subgraph(node for kind in kinds for node in kind.values())
        inputs, parameters, state, output_nodes = (
            {name: subgraph.nodes[node.id] for name, node in kind.items()} for kind in kinds
        )
        return ImportedFunction(
            graph=subgraph.graph,
            inputs=inputs,
            parameters=parameters,
            values=self.values,
            outputs=output_nodes,
            notes=(*self.translator.tally.notes(), *self.translator.remarks),
            state=state,
            tally=self.translator.tally,
            arguments=arguments,
            results=results,
            parameter_places=argnums,
        )
