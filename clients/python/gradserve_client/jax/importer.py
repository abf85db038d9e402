"""`import_function`: from a function of JAX and example arguments to a graph."""

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
from gradserve_client.importing.free_extents import NOTHING_FREE, Free, joined, require_second
from gradserve_client.jax.context import CustomRules
from gradserve_client.jax.imported_function import ImportedFunction, places_of
from gradserve_client.jax.translator import Translator
from gradserve_client.jax.trees import RESULT, Tree, argument_names
from gradserve_client.jax.values import Scope, Value, require_threefry, unsendable, words_of
from gradserve_client.tensors import Array

#: names of nodes are no longer
_LONGEST: Final = 128


def import_function(
    function: Callable[..., Any],
    *arguments: Any,
    parameters: int | Sequence[int] = 0,
    max_steps: int | None = None,
    unroll: bool = False,
    custom_rules: CustomRules = "keep",
    free: Free = NOTHING_FREE,
    second: Sequence[Any] | None = None,
    limits: ImportLimits = DEFAULT_LIMITS,
) -> ImportedFunction:
    """A function of JAX as a graph, for arguments of these shapes and dtypes, which are trees of arrays.

    `parameters` says which arguments are trained, as `argnums` of `jax.grad` does: their floats are parameters of the
    graph, with the examples as values, and their other leaves its state. The leaves of the other arguments are inputs.
    A leaf is called as its argument is, and then by its keys: `params.dense.0.w`. Those of the result begin with
    `result`.

    `max_steps` bounds loops that only their data end: `while`, whose floats are NaN where the bound ended it. With
    `unroll` the steps of `scan` are written one behind the other. `custom_rules` says by what a function with a rule of
    its own (`custom_vjp`, `custom_jvp`) is differentiated: "keep", its rule; or "body", as if it had none, which is
    noted.

    Shapes are the example's, but for the axes of leaves that `free` has, by name: these may be of any extent, as
    `second`, further arguments that differ in all of them, has to show. `limits` bounds what the import of each example
    may use.

    Raises ImportRefused with all that cannot be said, and beyond the limits; and InputError for arguments that are no
    trees of arrays, or of dtypes that JAX does not have as it is configured.
    """
    options = _Options(function, parameters, max_steps, unroll, custom_rules, limits)
    first = options.imported(arguments)
    if not free and second is None:
        return first
    others = tuple(second) if second is not None else ()
    if len(others) != len(arguments):
        raise InputError(f"there are {len(arguments)} arguments, and the second example has {len(others)}")
    require_second(free, *(options.inputs(each) for each in (arguments, others)))
    found = joined(first, options.imported(others), free)
    assert isinstance(found, ImportedFunction)
    return found


@dataclass(frozen=True)
class _Options:
    """A function, and how it is imported."""

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
        """The example's inputs by name."""
        places = self.places(arguments)
        return {
            name: value
            for i, (tree, argument) in enumerate(zip(self.trees(arguments), arguments, strict=True))
            if i not in places
            for name, value in zip(tree.names, _leaves(tree, argument), strict=True)
        }

    def places(self, arguments: Sequence[Any]) -> tuple[int, ...]:
        """Which arguments are parameters."""
        if not arguments:
            return ()
        found = places_of(self.parameters, len(arguments))
        return (found,) if isinstance(found, int) else found

    def imported(self, arguments: Sequence[Any]) -> ImportedFunction:
        if self.custom_rules not in {"keep", "body"}:
            raise InputError(f"custom_rules is 'keep' or 'body', not {self.custom_rules!r}")
        trees = self.trees(arguments)
        for tree, argument in zip(trees, arguments, strict=True):
            _leaves(tree, argument)
        closed, shapes = jax.make_jaxpr(self.function, return_shape=True)(*arguments)
        name = getattr(self.function, "__name__", "")
        name = f"the function {name!r}" if name else "the function"
        budget = Budget(self.limits, name)
        translator = Translator(budget, self.max_steps, self.unroll, self.custom_rules)
        leaves = _Leaves(Scope(SourceGraph(budget=budget)), translator)
        places = self.places(arguments)
        values = [
            leaves.value(name, example, trained=i in places)
            for i, (tree, argument) in enumerate(zip(trees, arguments, strict=True))
            for name, example in zip(tree.names, jax.tree_util.tree_leaves(argument), strict=True)
        ]
        results = Tree.of(RESULT, shapes)
        outputs = dict(zip(results.names, translator.walk(closed, values, leaves.scope), strict=True))
        nodes = leaves.outputs(outputs)
        translator.obstacles.raise_all(name, translator.tally)
        stated = places_of(self.parameters, len(arguments)) if arguments else ()
        return leaves.made(nodes, tuple(trees), results, stated)


def _leaves(tree: Tree, argument: Any) -> list[Array]:
    """The leaves of an argument as arrays. Raises InputError for what is none, or of a dtype that JAX does not have."""
    return [_array(name, leaf) for name, leaf in zip(tree.names, jax.tree_util.tree_leaves(argument), strict=True)]


def _array(name: str, leaf: Any) -> Array:
    if isinstance(leaf, jax.Array) and jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.prng_key):
        return words_of(leaf)
    if isinstance(leaf, np.ndarray | np.generic) and leaf.dtype.kind in "biufc":
        wanted = jax.dtypes.canonicalize_dtype(leaf.dtype)
        if wanted != leaf.dtype:
            raise InputError(
                f"{name!r} is {leaf.dtype}, of which JAX makes {wanted}: set jax_enable_x64, or give {wanted}"
            )
    if not isinstance(leaf, jax.Array | np.ndarray | np.generic | bool | int | float | complex):
        raise InputError(f"{name!r} is {type(leaf).__name__}, and no array: bind it with functools.partial")
    return np.asarray(jnp.asarray(leaf))


@dataclass
class _Leaves:
    """The leaves of a graph that is being made."""

    scope: Scope
    translator: Translator

    def __post_init__(self) -> None:
        self.inputs: dict[str, Node] = {}
        self.parameters: dict[str, Node] = {}
        self.state: dict[str, Node] = {}
        self.values: dict[str, Array] = {}

    def value(self, name: str, leaf: Any, *, trained: bool) -> Value:
        """A leaf of the graph, for one of an argument."""
        value = Value.typed(jax.typeof(leaf))
        try:
            require_threefry(jax.typeof(leaf))
        except Blocked as blocked:
            self.translator.obstacles.meet("input", repr(name), blocked)
        reason = unsendable(value.dtype)
        if reason is not None:
            self.translator.obstacles.meet("input", repr(name), Blocked(f"it is of {reason}"))
            return value.with_node(self.scope.graph.input())
        shape = [*value.node_shape]
        stated: Mapping[str, Any] = {"dtype": value.dtype.name, "shape": shape or None, "zero_d": not shape or None}
        called = name if len(name) <= _LONGEST else None
        if trained and value.is_float and not value.is_key:
            node = self.parameters[name] = self.scope.graph.parameter(called, **stated)
        else:
            node = self.scope.graph.input(called, **stated)
            (self.state if trained else self.inputs)[name] = node
        if trained:
            self.values[name] = _array(name, leaf)
        return value.with_node(node)

    def outputs(self, results: Mapping[str, Value]) -> dict[str, Node]:
        """A node for each result: of its own, where several are one, or one is a leaf."""
        found: dict[str, Node] = {}
        taken = {node.id for node in (*self.inputs.values(), *self.parameters.values(), *self.state.values())}
        for name, value in results.items():
            try:
                node = self.scope.node_of(value)
            except Blocked as blocked:
                self.translator.obstacles.meet("output", repr(name), blocked)
                continue
            found[name] = node.identity() if node.id in taken else node
            taken.add(found[name].id)
        return found

    def made(
        self, outputs: Mapping[str, Node], arguments: tuple[Tree, ...], results: Tree, places: int | tuple[int, ...]
    ) -> ImportedFunction:
        """What the outputs need, and all leaves."""
        kinds = (self.inputs, self.parameters, self.state, outputs)
        part = self.scope.graph.part(node for kind in kinds for node in kind.values())
        inputs, parameters, state, kept = ({name: part.nodes[node.id] for name, node in kind.items()} for kind in kinds)
        return ImportedFunction(
            graph=part.graph,
            inputs=inputs,
            parameters=parameters,
            values=self.values,
            outputs=kept,
            notes=(*self.translator.tally.notes(), *self.translator.remarks),
            state=state,
            tally=self.translator.tally,
            arguments=arguments,
            results=results,
            parameter_places=places,
        )
