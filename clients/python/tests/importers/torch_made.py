"""PyTorch modules compared with their graphs on a server: values, gradients, buffers."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np
import torch

import gradserve_client as gs
from gradserve_client.importing import Imported
from gradserve_client.torch import import_module

#: tolerance of values and gradients near 1
TOLERANCE: Final = 1e-9


class Of(torch.nn.Module):
    """A function as a module without parameters."""

    def __init__(self, f: Callable[..., Any]) -> None:
        super().__init__()
        self.f = f

    def forward(self, *args: Any) -> Any:
        return self.f(*args)


def normal(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float64) -> torch.Tensor:
    """Normal numbers."""
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=dtype)


def seeded(build: Callable[[], torch.nn.Module], seed: int = 0) -> torch.nn.Module:
    """A float64 module, its parameters drawn from a seed."""
    torch.manual_seed(seed)
    return build().double()


def weights_of(shape: Sequence[int]) -> np.ndarray:
    """Distinct weights, so that errors cannot cancel in a sum."""
    return np.cos(1.0 + np.arange(int(np.prod(shape)))).reshape(shape)


def check_match(
    client: gs.Client,
    module: torch.nn.Module,
    args: Sequence[Any],
    kwargs: Mapping[str, Any] | None = None,
    model: Imported | None = None,
) -> Imported:
    """Check that a module's graph has PyTorch's outputs, buffers and gradients, and return the import.

    The loss is the sum of all float outputs, each times `weights_of`. Gradients are with respect to all parameters and
    float inputs.
    """
    kwargs = kwargs or {}
    model = model or import_module(module, args, kwargs)
    own = copy.deepcopy(module)
    tensors = torch.utils._pytree.tree_leaves((tuple(args), dict(kwargs)))
    leaves = [
        each.detach().clone().requires_grad_(each.is_floating_point() or each.is_complex())
        if isinstance(each, torch.Tensor)
        else each
        for each in tensors
    ]
    spec = torch.utils._pytree.tree_structure((tuple(args), dict(kwargs)))
    positional, named = torch.utils._pytree.tree_unflatten(leaves, spec)
    results = [
        each for each in torch.utils._pytree.tree_leaves(own(*positional, **named)) if isinstance(each, torch.Tensor)
    ]
    inputs = [each for each in leaves if isinstance(each, torch.Tensor)]
    feeds = model.feeds({name: each.numpy(force=True) for name, each in zip(model.inputs, inputs, strict=True)})
    differences = [*_value_differences(client, model, feeds, results, own)]
    differences += _gradient_differences(client, model, feeds, results, own, inputs)
    assert not differences, "\n".join(differences)
    return model


def _value_differences(
    client: gs.Client, model: Imported, feeds: Any, results: Sequence[torch.Tensor], own: torch.nn.Module
) -> Iterator[str]:
    nodes = {**model.outputs, **{f"buffer {name}": node for name, node in model.buffers.items()}}
    answer = client.forward(model.graph, feeds, outputs=[*dict.fromkeys(nodes.values())])
    buffers = dict(own.named_buffers(remove_duplicate=False))
    expected = [*results, *(buffers[name] for name in model.buffers)]
    for (name, node), tensor in zip(nodes.items(), expected, strict=True):
        yield from _difference(name, answer.values[node], tensor.numpy(force=True))


def _gradient_differences(
    client: gs.Client,
    model: Imported,
    feeds: Any,
    results: Sequence[torch.Tensor],
    own: torch.nn.Module,
    inputs: Sequence[torch.Tensor],
) -> Iterator[str]:
    parts = [each for each in results if each.requires_grad]
    if not parts:
        return
    leaves = {name: each for name, each in zip(model.inputs, inputs, strict=True) if each.requires_grad}
    leaves |= {name: each for name, each in own.named_parameters() if name in model.parameters}
    counted = [part.real + 0.5 * part.imag if part.is_complex() else part for part in parts]
    loss = sum((part * torch.from_numpy(weights_of(part.shape)).to(part.dtype)).sum().double() for part in counted)
    assert isinstance(loss, torch.Tensor)
    expected = torch.autograd.grad(loss, [*leaves.values()], allow_unused=True)
    nodes = [{**model.inputs, **model.parameters}[name] for name in leaves]
    gradients = client.gradients(model.graph, feeds, of=_loss_of(model, results), wrt=nodes).gradients
    for name, node, one in zip(leaves, nodes, expected, strict=True):
        other = torch.zeros_like(leaves[name]) if one is None else one
        yield from _difference(f"gradient by {name}", gradients[node], other.resolve_conj().numpy())


def _loss_of(model: Imported, results: Sequence[torch.Tensor]) -> Any:
    graph, total = model.graph, None
    for node, tensor in zip(model.outputs.values(), results, strict=True):
        if tensor.requires_grad:
            weights = graph.constant(weights_of(tensor.shape).astype(str(tensor.real.dtype).removeprefix("torch.")))
            counted = node.real().add(node.imag().mul_scalar(0.5)) if tensor.is_complex() else node
            part = counted.mul(weights).sum().cast("float64")
            total = part if total is None else total.add(part)
    return total


def _difference(name: str, actual: np.ndarray, expected: np.ndarray) -> Iterator[str]:
    """The difference of an array from the expected one, if there is one."""
    if (actual.dtype, actual.shape) != (expected.dtype, expected.shape):
        yield f"{name} is {actual.dtype}{[*actual.shape]} in place of {expected.dtype}{[*expected.shape]}"
    elif actual.dtype.kind in "biu":
        if not (actual == expected).all():
            yield f"{name} is {actual.tolist()} in place of {expected.tolist()}"
    else:
        tolerance = TOLERANCE if actual.dtype in (np.float64, np.complex128) else 1e-5
        scale = max(1.0, float(np.max(np.abs(expected[np.isfinite(expected)]), initial=0.0)))
        if not np.allclose(actual, expected, rtol=tolerance, atol=tolerance * scale, equal_nan=True):
            yield f"{name} is off: {actual.reshape(-1)[:12]} in place of {expected.reshape(-1)[:12]}"
