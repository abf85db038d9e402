"""Layers of PyTorch whose parameters stay with the server."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch

from gradserve_client.errors import InputError
from gradserve_client.recording.arguments import NUMPY
from gradserve_client.recording.function import Function, function
from gradserve_client.recording.maps import Map, Places
from gradserve_client.resident import Resident
from gradserve_client.torch.arrays import TORCH, as_fed, as_tensor, device_of
from gradserve_client.torch.layer import applied


class ResidentModule(torch.nn.Module):  # type: ignore[misc] # PyTorch has no types where it is not installed
    """A layer whose parameters are resident tensors. Neither they nor their gradients travel.

        hidden = ResidentModule(
            gs.function(lambda x, w, b: xp.tanh(x @ w + b), client=client),
            {"w": client.put("hidden.w", w), "b": client.put("hidden.b", b)},
            update=lambda parameter, gradient, rate: parameter - rate * gradient,
        )
        loss(hidden(x)).backward()
        hidden.step(0.1)

    `f` takes them by their names. The way back adds up their gradients, as tensors called `hidden.w.grad`; `step` has
    the server take `update` of each, which is recorded, and store it: all of them, or none. Where `update` needs
    `states`, such as running averages, it takes them behind the gradient, and gives them back behind the parameter;
    they are tensors called `hidden.w.m`, zeros at first.

    Derivatives are of the first order.
    """

    def __init__(
        self, f: Function, residents: Mapping[str, Resident], *, update: Callable[..., Any], states: Sequence[str] = ()
    ) -> None:
        super().__init__()
        self.residents = {name: _typed(f, handle) for name, handle in residents.items()}
        self._f = f
        self._states = {name: [_zeros(f, handle, state) for state in states] for name, handle in self.residents.items()}
        self._update = function(_of_all(update), client=f.client)
        self._has_gradients = False
        self._steps = 0
        #: makes PyTorch come back here where nothing else would: no input may need a gradient
        self._anchor = torch.zeros(0, requires_grad=True)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """The function, with the parameters as they are on the server."""
        recorded, to, given = self._f.mapped_for(TORCH, args, {**kwargs, **self.residents})
        pull = functools.partial(self._pull, self._steps)
        return recorded.structure.build(iter(applied(to, given, pull, self._anchor)))

    def step(self, *args: Any) -> None:
        """Update all parameters; `update` takes `args` last. Raises InputError where there are no gradients yet."""
        if not self._has_gradients:
            raise InputError("there are no gradients to step by: they come with backward()")
        gradients = {name: _beside(handle, "grad") for name, handle in self.residents.items()}
        recorded, to, given = self._update.mapped_for(NUMPY, (self.residents, gradients, self._states, *args), {})
        kept = [each for name, handle in self.residents.items() for each in (handle, *self._states[name])]
        found = [(each.dtype.name, each.shape) for each in recorded.outputs]
        if found != [(each.dtype, each.shape) for each in kept]:
            raise InputError(f"the update gives {found}, where {', '.join(each.name for each in kept)} are to be kept")
        to.keep(given, [each.name for each in kept])
        self._has_gradients = False
        self._steps += 1

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the gradients."""
        super().zero_grad(set_to_none)
        self._has_gradients = False

    def fetched(self) -> dict[str, torch.Tensor]:
        """The parameters as they are now, which travel for that."""
        cpu = torch.device("cpu")
        return {name: as_tensor(self._f.client.get(handle).array, cpu) for name, handle in self.residents.items()}

    def _pull(
        self, steps: int, to: Map, wrt: Places, values: Sequence[Any], cotangents: Sequence[torch.Tensor]
    ) -> Sequence[torch.Tensor]:
        """The products that PyTorch needs; those by the parameters are kept, or added to what is kept already."""
        if steps != self._steps:
            raise InputError("a step was taken since the value was computed: the parameters are others by now")
        if torch.is_grad_enabled():
            raise InputError("the gradients of resident parameters are kept, and so cannot be differentiated again")
        own = {handle.name for handle in self.residents.values()}
        places = tuple(at for at, value in enumerate(values) if isinstance(value, Resident) and value.name in own)
        gradients = [_beside(values[place], "grad") for place in places]
        pullback, fed = to.pullback((*wrt, *places)), [*values, *cotangents]
        if self._has_gradients:
            pullback, fed = pullback.plus(tuple(range(len(wrt), len(wrt) + len(places)))), [*fed, *gradients]
        names = [*(None for _ in wrt), *(gradient.name for gradient in gradients)]
        arrays = pullback.keep([*map(as_fed, fed)], names)
        self._has_gradients = True
        return [as_tensor(array, device_of(values)) for array in arrays]


def _typed(f: Function, handle: Resident) -> Resident:
    """A handle that says dtype and shape: as of `put`, but not of `store`."""
    return handle if handle.dtype and handle.shape is not None else f.client.get(handle).handle


def _beside(handle: Resident, what: str) -> Resident:
    """What belongs to a tensor, and is like it."""
    return Resident(f"{handle.name}.{what}", "", handle.dtype, handle.shape)


def _zeros(f: Function, handle: Resident, state: str) -> Resident:
    assert handle.shape is not None
    return f.client.put(f"{handle.name}.{state}", np.zeros(handle.shape, handle.dtype))


def _of_all(update: Callable[..., Any]) -> Callable[..., Any]:
    """An update of one parameter as that of all, whose arrays are in the order in which they are kept."""

    def updated(parameters: Any, gradients: Any, states: Any, *args: Any) -> Any:
        return [update(parameters[name], gradients[name], *states[name], *args) for name in parameters]

    return updated
