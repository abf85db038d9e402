"""Two JAX primitives: a map that the server computes, and its derivative along tangents.

    remote   x     ↦ f(x)
    linear   x, t  ↦ f′(x) t

The JVP of `remote` is `linear`; if f returns one float, it is the product of the tangent and the gradient. The
transpose of `linear` with respect to t is `remote` of the pullback. As a function of x and t, `linear` is the map
`pushforward`, and its JVP is that of the pushforward. The results of a transformation therefore consist of these two
primitives again, and JAX can transform them to any order.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from functools import partial, reduce
from typing import Any, Final

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir

from gradserve_client.recording.maps import Map, Positions

#: which operands have a leading batch axis
Mapped = tuple[bool, ...]


def _primitive(name: str) -> Any:
    primitive = Primitive(f"gradserve_{name}")
    primitive.multiple_results = True
    return primitive


REMOTE: Final = _primitive("remote")
LINEAR: Final = _primitive("linear")


def apply(map_: Map, operands: Sequence[Any]) -> Sequence[Any]:
    """Apply a map, and return its outputs."""
    return _remote(map_, operands, (False,) * len(operands))


def _remote(map_: Map, operands: Sequence[Any], mapped: Mapped) -> list[Any]:
    outputs: list[Any] = REMOTE.bind(*operands, map_=map_, mapped=mapped)
    return outputs


def _linear(map_: Map, wrt: Positions, operands: Sequence[Any], tangents: Sequence[Any], mapped: Mapped) -> list[Any]:
    """Return the derivatives of the float outputs along tangents of the operands at `wrt`."""
    along = (*mapped, *(mapped[position] for position in wrt))
    outputs: list[Any] = LINEAR.bind(*operands, *tangents, map_=map_, wrt=wrt, mapped=along)
    return outputs


# Types of the outputs, and evaluation.


def _abstract_eval(*operands: Any, map_: Map, mapped: Mapped) -> list[Any]:
    sizes = [operand.shape[0] for operand, is_batched in zip(operands, mapped, strict=True) if is_batched]
    return [jax.core.ShapedArray((*sizes[:1], *output.shape), output.dtype) for output in map_.outputs]


def _evaluate(*operands: Any, map_: Map, mapped: Mapped) -> list[Any]:
    return [jnp.asarray(array) for array in map_([*map(np.asarray, operands)], mapped)]


def _call_back(*operands: Any, map_: Map, mapped: Mapped) -> list[Any]:
    """Evaluate inside a compiled program: XLA calls back into Python."""
    types = [
        jax.ShapeDtypeStruct(aval.shape, aval.dtype) for aval in _abstract_eval(*operands, map_=map_, mapped=mapped)
    ]
    outputs: list[Any] = jax.pure_callback(lambda *arrays: map_([*map(np.asarray, arrays)], mapped), types, *operands)
    return outputs


def _for_linear(rule: Callable[..., list[Any]]) -> Callable[..., list[Any]]:
    """Derive the rule of `linear` from that of `remote`: `linear` is `remote` of the pushforward."""

    def linear_rule(*operands: Any, map_: Map, wrt: Positions, mapped: Mapped) -> list[Any]:
        return rule(*operands, map_=map_.pushforward(wrt), mapped=mapped)

    return linear_rule


REMOTE.def_abstract_eval(_abstract_eval)
REMOTE.def_impl(_evaluate)
mlir.register_lowering(REMOTE, mlir.lower_fun(_call_back, multiple_results=True))
LINEAR.def_abstract_eval(_for_linear(_abstract_eval))
LINEAR.def_impl(_for_linear(_evaluate))
mlir.register_lowering(LINEAR, mlir.lower_fun(_for_linear(_call_back), multiple_results=True))


# Derivatives.


def _jvp(operands: Sequence[Any], tangents: Sequence[Any], *, map_: Map, mapped: Mapped) -> tuple[list[Any], list[Any]]:
    wrt = tuple(
        position
        for position, (tangent, value_type) in enumerate(zip(tangents, map_.inputs, strict=True))
        if value_type.is_float and not isinstance(tangent, ad.Zero)
    )
    nonzero_tangents = [ad.instantiate_zeros(tangents[position]) for position in wrt]
    # one request computes a scalar and its gradients, so no `linear` is needed
    if map_.is_scalar and wrt:
        value, *gradients = _remote(map_.with_gradients(wrt), operands, mapped)
        return [value], [_directional_derivative(gradients, nonzero_tangents, value)]
    outputs = _remote(map_, operands, mapped)
    derivatives = iter(_linear(map_, wrt, operands, nonzero_tangents, mapped) if wrt else ())
    output_tangents = [next(derivatives) if wrt and value_type.is_float else None for value_type in map_.outputs]
    return outputs, [
        ad.Zero(jax.typeof(output).to_tangent_aval()) if tangent is None else tangent
        for output, tangent in zip(outputs, output_tangents, strict=True)
    ]


def _directional_derivative(gradients: Sequence[Any], tangents: Sequence[Any], value: Any) -> Any:
    """Return the sum of the products of gradients and tangents, for each example if there is a batch axis."""
    products = [gradient * tangent for gradient, tangent in zip(gradients, tangents, strict=True)]
    summed = [product.sum(tuple(range(value.ndim, product.ndim))).astype(value.dtype) for product in products]
    return reduce(operator.add, summed)


def _jvp_of_linear(
    operands: Sequence[Any], tangents: Sequence[Any], *, map_: Map, wrt: Positions, mapped: Mapped
) -> tuple[list[Any], list[Any]]:
    return _jvp(operands, tangents, map_=map_.pushforward(wrt), mapped=mapped)


def _transpose(cotangents: Sequence[Any], *operands: Any, map_: Map, wrt: Positions, mapped: Mapped) -> list[Any]:
    """Transpose with respect to the tangents. An operand without a batch axis gets the sum of its gradients over it."""
    count = len(map_.inputs)
    primals, tangents = operands[:count], operands[count:]
    is_batched = any(mapped)
    instantiated = [ad.instantiate_zeros(cotangent) for cotangent in cotangents]
    pulled = _remote(
        map_.pullback(wrt), [*primals, *instantiated], (*mapped[:count], *(is_batched for _ in instantiated))
    )
    summed = [
        gradient.sum(0) if is_batched and not operand_is_batched else gradient
        for gradient, operand_is_batched in zip(pulled, mapped[count:], strict=True)
    ]
    return [None] * count + [
        gradient if ad.is_undefined_primal(tangent) else None
        for gradient, tangent in zip(summed, tangents, strict=True)
    ]


ad.primitive_jvps[REMOTE] = _jvp
ad.primitive_jvps[LINEAR] = _jvp_of_linear
ad.primitive_transposes[LINEAR] = _transpose


# Batching.


def _batch(primitive: Any, operands: Sequence[Any], axes: Sequence[int | None], **params: Any) -> Any:
    """Evaluate all examples in one request. Under nested `vmap`, merge both batch axes, and split the outputs again."""
    mapped: Mapped = params.pop("mapped")
    (size,) = {operand.shape[axis] for operand, axis in zip(operands, axes, strict=True) if axis is not None}
    moved = [
        operand if axis is None else jnp.moveaxis(operand, axis, 0)
        for operand, axis in zip(operands, axes, strict=True)
    ]
    if not any(mapped):
        outputs = primitive.bind(*moved, mapped=tuple(axis is not None for axis in axes), **params)
        return outputs, [0] * len(outputs)
    # moving put the new axis first, so the existing batch axis is second where an operand has both
    inner = next(o.shape[a is not None] for o, a, has_inner in zip(moved, axes, mapped, strict=True) if has_inner)
    merged = [
        _merge_axes(operand, size, inner, has_outer=axis is not None, has_inner=has_inner)
        for operand, axis, has_inner in zip(moved, axes, mapped, strict=True)
    ]
    merged_mapped = tuple(axis is not None or has_inner for axis, has_inner in zip(axes, mapped, strict=True))
    outputs = primitive.bind(*merged, mapped=merged_mapped, **params)
    return [output.reshape(size, inner, *output.shape[1:]) for output in outputs], [0] * len(outputs)


def _merge_axes(operand: Any, outer: int, inner: int, *, has_outer: bool, has_inner: bool) -> Any:
    """Reshape an operand to one batch axis for both, or return it if it has neither."""
    if not has_outer and not has_inner:
        return operand
    shape = operand.shape[has_outer + has_inner :]
    separate = operand.reshape(outer if has_outer else 1, inner if has_inner else 1, *shape)
    return jnp.broadcast_to(separate, (outer, inner, *shape)).reshape(outer * inner, *shape)


for _primitive_to_batch in (REMOTE, LINEAR):
    batching.primitive_batchers[_primitive_to_batch] = partial(_batch, _primitive_to_batch)
