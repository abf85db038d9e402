"""ONNX models as graphs: values match ONNX's evaluator, gradients of all parameters match its differences."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest

import gradserve_client as gs

pytest.importorskip("onnx", reason="ONNX is not installed")

from clients.python.tests.importers.made import model, normal, outputs, slopes
from gradserve_client.onnx import import_model


class Case(NamedTuple):
    """A model, its initialisers, and inputs."""

    text: str
    initialisers: dict[str, np.ndarray]
    inputs: dict[str, np.ndarray]


RNG = np.random.default_rng(3)
CASES = {
    "mlp": Case(
        """mlp (double[5,4] x) => (double[5,2] y) {
            a = MatMul (x, w1)
            b = Add (a, b1)
            c = Tanh (b)
            n = LayerNormalization (c, scale, shift)
            d = Gemm (n, w2, b2)
            e = Celu <alpha = 0.5> (d)
            y = LogSoftmax (e)
        }""",
        normal(1, w1=(4, 6), b1=6, scale=6, shift=6, w2=(6, 2), b2=2),
        normal(2, x=(5, 4)),
    ),
    "conv net": Case(
        """conv_net (double[2,2,8,8] x) => (double[2,3] y) {
            a = Conv <pads = [1, 0, 1, 1], strides = [1, 1]> (x, k1, b1)
            n = BatchNormalization (a, scale, shift, mean, variance)
            r = Softplus (n)
            p = MaxPool <kernel_shape = [2, 2], strides = [2, 2]> (r)
            q = AveragePool <kernel_shape = [3, 3], pads = [1, 1, 1, 1]> (p)
            t = ConvTranspose <strides = [2, 2], output_padding = [1, 0]> (q, k2)
            g = GlobalAveragePool (t)
            f = Flatten (g)
            y = Gemm <transB = 1> (f, w)
        }""",
        normal(4, k1=(3, 2, 3, 3), b1=3, scale=3, shift=3, mean=3, k2=(3, 4, 2, 2), w=(3, 4))
        | {"variance": RNG.uniform(0.5, 2, 3)},
        normal(5, x=(2, 2, 8, 8)),
    ),
    "spectra": Case(
        """spectra (double[2,6,1] x) => (double[2,4,2] half, double[2,6,2] back, double[2,6,1] real, double d) {
            axis = Constant <value_int = 1> ()
            a = Mul (x, w)
            half = DFT <onesided = 1> (a, , axis)
            z = DFT (a, , axis)
            scaled = Mul (z, u)
            back = DFT <inverse = 1> (scaled, , axis)
            real = DFT <inverse = 1, onesided = 1> (half, , axis)
            d = Det (m)
        }""",
        normal(20, w=(2, 6, 1), u=(2, 6, 2), m=(3, 3)),
        normal(21, x=(2, 6, 1)),
    ),
    "frames": Case(
        """frames (double[2,10,1] x) => (double[2,4,3,2] y) {
            step = Constant <value_int = 2> ()
            a = Mul (x, w)
            y = STFT (a, step, window)
        }""",
        normal(22, w=(2, 10, 1), window=4),
        normal(23, x=(2, 10, 1)),
    ),
    "lstm": Case(
        """lstm (double[4,2,3] x) => (double[4,2,2,3] y, double[2,2,3] h, double[2,2,3] c) {
            y, h, c = LSTM <hidden_size = 3, direction = "bidirectional"> (x, w, r, b, , h0, c0, p)
        }""",
        normal(6, w=(2, 12, 3), r=(2, 12, 3), b=(2, 24), h0=(2, 2, 3), c0=(2, 2, 3), p=(2, 9)),
        normal(7, x=(4, 2, 3)),
    ),
    "gru": Case(
        """gru (double[4,2,3] x) => (double[4,1,2,3] y, double[1,2,3] h) {
            y, h = GRU <hidden_size = 3, direction = "reverse", linear_before_reset = 1> (x, w, r, b, , h0)
        }""",
        normal(8, w=(1, 9, 3), r=(1, 9, 3), b=(1, 18), h0=(1, 2, 3)),
        normal(9, x=(4, 2, 3)),
    ),
    "attention": Case(
        """attention (double[2,5,4] x) => (double[2,5,4] y) {
            q = MatMul (x, wq)
            k = MatMul (x, wk)
            v = MatMul (x, wv)
            a = Attention <q_num_heads = 2, kv_num_heads = 2, is_causal = 1> (q, k, v)
            y = MatMul (a, wo)
        }""",
        normal(10, wq=(4, 4), wk=(4, 4), wv=(4, 4), wo=(4, 4)),
        normal(11, x=(2, 5, 4)),
    ),
    "losses": Case(
        """losses (double[4,3,2] x, int64[4,2] labels) => (double loss) {
            g = Conv <pads = [1, 1]> (x, k)
            n = GroupNormalization <num_groups = 2, stash_type = 11> (g, scale, shift)
            loss = SoftmaxCrossEntropyLoss <ignore_index = 2> (n, labels, weights)
        }""",
        normal(21, k=(4, 3, 3), scale=4, shift=4) | {"weights": np.array([0.5, 1.0, 2.0, 0.75])},
        normal(22, x=(4, 3, 2)) | {"labels": np.array([[0, 1], [2, 3], [1, 1], [3, 0]])},
    ),
    "loop": Case(
        """loop (double[3] x) => (double[3] y, double[4,3] all) {
            m = Constant <value_int = 4> ()
            one = Constant <value_int = 1> ()
            on = Cast <to = 9> (one)
            y, all = Loop <body = step (int64 i, bool on, double[3] v) => (bool still, double[3] next, double[3] row) {
                still = Identity (on)
                d = Cast <to = 11> (i)
                t = Mul (v, d)
                a = MatMul (w, v)
                s = Sub (a, t)
                next = Tanh (s)
                row = Mul (next, b)
            }> (m, on, x)
        }""",
        normal(12, w=(3, 3), b=3),
        normal(13, x=3),
    ),
    "loop with a condition": Case(
        """while (double[3] x) => (double[3] y) {
            m = Constant <value_int = 50> ()
            most = Constant <value_float = 3.0> ()
            limit = Cast <to = 11> (most)
            begin = Constant <value_int = 1> ()
            on = Cast <to = 9> (begin)
            y = Loop <body = step (int64 i, bool on_, double[3] v) => (bool still, double[3] next) {
                next = Mul (v, w)
                n = ReduceSumSquare <keepdims = 0> (next)
                still = Less (n, limit)
            }> (m, on, x)
        }""",
        {"w": np.array([1.5, 1.25, 1.125])},
        {"x": np.array([0.5, -0.25, 0.75])},
    ),
    "scan": Case(
        """scan (double[2] h0, double[3,5] xs) => (double[4,5] ys, double[2] h) {
            h, ys = Scan <num_scan_inputs = 1, scan_input_axes = [1], scan_input_directions = [1],
                          scan_output_axes = [1], body = step (double[2] before, double[3] x)
                          => (double[2] after, double[4] out) {
                a = MatMul (w, x)
                s = Add (a, before)
                after = Tanh (s)
                out = MatMul (u, after)
            }> (h0, xs)
        }""",
        normal(14, w=(2, 3), u=(4, 2)),
        normal(15, h0=2, xs=(3, 5)),
    ),
    "if": Case(
        """branches (double[3] x) => (double[3] y) {
            s = ReduceSum <keepdims = 0> (x)
            z = Constant <value_float = 0.0> ()
            zero = Cast <to = 11> (z)
            p = Greater (s, zero)
            y = If <then_branch = one () => (double[3] a) { a = Mul (x, w) },
                    else_branch = other () => (double[3] b) { b = Sub (x, v) }> (p)
        }""",
        normal(16, w=3, v=3),
        {"x": np.array([1.0, -0.25, 0.5])},
    ),
    "resized": Case(
        """image (double[1,1,4,4] x) => (double[1,1,9,8] y) {
            k = Mul (x, w)
            sizes = Constant <value_ints = [1, 1, 7, 6]> ()
            r = Resize <mode = "linear"> (k, , , sizes)
            pads = Constant <value_ints = [0, 0, 1, 0, 0, 0, 1, 2]> ()
            y = Pad <mode = "reflect"> (r, pads)
        }""",
        normal(17, w=(4, 4)),
        normal(18, x=(1, 1, 4, 4)),
    ),
    "scattered": Case(
        """scattered (double[4,3] x) => (double[4,3] y) {
            i = Constant <value_ints = [2, 0]> ()
            one = Constant <value_ints = [1]> ()
            at = Unsqueeze (i, one)
            s = ScatterND (w, at, u)
            g = Gather <axis = 1> (s, i)
            axis = Constant <value_int = 1> ()
            c = CumProd (s, axis)
            t = Concat <axis = 1> (g, c)
            three = Constant <value_ints = [3]> ()
            zero = Constant <value_ints = [0]> ()
            part = Slice (t, zero, three, one)
            y = Mul (part, x)
        }""",
        normal(19, w=(4, 3), u=(2, 3)),
        normal(20, x=(4, 3)),
    ),
    "norms and pools": Case(
        """norms (double[2,4,3,5] x) => (double[2,4,2,4] y) {
            a = Mul (x, w)
            b = InstanceNormalization (a, s, t)
            c = GroupNormalization <num_groups = 2, stash_type = 11> (b, s, t)
            d = LayerNormalization <axis = -2> (c, u, v)
            e = MaxPool <kernel_shape = [2, 2], dilations = [1, 2]> (d)
            f = AveragePool <kernel_shape = [1, 2]> (e)
            sizes = Constant <value_ints = [4]> ()
            y = Resize <mode = "cubic", axes = [3]> (f, , , sizes)
        }""",
        normal(25, w=(3, 5), t=4, u=(3, 5), v=(3, 5)) | {"s": np.array([1.5, -2.0, 1.25, 2.5])},
        normal(24, x=(2, 4, 3, 5)),
    ),
    "positions": Case(
        """positions (double[4,3] x, int64[3,1] rows, int64[2,2] places, int64[4,2] columns, int64[4,1] last)
            => (double[4,2] y) {
            a = ScatterND <reduction = "mul"> (w, rows, u)
            b = ScatterND (a, places, v)
            c = ScatterElements <axis = 1, reduction = "max"> (b, columns, t)
            d = Mul (c, x)
            e = GatherElements <axis = 1> (d, columns)
            f = GatherND <batch_dims = 1> (d, last)
            one = Constant <value_ints = [1]> ()
            g = Unsqueeze (f, one)
            y = Mul (e, g)
        }""",
        normal(25, w=(4, 3), u=(3, 3), v=2, t=(4, 2)),
        normal(26, x=(4, 3))
        | {
            "rows": np.array([[1], [-1], [1]]),
            "places": np.array([[0, -1], [2, 0]]),
            "columns": np.array([[0, -1], [1, 1], [-3, 2], [2, 0]]),
            "last": np.array([[2], [-3], [1], [-1]]),
        },
    ),
}
#: cases that ONNX's evaluator lacks, which tests below compute by hand
BY_HAND = {"scan": "axes and directions"}
OPSETS = {"scattered": 26}


def imported(name: str) -> tuple[Any, Any, Case]:
    case = CASES[name]
    proto = model(case.text, case.initialisers, OPSETS.get(name, 24))
    return proto, import_model(proto, case.inputs), case


@pytest.mark.parametrize("name", [name for name in CASES if name not in BY_HAND])
def test_values_and_gradients(client: gs.Client, name: str) -> None:
    proto, result, case = imported(name)
    assert {*result.parameters} == {*case.initialisers}
    first = next(iter(result.outputs.values()))
    loss = first.square().sum()
    answer = client.gradients(result.graph, result.feeds(case.inputs), of=loss, outputs=[*result.outputs.values()])
    for one, other in zip(result.outputs.values(), outputs(proto, case.inputs), strict=True):
        assert np.allclose(answer.values[one], other, rtol=1e-12, atol=1e-12)
    for parameter, node in result.parameters.items():
        expected = slopes(proto, case.inputs, parameter)
        scale = max(1.0, float(np.abs(expected).max()))
        assert np.abs(answer.gradients[node] - expected).max() <= 1e-9 * scale, parameter


def test_scan_along_other_axes_in_reverse(client: gs.Client) -> None:
    _, result, case = imported("scan")
    w, u = case.initialisers["w"], case.initialisers["u"]
    h, rows, tanh_slopes = case.inputs["h0"], [], []
    for x in case.inputs["xs"].T[::-1]:
        h = np.tanh(w @ x + h)
        rows.append(u @ h)
        tanh_slopes.append(1 - h**2)
    loss = result.outputs["ys"].square().sum()
    answer = client.gradients(result.graph, result.feeds(case.inputs), of=loss, outputs=[*result.outputs.values()])
    assert np.allclose(answer.values[result.outputs["ys"]], np.stack(rows, axis=1), rtol=1e-13)
    assert np.allclose(answer.values[result.outputs["h"]], h, rtol=1e-13)
    adjoint, slope = np.zeros(2), np.zeros_like(w)
    for step in reversed(range(5)):
        adjoint = tanh_slopes[step] * (u.T @ (2 * rows[step]) + adjoint)
        slope += np.outer(adjoint, case.inputs["xs"].T[::-1][step])
    assert np.allclose(answer.gradients[result.parameters["w"]], slope, rtol=1e-12, atol=1e-13)


def test_grid_sample_interpolates_between_pixels(client: gs.Client) -> None:
    """The plane 1 + 2 i − 3 j, which linear interpolation reproduces with its slopes."""
    i, j = np.indices((4, 5)).astype(np.float64)
    x = (1 + 2 * i - 3 * j)[None, None]
    grid = np.array([[0.1, -0.2], [0.3, 0.25], [-0.4, 0.05]]).reshape(1, 1, 3, 2)
    text = "plane (double[1,1,4,5] x) => (double[1,1,1,3] y) { y = GridSample <align_corners = 1> (x, grid) }"
    result = import_model(model(text, {"grid": grid}), {"x": x})
    answer = client.gradients(result.graph, result.feeds({"x": x}), of=result.outputs["y"].sum())
    rows, columns = (grid[..., 1] + 1) / 2 * 3, (grid[..., 0] + 1) / 2 * 4
    assert np.isclose(answer.value, (1 + 2 * rows - 3 * columns).sum(), rtol=1e-13)
    expected = np.broadcast_to([-3 * 2, 2 * 1.5], (1, 1, 3, 2))
    assert np.allclose(answer.gradients[result.parameters["grid"]], expected, rtol=1e-12)


def test_gradient_follows_the_branch_that_runs(client: gs.Client) -> None:
    _, result, case = imported("if")
    loss = result.outputs["y"].square().sum()
    x = -case.inputs["x"]
    gradients = client.gradients(result.graph, result.feeds({"x": x}), of=loss).gradients
    assert not gradients[result.parameters["w"]].any()
    assert np.allclose(gradients[result.parameters["v"]], -2 * (x - case.initialisers["v"]), rtol=1e-14)


def test_conditional_loop_becomes_a_while(client: gs.Client) -> None:
    _, result, case = imported("loop with a condition")
    assert [node.op for node in result.graph if node.op in {"scan", "while"}] == ["while"]
    w = case.initialisers["w"]
    for scale in (1.0, 0.25):
        y, steps = case.inputs["x"] * scale, 0
        while steps == 0 or (y**2).sum() < 3:
            y, steps = y * w, steps + 1
        value = client.forward(
            result.graph, result.feeds({"x": case.inputs["x"] * scale}), outputs=[result.outputs["y"]]
        )
        assert np.allclose(value.value, y, rtol=1e-14)
