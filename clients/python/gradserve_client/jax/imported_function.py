"""The result of importing a JAX function: an `Imported` with the pytrees of its arguments and results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import jax
import numpy as np

from gradserve_client.errors import InputError
from gradserve_client.graph import Node
from gradserve_client.importing import Imported
from gradserve_client.jax.trees import Tree
from gradserve_client.tensors import Array, ArrayLike, as_array


@dataclass(frozen=True, repr=False)
class ImportedFunction(Imported):
    """A JAX function as a graph.

    `arguments` are the pytrees of its arguments and `results` is the pytree of its result. `parameter_places` gives the
    positions of the arguments that are parameters, like `argnums` of `jax.grad`: one number or several.
    """

    arguments: tuple[Tree, ...] = ()
    results: Tree = field(default_factory=lambda: Tree(None, ()))
    parameter_places: int | tuple[int, ...] = 0

    def feeds(self, inputs: Mapping[str, ArrayLike]) -> dict[Node, Array]:
        """Return the feeds of a call of the graph, as `Imported.feeds` does. Inputs may be JAX keys."""
        return super().feeds({name: _words(value) for name, value in inputs.items()})

    def feeds_of(self, *arguments: Any) -> dict[Node, Array]:
        """Return the feeds of a call of the graph for these arguments of the function, including parameters.

        Raises InputError if the pytree of an argument differs from that of its example.
        """
        if len(arguments) != len(self.arguments):
            raise InputError(f"the function was imported with {len(self.arguments)} arguments, not {len(arguments)}")
        feeds: dict[Node, Array] = {}
        leaves = self.leaves
        for i, (tree, argument) in enumerate(zip(self.arguments, arguments, strict=True)):
            values, structure = jax.tree_util.tree_flatten(argument)
            if structure != tree.structure:
                raise InputError(
                    f"argument {i} differs in structure from its example: {structure}, not {tree.structure}"
                )
            for name, value in zip(tree.names, values, strict=True):
                node = leaves[name]
                feeds[node] = as_array(_words(value), node.attrs.get("dtype"))
        return feeds

    def result(self, values: Any) -> Any:
        """Return the function's result as its pytree, from a response's `values` or from values by output name."""
        return self.results.build({name: _value_of(values, name, node) for name, node in self.outputs.items()})

    def gradients(self, values: Any) -> Any:
        """Return what `jax.grad` would return, from a response's `gradients`: pytrees like the parameters.

        Leaves without a gradient, such as integers, get zeros. The gradient of a complex leaf is the conjugate of the
        response's, which is JAX's convention.
        """
        positions = self.parameter_places
        if isinstance(positions, int):
            return self._gradient(positions, values)
        return tuple(self._gradient(position, values) for position in positions)

    def _gradient(self, position: int, values: Any) -> Any:
        tree = self.arguments[position]
        return tree.build({name: self._leaf_gradient(name, values) for name in tree.names})

    def _leaf_gradient(self, name: str, values: Any) -> Array:
        try:
            gradient = np.asarray(_value_of(values, name, self.parameters[name]))
        except KeyError:
            return np.zeros_like(self.values[name])
        return gradient.conj() if gradient.dtype.kind == "c" else gradient


def _value_of(values: Any, name: str, node: Node) -> Any:
    """Look a value up by its name, or else by its node."""
    return values[name] if isinstance(values, Mapping) and name in values else values[node]


def _words(value: Any) -> Any:
    """Convert JAX keys to their words and other JAX arrays to NumPy. Return anything else unchanged."""
    if not isinstance(value, jax.Array):
        return value
    is_key = jax.dtypes.issubdtype(value.dtype, jax.dtypes.prng_key)
    return np.asarray(jax.random.key_data(value)) if is_key else np.asarray(value)


def normalize_argnums(argnums: int | Sequence[int], count: int) -> int | tuple[int, ...]:
    """Make the positions of parameters non-negative. Raises InputError if one is out of range or repeats."""
    positions = (argnums,) if isinstance(argnums, int) else tuple(argnums)
    for position in positions:
        if not -count <= position < count:
            raise InputError(f"parameters name argument {position}, but the number of arguments is {count}")
    normalized = tuple(position % count for position in positions)
    if len({*normalized}) < len(normalized):
        raise InputError(f"parameters name an argument twice: {[*positions]}")
    return normalized[0] if isinstance(argnums, int) else normalized
