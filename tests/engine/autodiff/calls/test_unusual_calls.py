"""Edge cases of calls: inner nodes, missing paths, empty tensors, other dtypes, repeated nodes."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from engine import HVP, JVP, VJP, Batch, Gradients, Hessian, Jacobian, Values
from engine.compiler.compiler import CompileRequest, plan_call
from engine.ir.errors import EngineError
from engine.ir.run_context import Deadline
from tests.contract.cases import LIMITS
from tests.engine.autodiff.calls.asking import Net, kind


def chain() -> tuple[Net, int, int, int]:
    """x → h = x² → y = sum(h · x)."""
    net = Net()
    x = net.leaf([1.0, 2.0, 3.0])
    h = net.add("square", x)
    return net, x, h, net.add("sum", net.add("mul", h, x))


def test_derivatives_wrt_an_inner_node_and_its_leaf() -> None:
    """y = Σ h x has ∂y/∂h = x, and ∂y/∂x = 3x², since every path counts."""
    net, x, h, y = chain()
    x_value = net.feeds[x]
    results = net.ask(Hessian.of_program(net.program, y, [x, h]))
    np.testing.assert_allclose(kind(results, "gradients")[(x,)], 3 * x_value**2)
    np.testing.assert_allclose(kind(results, "gradients")[(h,)], x_value)
    blocks = kind(results, "hessian")
    np.testing.assert_allclose(blocks[x, x], np.diag(6 * x_value))
    np.testing.assert_allclose(blocks[h, x], np.eye(3), err_msg="the gradient by h is x")
    np.testing.assert_allclose(blocks[h, h], np.zeros((3, 3)))
    assert results[next(label for label in results if label.kind == "values")] == pytest.approx(np.sum(x_value**3))


def test_vjp_adds_cotangents_of_dependent_outputs() -> None:
    net, x, h, y = chain()
    x_value = net.feeds[x]
    types, fed = net.given("cotangents", {h: [1.0, 10.0, 100.0], y: 2.0})
    gradients = kind(net.ask(VJP.of_program(net.program, types, [x, h], [h, y]), fed), "gradients")
    np.testing.assert_allclose(gradients[(h,)], [1.0, 10.0, 100.0] + 2 * x_value)
    np.testing.assert_allclose(gradients[(x,)], 2 * x_value * [1.0, 10.0, 100.0] + 6 * x_value**2)


def test_output_that_is_also_the_wrt_node() -> None:
    net, x, _, _ = chain()
    blocks = kind(net.ask(Jacobian.of_program(net.program, [x], [x])), "jacobian")
    np.testing.assert_array_equal(blocks[x, x], np.eye(3))
    types, fed = net.given("tangents", {x: [4.0, 5.0, 6.0]})
    pushed = kind(net.ask(JVP.of_program(net.program, types, [x]), fed), "tangents")
    np.testing.assert_array_equal(pushed[(x,)], [4.0, 5.0, 6.0])
    types, fed = net.given("cotangents", {x: [[4.0, 5.0, 6.0], [1.0, 0.0, 0.0]]})
    pulled = kind(net.ask(VJP.of_program(net.program, types, [x], [x], True), fed), "gradients")
    np.testing.assert_array_equal(pulled[(x,)], [[4.0, 5.0, 6.0], [1.0, 0.0, 0.0]])


@pytest.mark.parametrize(
    "call", ["values", "jvp", "batch", "outputs of gradients", VJP, Jacobian, Gradients, Hessian, HVP], ids=str
)
def test_repeated_node_is_refused(call: type | str) -> None:
    net, x, h, _ = chain()
    tensors = net.given("vectors", {x: [1.0, 1.0, 1.0]})[0]
    with pytest.raises(EngineError, match="twice"):
        {
            "values": lambda: Values.of_program(net.program, [h, h]),
            "jvp": lambda: JVP.of_program(net.program, tensors, [h, h]),
            "batch": lambda: Batch.of_program(net.program, net.types, [x], None, None, [h, h]),
            "outputs of gradients": lambda: Gradients.of_program(net.program, None, [x], [h, h]),
            VJP: lambda: VJP.of_program(net.program, tensors, [x], [h, h]),
            Jacobian: lambda: Jacobian.of_program(net.program, [x], [h, h]),
            Gradients: lambda: Gradients.of_program(net.program, None, [x, x]),
            Hessian: lambda: Hessian.of_program(net.program, None, [x, x]),
            HVP: lambda: HVP.along(net.program, (*tensors, *tensors), None, [x]),
        }[call]()


def test_missing_path_gives_zeros_and_is_reported() -> None:
    """Derivatives wrt a leaf that the output does not read, and wrt one that it reads through `floor` only."""
    net = Net()
    x, other, rounded = net.leaf([1.0, 2.0]), net.leaf([[5.0]]), net.leaf(1.5)
    floor = net.add("floor", rounded)
    y = net.add("mul", net.add("square", x), net.add("add", floor, floor))
    wrt, loss = [x, other, rounded], net.add("sum", y)
    types = net.types
    call = Gradients.of_program(net.program, loss, wrt)
    written, _ = plan_call(CompileRequest(net.program, types, call, LIMITS))
    assert written.disconnected == (other, rounded)
    blocks = kind(net.ask(Jacobian.of_program(net.program, wrt, [y, loss])), "jacobian")
    np.testing.assert_array_equal(blocks[y, other], np.zeros((2, 1, 1)))
    np.testing.assert_array_equal(blocks[loss, rounded], np.zeros(()))
    hessian = kind(net.ask(Hessian.of_program(net.program, loss, wrt)), "hessian")
    assert hessian[other, x].shape == (1, 1, 2)
    np.testing.assert_array_equal(hessian[x, x], 4 * np.eye(2))
    types, fed = net.given("tangents", {other: [[1.0]]})
    pushed = kind(net.ask(JVP.of_program(net.program, types, [y]), fed), "tangents")
    np.testing.assert_array_equal(pushed[(y,)], np.zeros(2))
    vectors, fed = net.given("vectors", {x: [1.0, 1.0], other: [[1.0]], rounded: 1.0})
    products = kind(net.ask(HVP.along(net.program, vectors, loss, wrt), fed), "hvp")
    np.testing.assert_array_equal(products[(x,)], [4.0, 4.0])
    np.testing.assert_array_equal(products[(other,)], [[0.0]])


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_derivatives_have_the_dtype_of_their_node(dtype: str) -> None:
    net = Net()
    x = net.leaf(np.array([0.5, -0.25], dtype))
    w = net.leaf(np.array(2.0, "float64" if dtype == "float32" else dtype))
    y = net.add("tanh", net.add("mul", x, net.add("cast", w, dtype=dtype)))
    loss = net.add("sum", y)
    dtypes = {x: np.dtype(dtype), w: net.feeds[w].dtype, y: np.dtype(dtype), loss: np.dtype(dtype)}
    for call in (
        Jacobian.of_program(net.program, [x, w], [y]),
        Jacobian.of_program(net.program, [w], [y]),
        Hessian.of_program(net.program, loss, [x, w]),
    ):
        for label, array in net.ask(call).items():
            assert array.dtype == dtypes[label.nodes[-1]], label
    vectors, fed = net.given("vectors", {i: np.ones_like(a) for i, a in net.feeds.items()})
    for label, array in net.ask(HVP.along(net.program, vectors, loss, [x, w]), fed).items():
        assert array.dtype == dtypes[label.nodes[0]], label


def test_scalars_and_empty_tensors() -> None:
    net = Net()
    x, empty = net.leaf(3.0), net.leaf(np.zeros((0, 2)))
    y = net.add("mul", net.add("square", x), net.add("add_scalar", net.add("sum", empty), scalar=1.0))
    blocks = kind(net.ask(Hessian.of_program(net.program, y, [x, empty])), "hessian")
    assert blocks[x, x] == 2.0
    assert blocks[x, empty].shape == (0, 2)
    assert blocks[empty, empty].shape == (0, 2, 0, 2)
    jacobian = kind(net.ask(Jacobian.of_program(net.program, [x, empty], [empty, y])), "jacobian")
    assert jacobian[empty, x].shape == (0, 2)
    assert jacobian[y, x] == 6.0
    np.testing.assert_array_equal(jacobian[y, empty], np.zeros((0, 2)))


@pytest.mark.parametrize("count", [0, 1, 3])
def test_any_number_of_cotangents_and_examples(count: int) -> None:
    net, x, h, y = chain()
    types, fed = net.given("cotangents", {h: np.ones((count, 3))})
    pulled = kind(net.ask(VJP.of_program(net.program, types, [x], [h], True), fed), "gradients")
    np.testing.assert_array_equal(pulled[(x,)], np.tile(2 * net.feeds[x], (count, 1)))
    many = Net(net.statements, {x: np.arange(3.0 * count).reshape(count, 3)})
    results = many.ask(Batch.of_program(many.program, many.types, [x], y, [x], [y, h]))
    np.testing.assert_array_equal(kind(results, "values")[(y,)], np.sum(many.feeds[x] ** 3, 1))
    np.testing.assert_array_equal(kind(results, "gradients")[(x,)], 3 * many.feeds[x] ** 2)


def test_batched_cotangents_without_a_path() -> None:
    net = Net()
    x, other = net.leaf([1.0]), net.leaf([2.0, 3.0])
    y = net.add("square", x)
    types, fed = net.given("cotangents", {y: np.ones((4, 1))})
    pulled = kind(net.ask(VJP.of_program(net.program, types, [other], [y], True), fed), "gradients")
    np.testing.assert_array_equal(pulled[(other,)], np.zeros((4, 2)))


def test_batch_of_a_node_independent_of_the_example() -> None:
    """A value that all examples share is computed once and repeated; it need not read the mapped leaf."""
    net = Net()
    x, w = net.leaf(np.arange(4.0), "input"), net.leaf([1.0, 2.0])
    y = net.add("sum", net.add("square", w))
    results = net.ask(Batch.of_program(net.program, net.types, [x], y, [w, x], [y, x]))
    np.testing.assert_array_equal(kind(results, "values")[(y,)], np.full(4, 5.0))
    np.testing.assert_array_equal(kind(results, "values")[(x,)], np.arange(4.0))
    np.testing.assert_array_equal(kind(results, "gradients")[(w,)], np.tile([2.0, 4.0], (4, 1)))
    np.testing.assert_array_equal(kind(results, "gradients")[(x,)], np.zeros(4))


def test_batch_with_a_nested_gradient() -> None:
    """z = (d sin(x)·w / dx)², for each x and w."""
    net = Net()
    x, w = net.leaf([0.1, 0.2, 0.3]), net.leaf([1.0, 2.0, 3.0])
    slope = net.add("grad", net.add("mul", net.add("sin", x), w), x)
    z = net.add("square", slope)
    results = net.ask(Batch.of_program(net.program, net.types, [x, w], z, [x, w]))
    a, b = net.feeds[x], net.feeds[w]
    np.testing.assert_allclose(kind(results, "values")[(z,)], (np.cos(a) * b) ** 2)
    np.testing.assert_allclose(kind(results, "gradients")[(x,)], -2 * np.cos(a) * np.sin(a) * b**2)
    np.testing.assert_allclose(kind(results, "gradients")[(w,)], 2 * np.cos(a) ** 2 * b)


def test_batch_of_values_without_gradients() -> None:
    net = Net()
    x = net.leaf(np.arange(6.0).reshape(3, 2), "input")
    y = net.add("sum", x)
    results = net.ask(Batch.of_program(net.program, net.types, [x]))
    assert [label.kind for label in results] == ["values"]
    np.testing.assert_array_equal(kind(results, "values")[(y,)], [1.0, 5.0, 9.0])


def test_ops_with_several_results() -> None:
    net = Net()
    x = net.leaf([1.0, 2.0, 3.0])
    parts = net.add("split", x, sizes=[1, 2], axis=0)
    first, second = (net.add("get_output", parts, index=k) for k in range(2))
    y = net.add("sum", net.add("mul", net.add("square", second), first))
    results = net.ask(Hessian.of_program(net.program, y, [x, second]))
    np.testing.assert_array_equal(kind(results, "gradients")[(x,)], [13.0, 4.0, 6.0])
    np.testing.assert_array_equal(kind(results, "gradients")[(second,)], [4.0, 6.0])
    np.testing.assert_array_equal(kind(results, "hessian")[second, x], [[4.0, 2.0, 0.0], [6.0, 0.0, 2.0]])
    with pytest.raises(EngineError, match="several outputs"):
        Jacobian.of_program(net.program, [x], [parts])


def test_integer_output_has_a_value_but_no_derivative() -> None:
    net = Net()
    x = net.leaf([3.0, 1.0, 2.0])
    index = net.add("argmax", x, axis=0)
    assert net.values(index) == [0]
    for call in (Jacobian.of_program(net.program, [x], [index]), Gradients.of_program(net.program, index, [x])):
        with pytest.raises(EngineError, match="whose dtype int64 has no derivatives") as caught:
            net.ask(call)
        assert (caught.value.code, caught.value.node) == ("not_differentiable", index)


@pytest.mark.parametrize("rows", [True, False])
def test_singular_element_does_not_affect_the_others(rows: bool) -> None:
    """log has an infinite derivative at 0; the derivatives with respect to the other leaf are 1."""
    net = Net()
    a, b = net.leaf(2.0), net.leaf([0.0, 1.0])
    y = net.add("add", net.add("log", b), a)
    wrt = [a, b] if rows else [a]
    blocks = kind(net.ask(Jacobian.of_program(net.program, wrt, [y])), "jacobian")
    np.testing.assert_array_equal(blocks[y, a], [1.0, 1.0])
    loss = net.add("sum", net.add("mul", y, y))
    assert net.ask(Gradients.of_program(net.program, loss, [a])) is not None


#: deeper than calls may be nested
DEPTH = sys.getrecursionlimit() * 3 // 2


def deep(depth: int = DEPTH) -> tuple[Net, int]:
    net = Net()
    x = y = net.leaf([0.5, -0.5])
    for _ in range(depth):
        y = net.add("sin", y)
    return net, x


@pytest.mark.slow
def test_deep_graph_does_not_exceed_the_recursion_limit() -> None:
    net, x = deep()
    end = net.last
    loss = net.add("sum", end)
    truth, slope = net.feeds[x], np.ones(2)
    for _ in range(DEPTH):
        slope, truth = slope * np.cos(truth), np.sin(truth)
    tangents, fed = net.given("tangents", {x: [1.0, 1.0]})
    pushed = kind(net.ask(JVP.of_program(net.program, tangents, [end]), fed), "tangents")
    np.testing.assert_allclose(pushed[(end,)], slope, 1e-9)
    block = kind(net.ask(Jacobian.of_program(net.program, [x], [end])), "jacobian")[end, x]
    np.testing.assert_allclose(block, np.diag(slope), 1e-9)
    many = Net(net.statements, {x: np.stack([net.feeds[x]] * 2)})
    results = many.ask(Batch.of_program(many.program, many.types, [x], loss, [x]))
    np.testing.assert_allclose(kind(results, "gradients")[(x,)], [slope, slope], 1e-9)
    vectors, fed = net.given("vectors", {x: [1.0, 1.0]})
    curved = kind(net.ask(HVP.along(net.program, vectors, loss, [x]), fed), "hvp")[(x,)]
    assert np.isfinite(curved).all()


def test_infinite_hessian_row_does_not_affect_other_rows() -> None:
    """√a + b² at a = 0: in one sweep, the zeros of b's row would be multiplied by the infinite derivative of √a."""
    net = Net()
    a, b = net.leaf(0.0), net.leaf(3.0)
    output = net.add("add", net.add("sqrt", a), net.add("square", b))
    blocks = kind(net.ask(Hessian.of_program(net.program, output, [a, b])), "hessian")
    assert not np.isfinite(blocks[a, a])
    assert (blocks[b, a], blocks[a, b], blocks[b, b]) == (0, 0, 2)


def test_planning_a_sweep_checks_the_deadline() -> None:
    """Ten thousand chunks of one row: hundreds of thousands of nodes, none of which is written once time is up."""
    net, x = deep(50)
    types = {x: net.types[x].with_shape((10_000,))}
    call = Jacobian.of_program(net.program, [x])
    checked: list[int] = []

    class Passing(Deadline):
        def check(self) -> None:
            checked.append(1)
            if len(checked) > 20:
                self.time = 0.0
            super().check()

    with pytest.raises(EngineError) as caught:
        plan_call(CompileRequest(net.program, types, call, LIMITS, Passing(3600.0), chunks=(1,)))
    assert caught.value.code == "deadline_exceeded"
    assert len(checked) == 21


def test_jacobian_over_budget_is_refused_before_it_is_built() -> None:
    net, x = deep(5)
    types = {x: net.types[x].with_shape((100_000,))}
    with pytest.raises(EngineError, match="this needs 80000000000 bytes") as caught:
        plan_call(CompileRequest(net.program, types, Jacobian.of_program(net.program, [x]), LIMITS, chunks=(1,)))
    assert caught.value.code == "over_budget"


def test_values_have_no_derivatives() -> None:
    net, _, h, _ = chain()
    call = Values.of_program(net.program, [h])
    assert (call.differentiated, call.wrt_nodes, call.roots) == ((), (), (h,))
