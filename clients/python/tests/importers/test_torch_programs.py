"""PyTorch programs as graphs: values, buffers, and gradients of all parameters and inputs, in float64."""

from __future__ import annotations

import pytest

import gradserve_client as gs

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

from clients.python.tests.importers import torch_programs_more  # noqa: E402, F401 - it needs PyTorch, and adds to PROGRAMS
from clients.python.tests.importers.torch_made import check_match  # noqa: E402
from clients.python.tests.importers.torch_programs import PROGRAMS  # noqa: E402


@pytest.mark.parametrize("name", PROGRAMS)
def test_program_agrees_with_pytorch(name: str, client: gs.Client) -> None:
    module, args = PROGRAMS[name]()
    model = check_match(client, module, args)
    trained = {name for name, parameter in module.named_parameters() if parameter.requires_grad}
    assert {*model.parameters} == trained


def test_at_least_40_programs() -> None:
    assert len(PROGRAMS) >= 40
