"""What the import of a function of JAX gives: an `Imported` that knows the trees of arguments and results."""

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
    """A function of JAX as a graph.

    `arguments` are the trees of its arguments and `results` that of its result; `parameter_places` says which arguments
    are parameters, as `argnums` of `jax.grad` does: a number, or several.
    """

    arguments: tuple[Tree, ...] = ()
    results: Tree = field(default_factory=lambda: Tree(None, ()))
    parameter_places: int | tuple[int, ...] = 0

    def feeds(self, inputs: Mapping[str, ArrayLike]) -> dict[Node, Array]:
        """What a call of the graph is fed: as of `Imported`, but that inputs may be keys of JAX."""
        return super().feeds({name: _words(value) for name, value in inputs.items()})

    def feeds_of(self, *arguments: Any) -> dict[Node, Array]:
        """What a call of the graph is fed for these arguments of the function, parameters among them.

        Raises InputError for arguments whose trees are not those of the examples.
        """
        if len(arguments) != len(self.arguments):
            raise InputError(f"the function was imported with {len(self.arguments)} arguments, not {len(arguments)}")
        fed: dict[Node, Array] = {}
        leaves = self.leaves
        for i, (tree, argument) in enumerate(zip(self.arguments, arguments, strict=True)):
            values, structure = jax.tree_util.tree_flatten(argument)
            if structure != tree.structure:
                raise InputError(f"argument {i} has another tree than its example: {structure}, not {tree.structure}")
            for name, value in zip(tree.names, values, strict=True):
                node = leaves[name]
                fed[node] = as_array(_words(value), node.attrs.get("dtype"))
        return fed

    def result(self, values: Any) -> Any:
        """What the function gives, in its own tree, of an answer's `values`, or of values by name of output."""
        return self.results.built({name: _found(values, name, node) for name, node in self.outputs.items()})

    def gradients(self, values: Any) -> Any:
        """What `jax.grad` gives, of an answer's `gradients`: the trees of the parameters, zeros where none came.

        Leaves that are no floats have zeros, too. Of a complex leaf it is the conjugate of the answer's, as JAX's
        gradient is that of the direction of steepest ascent.
        """
        places = self.parameter_places
        if isinstance(places, int):
            return self._gradient(places, values)
        return tuple(self._gradient(place, values) for place in places)

    def _gradient(self, place: int, values: Any) -> Any:
        tree = self.arguments[place]
        return tree.built({name: self._leaf_gradient(name, values) for name in tree.names})

    def _leaf_gradient(self, name: str, values: Any) -> Array:
        try:
            found = np.asarray(_found(values, name, self.parameters[name]))
        except KeyError:
            return np.zeros_like(self.values[name])
        return found.conj() if found.dtype.kind == "c" else found


def _found(values: Any, name: str, node: Node) -> Any:
    """A value by its name or by its node, whichever there is."""
    return values[name] if isinstance(values, Mapping) and name in values else values[node]


def _words(value: Any) -> Any:
    """The words of a key of JAX; anything else as it is, as an array of NumPy where it is one of JAX."""
    if not isinstance(value, jax.Array):
        return value
    is_key = jax.dtypes.issubdtype(value.dtype, jax.dtypes.prng_key)
    return np.asarray(jax.random.key_data(value)) if is_key else np.asarray(value)


def places_of(stated: int | Sequence[int], count: int) -> int | tuple[int, ...]:
    """Which arguments are parameters, counted from the front. Raises InputError for what is none."""
    listed = (stated,) if isinstance(stated, int) else tuple(stated)
    for place in listed:
        if not -count <= place < count:
            raise InputError(f"parameters name argument {place}, and the function was given {count}")
    counted = tuple(place % count for place in listed)
    if len({*counted}) < len(counted):
        raise InputError(f"parameters name an argument twice: {[*listed]}")
    return counted[0] if isinstance(stated, int) else counted
