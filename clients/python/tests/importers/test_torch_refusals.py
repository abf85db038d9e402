"""Refused PyTorch imports: all obstacles at once, each with op, count, places, reason and workaround."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import gradserve_client as gs

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

from torch import nn  # noqa: E402 - it needs PyTorch
from torch.nn import functional as F  # noqa: E402

from clients.python.tests import torch_ops  # noqa: E402
from clients.python.tests.importers.torch_made import Of, normal  # noqa: E402
from gradserve_client.importing import ImportLimits, ImportRefused  # noqa: E402
from gradserve_client.torch import import_module  # noqa: E402
from gradserve_client.torch.families.unsupported import UNSUPPORTED  # noqa: E402
from gradserve_client.torch.rules import RULES  # noqa: E402

X = normal(3, 4)


def refused(module: Any, *args: Any) -> ImportRefused:
    with pytest.raises(ImportRefused) as caught:
        import_module(module if isinstance(module, nn.Module) else Of(module), args or [X])
    return caught.value


class Noisy(nn.Module):
    """A net with three obstacles."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5), nn.Linear(4, 4), nn.Dropout(0.5))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.net(x) + torch.randn_like(x)
        return torch.fft.rfft(y).tan().abs()


def test_all_obstacles_are_reported_at_once() -> None:
    error = refused(Noisy().double())
    line = next(i for i, text in enumerate(Path(__file__).read_text().splitlines(), 1) if "rfft" in text)
    drops = "in training it is random; a graph cannot use PyTorch's random number generator"
    assert str(error) == (
        "cannot import the module Noisy because of 3 obstacles:\n"
        f"  native_dropout (2 times, at 'net.1', test_torch_refusals.py:{line - 1}, "
        f"'net.3', test_torch_refusals.py:{line - 1}): "
        f"{drops}; call module.eval(), or multiply by a mask that is an input\n"
        f"  randn_like (at test_torch_refusals.py:{line - 1}): it is random; a graph cannot use PyTorch's random "
        "number generator; pass the noise as an input of the module\n"
        f"  tan (at test_torch_refusals.py:{line}): no op computes it for complex numbers; "
        "write it with separate real and imaginary parts"
    )


class Cubed(torch.autograd.Function):
    """x³ with a custom backward."""

    @staticmethod
    def forward(_: Any, x: torch.Tensor) -> torch.Tensor:
        return x**3

    @staticmethod
    def backward(_: Any, g: torch.Tensor) -> torch.Tensor:
        return 7 * g


def _hooked(x: torch.Tensor) -> torch.Tensor:
    y = (x * 2).requires_grad_()
    y.register_hook(lambda g: 3 * g)
    return y.sin()


def _in_place_behind_detach(x: torch.Tensor) -> torch.Tensor:
    y = x.sin()
    z = y.detach()
    y.mul_(2)
    return y + z


def _in_place_without_gradients(x: torch.Tensor) -> torch.Tensor:
    y = x.sin()
    with torch.no_grad():
        y.mul_(2)
    return y


def _changed(x: torch.Tensor) -> torch.Tensor:
    return x.add_(1)


def _by_data(x: torch.Tensor) -> torch.Tensor:
    return x.sin() if x.sum() > 0 else x.cos()


def _conditional(x: torch.Tensor) -> torch.Tensor:
    return torch.cond(x.sum() > 0, torch.sin, torch.cos, (x,))


#: a program, and a pattern of op, reason and workaround in its refusal
CASES: dict[str, tuple[Callable[..., Any], str]] = {
    "noise": (lambda x: x + torch.randn(3, 4), "randn .*it is random.*pass the noise as an input"),
    "bernoulli": (lambda x: torch.bernoulli(x.sigmoid()), r"rand \(.* random"),
    "permutation": (lambda x: x[torch.randperm(3)], "randperm .*random"),
    "dropout": (lambda x: F.dropout(x), "dropout .*in training it is random.*module.eval"),
    "masks that select": (
        lambda x: x[x > 0],
        "the size of its result depends on the values|the result has no fixed size",
    ),
    "positions": (lambda x: torch.nonzero(x > 0).sum(), "nonzero .*the size of its result depends on"),
    "numbers": (lambda x: x * x.sum().item(), "_local_scalar_dense .*a Python number"),
    "complex": (lambda x: torch.complex(x, x).tan().abs(), "tan .*complex numbers.*real and imaginary parts"),
    "all vectors": (lambda x: torch.linalg.svd(x)[2], "_linalg_svd .*more singular vectors.*full_matrices=False"),
    "all columns": (
        lambda x: torch.linalg.qr(x.mT, "complete")[0],
        "linalg_qr .*more columns than the matrix.*reduced",
    ),
    "no exchanges": (lambda x: torch.linalg.lu(x, pivot=False), "linalg_lu .*does not exchange rows"),
    "bounds by themselves": (lambda x: torch.linalg.pinv(x, atol=0.5), "linalg_pinv.* not relative to the largest"),
    "bfloat16": (lambda x: x.bfloat16() * 2, "bfloat16, an unsupported dtype"),
    "own backward": (Cubed.apply, r"autograd.Function Cubed \(at .*\): it has a custom backward"),
    "hooks": (_hooked, "hook .*changes gradients"),
    "in place behind detach": (_in_place_behind_detach, r"mul_.Tensor .*changed in place while a detached tensor"),
    "in place without gradients": (_in_place_without_gradients, r"mul_.Tensor .*while gradients are disabled"),
    "in place on inputs": (_changed, "in place .*'args_0'.*return the new value"),
    "choices by data": (_by_data, r"if \(at test_torch_refusals.py:\d+\): .*depends on the values of the data"),
    "functions of its own": (_conditional, "cond .*runs functions of its own"),
    "written twice": (
        lambda x: x.index_put((torch.tensor([1, 1]),), torch.zeros(2, 4).double()),
        "index_put .*more than once",
    ),
    "no rule": (lambda x: torch.special.bessel_j0(x), "special_bessel_j0 .*there is no rule for it"),
    "orders of distances": (lambda x: torch.cdist(x, x + 1, p=torch.inf), "_cdist_forward .*order is inf"),
    "cubic sampling": (
        lambda x: F.grid_sample(
            x.reshape(1, 1, 3, 4), x[:2, :2].reshape(1, 2, 1, 2), mode="bicubic", align_corners=False
        ),
        "grid_sampler_2d .*cubic",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_refusal_has_an_op_and_a_reason(name: str) -> None:
    f, pattern = CASES[name]
    assert re.search(pattern, str(refused(f))), str(refused(f))


def test_module_hook_is_refused() -> None:
    module = nn.Sequential(nn.Linear(4, 2)).double()
    module[0].register_full_backward_hook(lambda *_: None)
    assert "hook (at '0')" in str(refused(module))
    module = nn.Linear(4, 2).double()
    module.weight.register_hook(lambda g: 2 * g)
    assert "hook (at 'weight')" in str(refused(module))


def test_dropout_between_layers_is_refused() -> None:
    layer = nn.LSTM(4, 2, 2, dropout=0.3).double()
    assert "lstm.input" in str(refused(layer, X))
    assert import_module(layer.eval(), [X]).outputs


def test_untraceable_module_is_an_input_error() -> None:
    with pytest.raises(gs.InputError, match=r"torch\.export cannot trace the module Of: "):
        import_module(Of(lambda x: x @ x), [X])


def test_older_pytorch_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "__version__", "2.12.1")
    with pytest.raises(gs.InputError, match=r"requires PyTorch 2\.13 or newer, not 2\.12\.1"):
        import_module(Of(torch.sin), [X])


@pytest.mark.parametrize("limit", ["nodes", "steps", "bytes"])
def test_module_beyond_the_limits_is_refused(limit: str) -> None:
    def repeated(x: torch.Tensor) -> torch.Tensor:
        for _ in range(50):
            x = x.sin() + torch.arange(4)
        return x

    with pytest.raises(ImportRefused, match=rf"the import would exceed its limit of 40 {limit}"):
        import_module(Of(repeated), [X], limits=ImportLimits(**{limit: 40}))
    assert import_module(Of(repeated), [X]).outputs


def test_every_core_op_has_a_rule_or_a_reason() -> None:
    assert torch_ops.left() == []
    assert not {*RULES} & {*UNSUPPORTED}


def test_page_is_current() -> None:
    assert torch_ops.PAGE.read_text(encoding="utf-8") == torch_ops.page()
