"""PyTorch layers whose parameters stay on the server."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch

from gradserve_client.errors import InputError
from gradserve_client.recording.arguments import NUMPY
from gradserve_client.recording.function import Function, function
from gradserve_client.recording.maps import Map, Positions
from gradserve_client.resident import Resident
from gradserve_client.torch.arrays import TORCH, as_feed, as_tensor, device_of
from gradserve_client.torch.layer import apply_map


class ResidentModule(torch.nn.Module):  # type: ignore[misc] # PyTorch has no types where it is not installed
    """A layer whose parameters are resident tensors. Neither they nor their gradients are transferred.

        hidden = ResidentModule(
            gs.function(lambda x, w, b: xp.tanh(x @ w + b), client=client),
            {"w": client.put("hidden.w", w), "b": client.put("hidden.b", b)},
            update=lambda parameter, gradient, rate: parameter - rate * gradient,
        )
        loss(hidden(x)).backward()
        hidden.step(0.1)

    `f` takes the parameters by name. The backward pass adds their gradients to tensors on the server, named like
    `hidden.w.grad`. `step` makes the server compute `update`, which is recorded, for every parameter, and store the
    results: either all of them or none. If `update` needs `states`, such as running averages, it takes them after the
    gradient and returns them after the parameter. They are tensors named like `hidden.w.m`, initially zero.

    Only first-order derivatives are supported.
    """

    def __init__(
        self, f: Function, residents: Mapping[str, Resident], *, update: Callable[..., Any], states: Sequence[str] = ()
    ) -> None:
        super().__init__()
        self.residents = {name: _with_type(f, handle) for name, handle in residents.items()}
        self._f = f
        self._states = {name: [_zeros(f, handle, state) for state in states] for name, handle in self.residents.items()}
        self._update = function(_update_all(update), client=f.client)
        self._has_gradients = False
        self._steps = 0
        #: requires a gradient so that PyTorch runs the backward pass even if no input does
        self._anchor = torch.zeros(0, requires_grad=True)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Evaluate the function with the current parameters on the server."""
        recorded, map_, values = self._f.map_for(TORCH, args, {**kwargs, **self.residents})
        pull = functools.partial(self._pull, self._steps)
        return recorded.structure.build(iter(apply_map(map_, values, pull, self._anchor)))

    def step(self, *args: Any) -> None:
        """Update all parameters, passing `args` to `update` last. Raises InputError if there are no gradients yet."""
        if not self._has_gradients:
            raise InputError("there are no gradients for a step: call backward() first")
        gradients = {name: _companion(handle, "grad") for name, handle in self.residents.items()}
        recorded, map_, values = self._update.map_for(NUMPY, (self.residents, gradients, self._states, *args), {})
        targets = [each for name, handle in self.residents.items() for each in (handle, *self._states[name])]
        types = [(each.dtype.name, each.shape) for each in recorded.outputs]
        if types != [(each.dtype, each.shape) for each in targets]:
            raise InputError(
                f"the update returns {types}, but must return values for {', '.join(each.name for each in targets)}"
            )
        map_.call_and_store(values, [each.name for each in targets])
        self._has_gradients = False
        self._steps += 1

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Discard the gradients."""
        super().zero_grad(set_to_none)
        self._has_gradients = False

    def fetched(self) -> dict[str, torch.Tensor]:
        """Download the current parameters."""
        cpu = torch.device("cpu")
        return {name: as_tensor(self._f.client.get(handle).array, cpu) for name, handle in self.residents.items()}

    def _pull(
        self, steps: int, map_: Map, wrt: Positions, values: Sequence[Any], cotangents: Sequence[torch.Tensor]
    ) -> Sequence[torch.Tensor]:
        """Return the gradients that PyTorch needs, and add the gradients of the parameters to those on the server."""
        if steps != self._steps:
            raise InputError("a step was taken since the value was computed, so the parameters have changed")
        if torch.is_grad_enabled():
            raise InputError("the gradients of resident parameters are stored and cannot be differentiated again")
        own = {handle.name for handle in self.residents.values()}
        positions = tuple(i for i, value in enumerate(values) if isinstance(value, Resident) and value.name in own)
        gradients = [_companion(values[position], "grad") for position in positions]
        pullback, operands = map_.pullback((*wrt, *positions)), [*values, *cotangents]
        if self._has_gradients:
            pullback, operands = (
                pullback.with_summands(tuple(range(len(wrt), len(wrt) + len(positions)))),
                [*operands, *gradients],
            )
        # the gradients of inputs come back as arrays, those of parameters are stored under these names
        names = [*(None for _ in wrt), *(gradient.name for gradient in gradients)]
        arrays = pullback.call_and_store([*map(as_feed, operands)], names)
        self._has_gradients = True
        return [as_tensor(array, device_of(values)) for array in arrays]


def _with_type(f: Function, handle: Resident) -> Resident:
    """Return a handle that has a dtype and a shape, as those of `put` have but those of `store` may not."""
    return handle if handle.dtype and handle.shape is not None else f.client.get(handle).handle


def _companion(handle: Resident, suffix: str) -> Resident:
    """Return a handle for a tensor of the same type whose name has this suffix."""
    return Resident(f"{handle.name}.{suffix}", "", handle.dtype, handle.shape)


def _zeros(f: Function, handle: Resident, state: str) -> Resident:
    assert handle.shape is not None
    return f.client.put(f"{handle.name}.{state}", np.zeros(handle.shape, handle.dtype))


def _update_all(update: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that updates all parameters, with results in the order in which they are stored."""

    def updated(parameters: Any, gradients: Any, states: Any, *args: Any) -> Any:
        return [update(parameters[name], gradients[name], *states[name], *args) for name in parameters]

    return updated
