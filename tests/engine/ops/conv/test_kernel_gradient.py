"""The kernel gradient of a convolution: its definition, batches, derivatives, decomposition, and plans."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from engine import Builder, Gradients, Limits, TensorType, registry
from engine.autodiff.jvp import jvp
from engine.autodiff.vjp import vjp
from engine.compiler.compiler import CompileRequest, plan_call
from engine.compiler.plan import make_plan
from engine.ir.graph import Value
from engine.ir.passes import optimise
from engine.ir.run_context import RunContext
from engine.ops.conv import im2col as convolution_layout
from engine.ops.conv.convolution import KERNEL_GRADIENT, kernel_gradient
from engine.ops.conv.windows import Windows
from tests.contract.cases import SLACK, assert_planned_peak_holds
from tests.engine.analysis.real_networks import REAL_NETWORKS
from tests.engine.ops.convolutions import RNG, Axis, Setting, by_loops
from tests.engine.ops.values import Array, allocated, come_to, written

#: with and without a remainder, more taps than positions and fewer, a single window, windows outside of x
SETTINGS = {
    "one axis": Setting((Axis(9, 3, 2, 1),)),
    "one axis, in groups": Setting((Axis(8, 2, 3, 0, 2),), depth=2, groups=3),
    "two axes": Setting((Axis(6, 3, 1, 1), Axis(5, 2, 1, 0, 2)), images=3, depth=2, features=3),
    "a rest": Setting((Axis(6, 2, 2, 1), Axis(8, 3, 3)), depth=3),
    "a rest, in groups": Setting((Axis(6, 2, 2, 1), Axis(8, 3, 3)), depth=2, groups=2),
    "large windows": Setting((Axis(6, 5), Axis(5, 4)), images=5, depth=3, groups=2),
    "a window alone": Setting((Axis(7, 3, 9), Axis(5, 5))),
    "a window of one tap": Setting((Axis(4), Axis(3)), images=1, depth=4),
    "single channels": Setting((Axis(5, 3, 1, 1), Axis(4, 3, 1, 1)), features=1, groups=4),
    "a kernel beside x": Setting((Axis(1, 1, 3, 2), Axis(4, 2))),
    "three axes": Setting((Axis(3, 2), Axis(4, 3, 2, 1), Axis(2, 1, 1, 1)), groups=2),
    "no images": Setting((Axis(4, 2), Axis(3, 2)), images=0),
    "no channels": Setting((Axis(4, 2), Axis(3, 2)), depth=0),
}
each_setting = pytest.mark.parametrize("name", SETTINGS)


def placed(setting: Setting) -> Windows:
    return Windows(*(tuple(setting.each(name)) for name in ("size", "stride", "padding", "dilation")))


def attributes(setting: Setting) -> dict[str, Any]:
    return {"taps": placed(setting).size, **placed(setting).placing, "groups": setting.groups}


def reference(setting: Setting, wide: Array, narrow: Array) -> Array:
    """The definition, in loops."""
    return by_loops(setting, wide, narrow, np.zeros(setting.shapes[2]))[2]


def emitted(setting: Setting, wide: Value, narrow: Value) -> Value:
    return kernel_gradient(wide, narrow, placed(setting), setting.groups)


@each_setting
def test_matches_the_definition(name: str) -> None:
    setting = SETTINGS[name]
    wide, narrow, _ = setting.draw()
    actual = come_to(lambda *values: emitted(setting, *values), wide, narrow)
    np.testing.assert_allclose(actual, reference(setting, wide, narrow), 1e-12, 1e-12)


@pytest.mark.parametrize("chunk", [1, 500])
@pytest.mark.parametrize("name", ["a rest, in groups", "large windows", "three axes"])
def test_result_does_not_depend_on_chunk_size(name: str, chunk: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(convolution_layout, "CHUNK_BYTES", chunk)
    monkeypatch.setattr(convolution_layout, "LEAST_WINDOWS", 1)
    setting = SETTINGS[name]
    wide, narrow, kernel = setting.draw()
    for layout in (np.ascontiguousarray, np.asfortranarray):
        out = np.full_like(kernel, np.nan)
        KERNEL_GRADIENT.forward(RunContext(np), layout(wide), layout(narrow), out=out, **attributes(setting))
        np.testing.assert_allclose(out, reference(setting, wide, narrow), 1e-12, 1e-12)


def test_float16_is_summed_in_float32() -> None:
    """More than 4,096 ones: in float16, the sum would stop at 2,048."""
    ones = np.ones((1, 1, 72, 72), np.float16)
    actual = come_to(lambda *v: kernel_gradient(*v, Windows((1, 1), (1, 1), (0, 0), (1, 1)), 1), ones, ones)
    assert (actual.dtype, actual.item()) == (np.float16, 5184)


def test_result_has_the_common_dtype_of_the_operands() -> None:
    setting = SETTINGS["two axes"]
    wide, narrow, _ = (TensorType(s, np.dtype(d)) for s, d in zip(setting.shapes, ["f4", "f8", "f8"], strict=True))
    expected = TensorType(setting.shapes[2], np.dtype("float64"))
    assert KERNEL_GRADIENT.infer(wide, narrow, **attributes(setting)) == expected


@pytest.mark.parametrize("mapped", [(True, False), (False, True), (True, True)], ids=str)
@pytest.mark.parametrize("n", [0, 1, 3])
@pytest.mark.parametrize("name", ["one axis, in groups", "two axes", "a rest, in groups", "three axes", "no images"])
def test_batch_matches_single_examples(name: str, n: int, mapped: tuple[bool, bool]) -> None:
    setting = SETTINGS[name]
    shapes = setting.shapes[:2]
    arrays = [RNG.normal(size=(n, *shape) if m else shape) for m, shape in zip(mapped, shapes, strict=True)]
    actual = come_to(lambda *values: KERNEL_GRADIENT.batch(mapped, *values, **attributes(setting)), *arrays)
    assert actual.shape == (n, *setting.shapes[2])
    for i in range(n):
        each = [x[i] if m else x for m, x in zip(mapped, arrays, strict=True)]
        np.testing.assert_allclose(actual[i], reference(setting, *each), 1e-12, 1e-12)


@pytest.mark.parametrize("mapped", [(True, False), (False, True)], ids=str)
def test_unmapped_operand_is_not_repeated(mapped: tuple[bool, bool]) -> None:
    setting = SETTINGS["a rest, in groups"]
    builder = Builder(registry())
    types = [TensorType((7, *s) if m else s, np.dtype("f8")) for m, s in zip(mapped, setting.shapes[:2], strict=True)]
    wide, narrow = (builder.leaf(type, i) for i, type in enumerate(types))
    KERNEL_GRADIENT.batch(mapped, wide, narrow, **attributes(setting))
    (node,) = (node for node in builder.nodes if node.op is KERNEL_GRADIENT)
    assert [i in node.operands for i in (0, 1)] == [not m for m in mapped]


@each_setting
def test_gradients_are_the_other_trilinear_derivatives(name: str) -> None:
    setting = SETTINGS[name]
    wide, narrow, kernel = setting.draw()
    grad_wide, grad_narrow, _ = by_loops(setting, wide, narrow, kernel)

    def write(*values: Value) -> list[Value]:
        y = emitted(setting, *values[:2])
        return [g for g in vjp(y.builder, [(y, values[2])], values[:2]) if g is not None]

    for a, b in zip(written(write, wide, narrow, kernel)[1], (grad_wide, grad_narrow), strict=True):
        np.testing.assert_allclose(a, b, 1e-12, 1e-12)


@pytest.mark.parametrize("name", ["one axis", "a rest", "a rest, in groups", "three axes"])
def test_forward_mode_is_bilinear(name: str) -> None:
    setting = SETTINGS[name]
    (wide, narrow, _), (along, across, _) = setting.draw(), setting.draw()

    def write(*values: Value) -> list[Value]:
        y = emitted(setting, *values[:2])
        (tangent,) = jvp(y.builder, [y], list(zip(values[:2], values[2:], strict=True)))
        assert tangent is not None
        return [tangent]

    actual = written(write, wide, narrow, along, across)[1][0]
    expected = reference(setting, along, narrow) + reference(setting, wide, across)
    np.testing.assert_allclose(actual, expected, 1e-12, 1e-12)


@pytest.mark.parametrize("name", [name for name in SETTINGS if name not in ("no images", "no channels")])
def test_decomposition_uses_public_ops(name: str) -> None:
    setting = SETTINGS[name]
    wide, narrow, _ = setting.draw()

    def write(*values: Value) -> Value:
        (y,) = KERNEL_GRADIENT.written_out(*values, **attributes(setting))
        assert not [node for node in y.builder.nodes if node.op.internal]
        return y

    np.testing.assert_allclose(come_to(write, wide, narrow), reference(setting, wide, narrow), 1e-12, 1e-12)


def test_op_is_internal() -> None:
    assert KERNEL_GRADIENT.internal
    assert KERNEL_GRADIENT.name not in registry().ops


def test_flops_are_two_per_tap_and_channel() -> None:
    """Only existing taps count: none is computed and dropped."""
    setting = SETTINGS["a rest, in groups"]
    types = [TensorType(shape, np.dtype("f8")) for shape in setting.shapes]
    actual = KERNEL_GRADIENT.flops(types[2], *types[:2], **attributes(setting))
    assert actual == 2 * (2 * 4 * 4 * 2) * 2 * (2 * 3)  # images, features, positions; channels of a group; taps


LARGE = {
    "one tap": Setting((Axis(64), Axis(64)), images=2, features=64),
    "single channels": Setting((Axis(40, 3, 2), Axis(40, 3, 2)), images=30, features=2, groups=40),
    "large windows": Setting((Axis(9, 9), Axis(9, 8)), images=40, depth=30, features=20),
    "many features": Setting((Axis(9, 3, padding=1), Axis(9, 3, padding=1)), images=60, depth=80, features=90),
    "few windows": Setting((Axis(90, 80), Axis(70, 60)), images=1, depth=4),
    "a window alone": Setting((Axis(90, 50, 60), Axis(70, 60, 50)), images=30, depth=4),
    "a window alone, in a part of each image": Setting((Axis(90, 80, 60), Axis(70, 60, 50)), images=60, depth=2),
    "a window alone, of many features": Setting((Axis(2, 2), Axis(2, 2)), images=400, depth=2, features=600),
    "large windows in groups": Setting((Axis(30, 28), Axis(30, 28)), images=9, depth=3, features=1, groups=40),
}


@pytest.mark.parametrize("name", LARGE)
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_allocation_stays_within_the_declared_workspace(name: str, dtype: str) -> None:
    setting = LARGE[name]
    wide, narrow, kernel = (x.astype(dtype) for x in setting.draw())
    types, attrs = [TensorType.of(x) for x in (kernel, wide, narrow)], attributes(setting)
    declared = KERNEL_GRADIENT.workspace(*types, **attrs)
    peak = allocated(lambda: KERNEL_GRADIENT.forward(RunContext(np), wide, narrow, out=kernel, **attrs))
    assert peak <= declared + SLACK
    assert declared <= peak + 2 * convolution_layout.CHUNK_BYTES


@pytest.mark.slow
def test_planned_peak_over_50_mb_holds() -> None:
    setting = Setting((Axis(60, 3, 2, 1), Axis(60, 3, 2, 1)), images=24, depth=128, features=96)
    wide, narrow, _ = (x.astype("float32") for x in setting.draw())
    builder = Builder(registry())
    leaves = [builder.leaf(TensorType.of(a), i) for i, a in enumerate((wide, narrow))]
    plan = make_plan(builder.graph([emitted(setting, *leaves)]), Limits())
    assert_planned_peak_holds(plan, {0: wide, 1: narrow})


@pytest.mark.parametrize(
    ("name", "slices"), [("convnet 2 relu none", 0), ("resnet 2 relu batch_norm", 0), ("u_net 1 relu", 2)]
)
def test_gradient_plans_transpose_and_slice_no_images(name: str, slices: int) -> None:
    """Only matrices are transposed, and a U-Net slices channels that it has concatenated."""
    net = REAL_NETWORKS[name]()
    plan = plan_call(CompileRequest(net.program, net.types, Gradients.of_program(net.program), Limits()))[1]
    ops = [step.op.name for step in plan.steps]
    stated = [statement.op.name for statement in net.program.statements]
    convolutions = stated.count("conv2d") + stated.count("conv_transpose2d")
    assert ops.count("kernel_gradient") == convolutions >= 2
    assert ops.count("conv2d") + ops.count("conv_transpose2d") <= 2 * convolutions
    assert not [step for step in plan.steps if step.op.name == "transpose" and step.types[0].ndim > 2]
    assert (ops.count("identity"), ops.count("slice")) == (0, slices)


@pytest.mark.parametrize(("op", "stride"), [("conv2d", 2), ("conv2d", 3), ("conv_transpose2d", 2)])
def test_gradient_plans_of_strided_convolutions_with_a_remainder(op: str, stride: int) -> None:
    builder = Builder(registry())
    x, kernel = (
        builder.leaf(TensorType(shape, np.dtype("f4")), i) for i, shape in enumerate([(2, 4, 8, 8), (4, 4, 3, 3)])
    )
    y = getattr(x, op)(kernel, stride=(stride, stride), padding=(1, 1))
    gradients = [g for g in vjp(builder, [(y, y.full_like(1.0))], (x, kernel)) if g is not None]
    plan = make_plan(optimise(builder.graph(gradients)), Limits())
    other = {"conv2d": "conv_transpose2d", "conv_transpose2d": "conv2d"}[op]
    assert sorted(step.op.name for step in plan.steps if step.op.name not in ("input", "full")) == [
        other,
        "kernel_gradient",
    ]
