"""Imported PyTorch modules: properties that torch.export would lose, and attributes besides the graph."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import gradserve_client as gs

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

from torch import nn  # noqa: E402 - it needs PyTorch

from clients.python.tests.importers import torch_programs_more  # noqa: E402, F401 - it adds to PROGRAMS
from clients.python.tests.importers.torch_made import Of, check_match, normal, seeded  # noqa: E402
from clients.python.tests.importers.torch_programs import PROGRAMS, composed  # noqa: E402
from gradserve_client.importing import ImportRefused  # noqa: E402
from gradserve_client.torch import import_module  # noqa: E402

X = normal(3, 4)


def gradient(client: gs.Client, model: Any, x: torch.Tensor) -> np.ndarray:
    """The gradient of the sum of the first output with respect to the only input."""
    target = next(iter(model.outputs.values())).sum()
    node = model.inputs[next(iter(model.inputs))]
    return client.gradients(model.graph, model.feeds({node.name: x.numpy()}), of=target, wrt=[node]).gradients[node]


def test_detach_stops_the_gradient(client: gs.Client) -> None:
    model = import_module(Of(lambda x: x * x.detach()), [X])
    assert [node.op for node in model.graph] == ["input", "stop_gradient", "mul"]
    check_match(client, Of(lambda x: x * x.detach()), [X])
    assert np.array_equal(gradient(client, model, X), X.numpy())
    check_match(client, Of(lambda x: x + (x.round() - x).detach()), [X])


def test_no_grad_stops_the_gradient(client: gs.Client) -> None:
    def forward(self: Any, x: torch.Tensor) -> torch.Tensor:
        with torch.no_grad():
            scale = self.net(x).mean()
            with torch.enable_grad():
                inner = self.net(x).sum()
        return self.net(x) * scale + inner

    module = composed(forward, lambda: {"net": nn.Linear(4, 4)})
    model = check_match(client, module, [X])
    assert "stop_gradient" in {node.op for node in model.graph}


def test_module_under_no_grad_has_zero_gradients(client: gs.Client) -> None:
    model = import_module(Of(torch.no_grad()(lambda x: x.sin() + 0)), [X])
    assert not gradient(client, model, X).any()


def test_import_under_no_grad_is_the_same() -> None:
    module = seeded(lambda: nn.Linear(4, 2))
    with torch.no_grad():
        model = import_module(module, [X])
    assert {*model.parameters} == {"weight", "bias"}
    assert "stop_gradient" not in {node.op for node in model.graph}


def test_tied_weights_are_one_leaf_with_a_note(client: gs.Client) -> None:
    module, args = PROGRAMS["tied_language_model"]()
    model = check_match(client, module, args)
    assert "tokens.weight" in model.parameters
    assert "head.weight" not in model.leaves
    assert [str(note) for note in model.notes if note.kind == "leaf"] == [
        (
            "tokens.weight (2×): one tensor under the names 'tokens.weight' and 'head.weight': one leaf, whose "
            "gradient is the sum over its uses"
        )
    ]


def test_xlogy_is_one_call_with_pytorchs_gradient_at_0(client: gs.Client) -> None:
    x, y = torch.tensor([0.0, 0.0, 0.5, 0.0]).double(), torch.tensor([0.0, 2.0, 0.3, -1.0]).double()
    check_match(client, Of(torch.xlogy), [x, y])
    model = import_module(Of(torch.xlogy), [x, y])
    assert [node.op for node in model.graph] == ["input", "input", "call", "get_output"]
    check_match(client, Of(lambda x: torch.xlogy(x, 3.0)), [x])


def test_running_statistics_are_outputs(client: gs.Client) -> None:
    module = seeded(lambda: nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3, momentum=0.3)))
    model = check_match(client, module, [X])
    assert {*model.state} == {"1.running_mean", "1.running_var", "1.num_batches_tracked"} == {*model.buffers}
    answer = client.forward(model.graph, model.feeds({"input": X.numpy()}), outputs=[*model.buffers.values()])
    module(X)
    for name, node in model.buffers.items():
        assert np.allclose(answer.values[node], module.get_buffer(name).numpy(), atol=1e-12)
    evaluated = check_match(client, module.eval(), [X])
    assert not evaluated.buffers
    assert {*evaluated.state} == {"1.running_mean", "1.running_var"}


class Averaging(nn.Module):
    """A running mean that is updated under no_grad."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(4, dtype=torch.float64))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        with torch.no_grad():
            self.mean.mul_(0.9).add_(0.1 * x.mean(0))
        return (x - self.mean).square()


def test_buffer_updated_under_no_grad(client: gs.Client) -> None:
    model = check_match(client, Averaging(), [X])
    assert [*model.buffers] == ["mean"]


def test_float32_parts_stay_in_a_float64_model(client: gs.Client) -> None:
    class Narrow(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.tenth = torch.tensor(0.1)
            self.w = nn.Parameter(torch.tensor([1.0, 0.3, 0.7, 0.1]))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x * self.tenth + (x.float() * self.w).double() + 0.1

    model = check_match(client, Narrow(), [X])
    assert model.values["w"].dtype == np.float32
    constants = [node.attrs["value"] for node in model.graph if node.op == "constant"]
    assert float(np.float32(0.1)) in [float(each) for each in constants if not each.shape]


def test_one_tensor_for_two_arguments_becomes_two_inputs(client: gs.Client) -> None:
    model = import_module(Of(lambda x, y: x * y.sin()), [X, X])
    assert len(model.inputs) == 2
    check_match(client, Of(lambda x, y: x * y.sin()), [X, X + 1], model=model)


def test_parameters_have_names_and_frozen_ones_are_state(client: gs.Client) -> None:
    module = seeded(lambda: nn.Sequential(nn.Linear(4, 3), nn.Linear(3, 2)))
    module[0].requires_grad_(False)
    module.unused = nn.Parameter(torch.zeros(2))
    model = check_match(client, module, [X])
    assert [*model.parameters] == ["1.weight", "1.bias"]
    assert [*model.state] == ["0.weight", "0.bias"]
    assert [str(note) for note in model.notes] == [
        "0.weight: it requires no gradient, so it is state",
        "0.bias: it requires no gradient, so it is state",
        "unused: no output needs it, so it is not a leaf of the graph",
    ]
    assert np.array_equal(model.values["1.bias"], module[1].bias.numpy(force=True))
    assert model.graph.find("1.bias") is model.parameters["1.bias"]


def test_nested_arguments_and_results_have_names(client: gs.Client) -> None:
    class Nested(nn.Module):
        def forward(self, x: Any, pair: Any, *, scale: Any, power: int = 2) -> Any:
            return {"sum": x + pair[0], "more": (pair[1]["a"] * scale, x**power), "count": 3}

    args, kwargs = [X, (X + 1, {"a": X + 2})], {"scale": X + 3, "power": 3}
    model = check_match(client, Nested(), args, kwargs)
    assert [*model.inputs] == ["x", "pair_0", "pair_1_a", "scale"]
    assert [*model.outputs] == ["sum", "more.0", "more.1"]
    assert [str(note) for note in model.notes] == [
        "power: it is 3 in the graph, since it is not a tensor",
        "count: it is 3, which is neither a tensor nor an output",
    ]
    assert [*import_module(Of(lambda x: x.sin()), [X]).outputs] == ["output"]
    assert [*import_module(Of(lambda x: (x.sin(), x.cos())), [X]).outputs] == ["output.0", "output.1"]


def test_op_of_several_nodes_is_noted() -> None:
    model = import_module(Of(lambda x: nn.functional.hardswish(x)), [X])
    assert [str(note) for note in model.notes] == [
        "hardswish: becomes 7 nodes: add_scalar, div_scalar, mul, greater_equal, 2 where, less_equal"
    ]
    assert model.tally.occurrences == {"hardswish": 1}


def test_supported_ops_are_not_decomposed() -> None:
    module, args = PROGRAMS["transformer_encoder"]()
    ops = [node.op for node in import_module(module, args).graph]
    assert ops.count("attention") == 1
    assert ops.count("layer_norm") == 2
    assert ops.count("gelu") == 1
    assert ops.count("mlp_layer") == 4
    module, args = PROGRAMS["lstm_that_classifies"]()
    assert [node.op for node in import_module(module, args).graph].count("scan") == 4


def test_second_example_frees_an_extent(client: gs.Client) -> None:
    module = seeded(
        lambda: nn.Sequential(
            nn.Conv2d(2, 4, 3),
            nn.BatchNorm2d(4),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.GroupNorm(2, 4),
            nn.Flatten(),
            nn.Linear(36, 3),
        )
    )
    images = [normal(n, 2, 8, 8) for n in (2, 5, 3)]
    model = import_module(module, [images[0]], free={"input": [0]}, second=[images[1]])
    assert model.inputs["input"].attrs["shape"] == [-1, 2, 8, 8]
    check_match(client, module, [images[2]], model=model)


def test_attention_with_a_free_batch_extent(client: gs.Client) -> None:
    module, _ = PROGRAMS["rotary_attention"]()
    model = import_module(module, [normal(2, 5, 8)], free={"x": [0]}, second=[normal(3, 5, 8)])
    check_match(client, module, [normal(7, 5, 8)], model=model)


def test_free_extent_inside_a_node_is_refused() -> None:
    with pytest.raises(ImportRefused, match="with the second example"):
        import_module(
            Of(lambda x: x + torch.arange(x.shape[0])[:, None]), [X], free={"args_0": [0]}, second=[normal(5, 4)]
        )
    with pytest.raises(gs.InputError, match="is free, but both examples have the extent 3 there"):
        import_module(Of(torch.sin), [X], free={"args_0": [0]}, second=[X])
    with pytest.raises(gs.InputError, match="'z' is not an input of the model"):
        import_module(Of(torch.sin), [X], free={"z": [0]}, second=[normal(5, 4)])


def test_weights_are_trained_on_the_server(client: gs.Client) -> None:
    module = seeded(lambda: nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1)))
    model = import_module(module, [X])
    loss = model.outputs["output"].square().mean()
    store = {p - 0.1 * loss.grad(p): gs.Store(f"kept.{name}") for name, p in model.parameters.items()}
    graph, residents = model.register(client), model.keep(client, "kept")
    for _ in range(3):
        value = graph.forward({**residents, model.inputs["input"]: X.numpy()}, outputs=[loss], store=store).value
    optimiser = torch.optim.SGD(module.parameters(), 0.1)
    for _ in range(3):
        optimiser.zero_grad()
        expected = module(X).square().mean()
        expected.backward()
        optimiser.step()
    assert np.isclose(value, expected.item(), rtol=1e-12)


def test_module_is_left_unchanged() -> None:
    module = seeded(lambda: nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3)))
    before = {name: each.clone() for name, each in module.state_dict().items()}
    import_module(module, [X])
    assert module.training
    assert all(torch.equal(before[name], each) for name, each in module.state_dict().items())


def test_bridge_does_not_load_the_importer() -> None:
    program = (
        "import sys, gradserve_client.torch as t; print('gradserve_client.torch.rules' in sys.modules, t.import_module)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("False <function import_module")
