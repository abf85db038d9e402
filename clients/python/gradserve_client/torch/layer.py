"""Recorded functions as PyTorch operations."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import torch

from gradserve_client.recording.function import Function
from gradserve_client.recording.maps import Map, Positions
from gradserve_client.torch.arrays import TORCH, as_feed, as_tensor, device_of

#: computes the cotangents of a map's inputs: (map, positions of the inputs, its values, cotangents of its outputs)
Pull = Callable[[Map, Positions, Sequence[Any], Sequence[torch.Tensor]], Sequence[torch.Tensor]]


def layer(f: Function) -> Callable[..., Any]:
    """Wrap a recorded function as a PyTorch operation that is differentiable to any order.

        loss = layer(f)(x, w)
        loss.backward()

    It takes the same arguments as `f`, and is differentiated with respect to the tensors that require gradients. If `f`
    returns one float, one request returns the value and its gradients. Otherwise the backward pass is a second request.
    Results are on the device of the first tensor argument.

    Calls raise the errors of `f`, and InputError for unsupported dtypes.
    """

    @functools.wraps(f)
    def call(*args: Any, **kwargs: Any) -> Any:
        recorded, map_, values = f.map_for(TORCH, args, kwargs)
        return recorded.structure.build(iter(apply_map(map_, values)))

    return call


def apply_map(
    map_: Map, values: Sequence[Any], pull: Pull | None = None, anchor: torch.Tensor | None = None
) -> tuple[torch.Tensor, ...]:
    """Apply a map so that PyTorch can differentiate the outputs, and return them.

    `pull` computes the backward pass; by default it is the map's pullback, which is differentiable itself. PyTorch runs
    it if one of the values or `anchor` requires gradients.
    """
    wrt = tuple(
        position
        for position, (value, value_type) in enumerate(zip(values, map_.inputs, strict=True))
        if torch.is_grad_enabled() and isinstance(value, torch.Tensor) and value.requires_grad and value_type.is_float
    )
    outputs: tuple[torch.Tensor, ...] = _Remote.apply(map_, wrt, pull, anchor, *values)
    return outputs


def _pull_back(
    map_: Map, wrt: Positions, values: Sequence[Any], cotangents: Sequence[torch.Tensor]
) -> Sequence[torch.Tensor]:
    return apply_map(map_.pullback(wrt), [*values, *cotangents])


class _Remote(torch.autograd.Function):  # type: ignore[misc] # without PyTorch installed, it has no type
    """A map that the server computes."""

    @staticmethod
    def forward(
        ctx: Any,
        map_: Map,
        wrt: Positions,
        pull: Pull | None,
        anchor: torch.Tensor | None,  # noqa: ARG004 - PyTorch looks whether it requires a gradient
        *values: Any,
    ) -> tuple[torch.Tensor, ...]:
        # one request computes a scalar and its gradients, so a first-order backward pass needs no other
        has_gradients = map_.is_scalar and bool(wrt) and pull is None
        arrays = (map_.with_gradients(wrt) if has_gradients else map_)([*map(as_feed, values)])
        results = [as_tensor(array, device_of(values)) for array in arrays]
        outputs, gradients = results[: len(map_.outputs)], results[len(map_.outputs) :]
        ctx.mark_non_differentiable(*(output for output in outputs if not output.is_floating_point()))
        tensors = [value for value in values if isinstance(value, torch.Tensor)]
        ctx.save_for_backward(*tensors, *gradients)
        ctx.tensor_count = len(tensors)
        # only tensors may be saved, so other values keep their positions in a list with None for tensors
        ctx.non_tensors = [None if isinstance(value, torch.Tensor) else value for value in values]
        ctx.map, ctx.wrt, ctx.pull = map_, wrt, pull or _pull_back
        return tuple(outputs)

    @staticmethod
    def backward(ctx: Any, *cotangents: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        tensors, gradients = ctx.saved_tensors[: ctx.tensor_count], ctx.saved_tensors[ctx.tensor_count :]
        # with create_graph=True the backward pass must be differentiable, which the saved gradients are not
        if gradients and not torch.is_grad_enabled():
            products: Sequence[torch.Tensor] = [cotangents[0] * gradient for gradient in gradients]
        else:
            remaining = iter(tensors)
            values = [next(remaining) if other is None else other for other in ctx.non_tensors]
            float_cotangents = [
                each for each, output in zip(cotangents, ctx.map.outputs, strict=True) if output.is_float
            ]
            products = ctx.pull(ctx.map, ctx.wrt, values, float_cotangents)
        by_position = dict(zip(ctx.wrt, products, strict=True))
        return (None, None, None, None, *(by_position.get(position) for position in range(len(ctx.non_tensors))))
