"""Two primitives of JAX: a map that a server computes, and its derivative along tangents.

    remote   x     ↦ f(x)       its derivative is `linear`; where f gives one float, the product with its gradient
    linear   x, t  ↦ f′(x) t    its transpose by t is `remote` of the pullback

As a map of x and t, `linear` is the pushforward, and so has the derivative of that. What JAX gets by transforming is
made of these two again, so it may transform that, too, to any order.
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

from gradserve_client.recording.maps import Map, Places

#: which operands have a leading axis of examples
Mapped = tuple[bool, ...]


def _primitive(name: str) -> Any:
    made = Primitive(f"gradserve_{name}")
    made.multiple_results = True
    return made


REMOTE: Final = _primitive("remote")
LINEAR: Final = _primitive("linear")


def apply(to: Map, operands: Sequence[Any]) -> Sequence[Any]:
    """The outputs of a map."""
    return _remote(to, operands, (False,) * len(operands))


def _remote(to: Map, operands: Sequence[Any], mapped: Mapped) -> list[Any]:
    outputs: list[Any] = REMOTE.bind(*operands, to=to, mapped=mapped)
    return outputs


def _linear(to: Map, wrt: Places, operands: Sequence[Any], tangents: Sequence[Any], mapped: Mapped) -> list[Any]:
    """The derivatives of those outputs that are floats, along tangents of the operands at `wrt`."""
    along = (*mapped, *(mapped[place] for place in wrt))
    outputs: list[Any] = LINEAR.bind(*operands, *tangents, to=to, wrt=wrt, mapped=along)
    return outputs


# What they are: the types of the outputs, and how these are computed.


def _types(*operands: Any, to: Map, mapped: Mapped) -> list[Any]:
    sizes = [operand.shape[0] for operand, has_axis in zip(operands, mapped, strict=True) if has_axis]
    return [jax.core.ShapedArray((*sizes[:1], *output.shape), output.dtype) for output in to.outputs]


def _computed(*operands: Any, to: Map, mapped: Mapped) -> list[Any]:
    return [jnp.asarray(array) for array in to([*map(np.asarray, operands)], mapped)]


def _called_back(*operands: Any, to: Map, mapped: Mapped) -> list[Any]:
    """As it is compiled: XLA asks Python."""
    types = [jax.ShapeDtypeStruct(each.shape, each.dtype) for each in _types(*operands, to=to, mapped=mapped)]
    outputs: list[Any] = jax.pure_callback(lambda *arrays: to([*map(np.asarray, arrays)], mapped), types, *operands)
    return outputs


def _pushed(rule: Callable[..., list[Any]]) -> Callable[..., list[Any]]:
    """A rule of `remote` for `linear`, which is a map from operands and tangents."""

    def of_linear(*operands: Any, to: Map, wrt: Places, mapped: Mapped) -> list[Any]:
        return rule(*operands, to=to.pushforward(wrt), mapped=mapped)

    return of_linear


REMOTE.def_abstract_eval(_types)
REMOTE.def_impl(_computed)
mlir.register_lowering(REMOTE, mlir.lower_fun(_called_back, multiple_results=True))
LINEAR.def_abstract_eval(_pushed(_types))
LINEAR.def_impl(_pushed(_computed))
mlir.register_lowering(LINEAR, mlir.lower_fun(_pushed(_called_back), multiple_results=True))


# Derivatives.


def _derivative(
    operands: Sequence[Any], tangents: Sequence[Any], *, to: Map, mapped: Mapped
) -> tuple[list[Any], list[Any]]:
    wrt = tuple(
        place
        for place, (tangent, known) in enumerate(zip(tangents, to.inputs, strict=True))
        if known.is_float and not isinstance(tangent, ad.Zero)
    )
    given = [ad.instantiate_zeros(tangents[place]) for place in wrt]
    if to.is_scalar and wrt:
        value, *gradients = _remote(to.with_gradients(wrt), operands, mapped)
        return [value], [_along(gradients, given, value)]
    outputs = _remote(to, operands, mapped)
    derivatives = iter(_linear(to, wrt, operands, given, mapped) if wrt else ())
    moved = [next(derivatives) if wrt and known.is_float else None for known in to.outputs]
    return outputs, [
        ad.Zero(jax.typeof(output).to_tangent_aval()) if tangent is None else tangent
        for output, tangent in zip(outputs, moved, strict=True)
    ]


def _along(gradients: Sequence[Any], tangents: Sequence[Any], value: Any) -> Any:
    """How the value changes: the sum of the products, for each example where there is an axis of these."""
    products = [gradient * tangent for gradient, tangent in zip(gradients, tangents, strict=True)]
    summed = [product.sum(tuple(range(value.ndim, product.ndim))).astype(value.dtype) for product in products]
    return reduce(operator.add, summed)


def _derivative_of_linear(
    operands: Sequence[Any], tangents: Sequence[Any], *, to: Map, wrt: Places, mapped: Mapped
) -> tuple[list[Any], list[Any]]:
    return _derivative(operands, tangents, to=to.pushforward(wrt), mapped=mapped)


def _transpose(cotangents: Sequence[Any], *operands: Any, to: Map, wrt: Places, mapped: Mapped) -> list[Any]:
    """By the tangents. Where an operand has no axis of examples, its gradient is the sum over these."""
    count = len(to.inputs)
    known, tangents = operands[:count], operands[count:]
    has_axis = any(mapped)
    weights = [ad.instantiate_zeros(cotangent) for cotangent in cotangents]
    pulled = _remote(to.pullback(wrt), [*known, *weights], (*mapped[:count], *(has_axis for _ in weights)))
    summed = [
        gradient.sum(0) if has_axis and not has_own else gradient
        for gradient, has_own in zip(pulled, mapped[count:], strict=True)
    ]
    return [None] * count + [
        gradient if ad.is_undefined_primal(tangent) else None
        for gradient, tangent in zip(summed, tangents, strict=True)
    ]


ad.primitive_jvps[REMOTE] = _derivative
ad.primitive_jvps[LINEAR] = _derivative_of_linear
ad.primitive_transposes[LINEAR] = _transpose


# Many examples.


def _batched(primitive: Any, operands: Sequence[Any], axes: Sequence[int | None], **stated: Any) -> Any:
    """All examples in one call. Where there is an axis of examples already, both become one, and then two again."""
    mapped: Mapped = stated.pop("mapped")
    (size,) = {operand.shape[axis] for operand, axis in zip(operands, axes, strict=True) if axis is not None}
    moved = [
        operand if axis is None else jnp.moveaxis(operand, axis, 0)
        for operand, axis in zip(operands, axes, strict=True)
    ]
    if not any(mapped):
        outputs = primitive.bind(*moved, mapped=tuple(axis is not None for axis in axes), **stated)
        return outputs, [0] * len(outputs)
    inner = next(o.shape[a is not None] for o, a, has in zip(moved, axes, mapped, strict=True) if has)
    merged = [
        _merged(operand, size, inner, has_outer=axis is not None, has_inner=has)
        for operand, axis, has in zip(moved, axes, mapped, strict=True)
    ]
    both = tuple(axis is not None or has for axis, has in zip(axes, mapped, strict=True))
    outputs = primitive.bind(*merged, mapped=both, **stated)
    return [output.reshape(size, inner, *output.shape[1:]) for output in outputs], [0] * len(outputs)


def _merged(operand: Any, outer: int, inner: int, *, has_outer: bool, has_inner: bool) -> Any:
    """An operand with one axis for both, or none, where it has neither."""
    if not has_outer and not has_inner:
        return operand
    shape = operand.shape[has_outer + has_inner :]
    alone = operand.reshape(outer if has_outer else 1, inner if has_inner else 1, *shape)
    return jnp.broadcast_to(alone, (outer, inner, *shape)).reshape(outer * inner, *shape)


for _each in (REMOTE, LINEAR):
    batching.primitive_batchers[_each] = partial(_batched, _each)
