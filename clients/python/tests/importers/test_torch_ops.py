"""Each rule for a PyTorch op agrees with PyTorch: dtype, shape, values, and gradients of its operands."""

from __future__ import annotations

from typing import Any

import pytest

import gradserve_client as gs

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

from clients.python.tests.importers.torch_cases import REAL_CASES  # noqa: E402 - it needs PyTorch
from clients.python.tests.importers.torch_complex_cases import COMPLEX_CASES  # noqa: E402
from clients.python.tests.importers.torch_layers import LAYERS, Recurrent  # noqa: E402
from clients.python.tests.importers.torch_made import check_match  # noqa: E402
from clients.python.tests.importers.torch_position_cases import POSITION_CASES  # noqa: E402
from gradserve_client.torch.rules import RULES  # noqa: E402

#: number of programs that are imported as one, since an import takes a second
_TOGETHER = 12
CASES = {name: [*cases, *COMPLEX_CASES.get(name, ())] for name, cases in {**REAL_CASES, **POSITION_CASES}.items()}
EACH = [(name, place) for name, cases in CASES.items() for place in range(len(cases))]
LAYERED = [(name, place) for name, cases in LAYERS.items() for place in range(len(cases))]


class Several(torch.nn.Module):
    """Programs side by side, each with its own arguments."""

    def __init__(self, functions: dict[str, Any]) -> None:
        super().__init__()
        self.functions = functions

    def forward(self, arguments: dict[str, list[Any]]) -> dict[str, Any]:
        return {name: f(*arguments[name]) for name, f in self.functions.items()}


def together(which: list[tuple[str, int]]) -> tuple[torch.nn.Module, list[Any]]:
    cases = {f"{name.replace('.', '_')}_{place}": CASES[name][place] for name, place in which}
    return Several({name: f for name, (f, _) in cases.items()}), [{name: [*args] for name, (_, args) in cases.items()}]


@pytest.mark.filterwarnings("ignore:index_reduce:UserWarning")
@pytest.mark.parametrize("start", range(0, len(EACH), _TOGETHER))
def test_rules_agree_with_pytorch(start: int, client: gs.Client) -> None:
    which = EACH[start : start + _TOGETHER]
    module, args = together(which)
    model = check_match(client, module, args)
    missing = {name for name, place in which if not place and name not in model.tally.occurrences}
    assert not missing


@pytest.mark.parametrize(("name", "place"), LAYERED)
def test_layers_agree_with_pytorch(name: str, place: int, client: gs.Client) -> None:
    kind, options, args = LAYERS[name][place]
    model = check_match(client, Recurrent(kind, options), args)
    assert name in model.tally.occurrences


def test_every_rule_has_a_case() -> None:
    assert {*RULES} == {name for name, cases in [*CASES.items(), *LAYERS.items()] if cases}
