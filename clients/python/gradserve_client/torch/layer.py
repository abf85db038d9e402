"""Recorded functions as operations of PyTorch."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import torch

from gradserve_client.recording.function import Function
from gradserve_client.recording.maps import Map
from gradserve_client.torch.arrays import TORCH, as_fed, as_tensor


def layer(f: Function) -> Callable[..., Any]:
    """A recorded function that takes tensors of PyTorch and gives tensors, differentiable to any order.

        loss = layer(f)(x, w)
        loss.backward()

    It is called with what `f` is called with. Derivatives are by the tensors that require them. Where `f` gives one
    float, its gradients come with the value, in one call; else they are another call, on the way back.

    The tensors that it gives are on the device of the first that it was given. Calls raise what those of `f` raise.
    """

    @functools.wraps(f)
    def call(*args: Any, **kwargs: Any) -> Any:
        recorded, given = f.recorded_for(TORCH, args, kwargs)
        return recorded.structure.build(iter(applied(recorded.map, given)))

    return call


def applied(to: Map, values: Sequence[Any]) -> tuple[torch.Tensor, ...]:
    """The outputs of a map, of which PyTorch knows the derivatives."""
    wrt = tuple(
        place
        for place, (value, known) in enumerate(zip(values, to.inputs, strict=True))
        if torch.is_grad_enabled() and isinstance(value, torch.Tensor) and value.requires_grad and known.is_float
    )
    outputs: tuple[torch.Tensor, ...] = _Remote.apply(to, wrt, *values)
    return outputs


class _Remote(torch.autograd.Function):  # type: ignore[misc] # PyTorch has no types where it is not installed
    """A map; its derivative is another one, to which this applies again where that is to be differentiated."""

    @staticmethod
    def forward(ctx: Any, to: Map, wrt: tuple[int, ...], *values: Any) -> tuple[torch.Tensor, ...]:
        tensors = [value for value in values if isinstance(value, torch.Tensor)]
        device = tensors[0].device if tensors else torch.device("cpu")
        has_gradients = to.is_scalar and bool(wrt)
        arrays = (to.with_gradients(wrt) if has_gradients else to)([*map(as_fed, values)])
        results = [as_tensor(array, device) for array in arrays]
        outputs, gradients = results[: len(to.outputs)], results[len(to.outputs) :]
        ctx.mark_non_differentiable(*(result for result in outputs if not result.is_floating_point()))
        ctx.map, ctx.wrt = to, wrt
        ctx.others = [None if isinstance(value, torch.Tensor) else value for value in values]
        ctx.save_for_backward(*tensors, *gradients)
        ctx.tensor_count = len(tensors)
        return tuple(outputs)

    @staticmethod
    def backward(ctx: Any, *cotangents: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        tensors, gradients = ctx.saved_tensors[: ctx.tensor_count], ctx.saved_tensors[ctx.tensor_count :]
        if gradients and not torch.is_grad_enabled():
            products = [cotangents[0] * gradient for gradient in gradients]
        else:
            left = iter(tensors)
            values = [next(left) if other is None else other for other in ctx.others]
            weights = [each for each, output in zip(cotangents, ctx.map.outputs, strict=True) if output.is_float]
            products = applied(ctx.map.pullback(ctx.wrt), [*values, *weights])
        found = dict(zip(ctx.wrt, products, strict=True))
        return (None, None, *(found.get(place) for place in range(len(ctx.others))))
