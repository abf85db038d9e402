"""Recorded functions as operations of PyTorch."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import torch

from gradserve_client.recording.function import Function
from gradserve_client.recording.maps import Map, Places
from gradserve_client.torch.arrays import TORCH, as_fed, as_tensor, device_of

#: gives the cotangents of a map times its Jacobian: for the map, by which of its values, these, and the cotangents
Pull = Callable[[Map, Places, Sequence[Any], Sequence[torch.Tensor]], Sequence[torch.Tensor]]


def layer(f: Function) -> Callable[..., Any]:
    """A recorded function that takes tensors of PyTorch and gives tensors, differentiable to any order.

        loss = layer(f)(x, w)
        loss.backward()

    It is called with what `f` is called with. Derivatives are by the tensors that require them. Where `f` gives one
    float, its gradients come with the value, in one call; else they are another call, on the way back. What it gives is
    on the device of the first tensor that it takes.

    Calls raise what those of `f` raise, and InputError for dtypes that the wire lacks.
    """

    @functools.wraps(f)
    def call(*args: Any, **kwargs: Any) -> Any:
        recorded, to, given = f.mapped_for(TORCH, args, kwargs)
        return recorded.structure.build(iter(applied(to, given)))

    return call


def applied(
    to: Map, values: Sequence[Any], pull: Pull | None = None, anchor: torch.Tensor | None = None
) -> tuple[torch.Tensor, ...]:
    """The outputs of a map, of which PyTorch knows the derivatives.

    `pull` is how these are computed, by default by the map's pullback, differentiably. PyTorch asks for them where a
    value requires them, or `anchor` does.
    """
    wrt = tuple(
        place
        for place, (value, known) in enumerate(zip(values, to.inputs, strict=True))
        if torch.is_grad_enabled() and isinstance(value, torch.Tensor) and value.requires_grad and known.is_float
    )
    outputs: tuple[torch.Tensor, ...] = _Remote.apply(to, wrt, pull, anchor, *values)
    return outputs


def _pulled(to: Map, wrt: Places, values: Sequence[Any], cotangents: Sequence[torch.Tensor]) -> Sequence[torch.Tensor]:
    return applied(to.pullback(wrt), [*values, *cotangents])


class _Remote(torch.autograd.Function):  # type: ignore[misc] # without PyTorch installed, it has no type
    """A map that a server computes."""

    @staticmethod
    def forward(
        ctx: Any,
        to: Map,
        wrt: Places,
        pull: Pull | None,
        anchor: torch.Tensor | None,  # noqa: ARG004 - PyTorch looks whether it requires a gradient
        *values: Any,
    ) -> tuple[torch.Tensor, ...]:
        has_gradients = to.is_scalar and bool(wrt) and pull is None
        arrays = (to.with_gradients(wrt) if has_gradients else to)([*map(as_fed, values)])
        results = [as_tensor(array, device_of(values)) for array in arrays]
        outputs, gradients = results[: len(to.outputs)], results[len(to.outputs) :]
        ctx.mark_non_differentiable(*(output for output in outputs if not output.is_floating_point()))
        tensors = [value for value in values if isinstance(value, torch.Tensor)]
        ctx.save_for_backward(*tensors, *gradients)
        ctx.tensor_count = len(tensors)
        ctx.others = [None if isinstance(value, torch.Tensor) else value for value in values]
        ctx.map, ctx.wrt, ctx.pull = to, wrt, pull or _pulled
        return tuple(outputs)

    @staticmethod
    def backward(ctx: Any, *cotangents: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        tensors, gradients = ctx.saved_tensors[: ctx.tensor_count], ctx.saved_tensors[ctx.tensor_count :]
        if gradients and not torch.is_grad_enabled():
            products: Sequence[torch.Tensor] = [cotangents[0] * gradient for gradient in gradients]
        else:
            left = iter(tensors)
            values = [next(left) if other is None else other for other in ctx.others]
            of_floats = [each for each, output in zip(cotangents, ctx.map.outputs, strict=True) if output.is_float]
            products = ctx.pull(ctx.map, ctx.wrt, values, of_floats)
        found = dict(zip(ctx.wrt, products, strict=True))
        return (None, None, None, None, *(found.get(place) for place in range(len(ctx.others))))
