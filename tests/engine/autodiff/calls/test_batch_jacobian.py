"""Batches of outputs with several elements: Jacobians of single examples, stacked or summed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from engine import (
    LATEST,
    Batch,
    BatchSum,
    EngineError,
    Jacobian,
    Limits,
    OverBudget,
    Program,
    Statement,
    keeping,
    registry,
)
from engine.compiler import compiler
from engine.compiler.compiler import CHUNK_BYTES, Compiler, CompileRequest, plan_call, write_call
from engine.compiler.example_blocks import BLOCK_BYTES, compile_sum
from engine.ir.errors import NonScalarOutput
from engine.ir.program import Function
from tests.contract.cases import EXECUTOR, LIMITS, Case
from tests.engine.autodiff.calls.asking import Array, Net, kind
from tests.engine.autodiff.calls.test_laws import each_op, ends
from tests.sampling import together

RNG = np.random.default_rng(5)
X, W = RNG.standard_normal((4, 3)), RNG.standard_normal((3, 2))


def layer(units: int = 2, examples: int = 4) -> tuple[Net, int, int, int]:
    """Build tanh(x·w) for examples x with three features."""
    net = Net()
    x, w = net.leaf(RNG.standard_normal((examples, 3)), "input"), net.leaf(RNG.standard_normal((3, units)))
    return net, x, w, net.add("tanh", net.add("matmul", x, w))


def singles(net: Net, mapped: list[int], output: int, wrt: list[int]) -> list[dict[tuple[int, ...], Array]]:
    """Compute ∂of/∂wrt of each example by itself."""
    jacobians = list[dict[tuple[int, ...], Array]]()
    for n in range(len(net.feeds[mapped[0]])):
        one = Net(net.statements, {node: a[n] if node in mapped else a for node, a in net.feeds.items()})
        blocks = kind(one.ask(Jacobian.of_program(one.program, wrt, [output])), "jacobian")
        jacobians.append({(node,): blocks[output, node] for node in wrt})
    return jacobians


def stacked(rows: list[dict[tuple[int, ...], Array]]) -> dict[tuple[int, ...], Array]:
    return {label: np.stack([row[label] for row in rows]) for label in rows[0]}


@together
@pytest.mark.slow
@each_op
def test_batch_matches_single_examples_for_every_op(case: Case) -> None:
    """Rows or columns are swept, whichever are fewer: batching rules of derivatives that are batched already."""
    net, wrt, (output, *_) = ends(case)
    stacks = zip(*(case.arrays(salt=salt) for salt in range(3)), strict=True)
    many = Net(net.statements, {i: np.stack(arrays) for i, arrays in enumerate(stacks)})
    mapped = list(many.feeds)
    jacobians = singles(many, mapped, output, wrt)
    gradients = kind(many.ask(Batch.of_program(many.program, many.types, mapped, output, wrt, [output])), "gradients")
    for label, block in stacked(jacobians).items():
        has_one = block.size == gradients[label].size and block.shape != gradients[label].shape
        np.testing.assert_allclose(
            gradients[label], block.reshape(gradients[label].shape) if has_one else block, 1e-9, 1e-11
        )


@pytest.mark.parametrize("units", [2, 9])
@pytest.mark.parametrize("chunks", [CHUNK_BYTES, (1,)])
def test_rows_and_columns_match_for_any_chunk_size(units: int, chunks: Any) -> None:
    """Blocks wrt the mapped leaf, the shared leaf and an inner node are [N, of…, wrt…]; 9 units exceed 3 features."""
    net, x, w, y = layer(units)
    between = net.statements[y].operands[0]
    for wrt in ([x], [w], [between], [x, w, between]):
        call = Batch.of_program(net.program, net.types, [x], y, wrt, [y])
        answer = net.ask(call, chunks=chunks)
        for label, expected in stacked(singles(net, [x], y, wrt)).items():
            block = kind(answer, "gradients")[label]
            assert (block.shape, block.dtype) == (expected.shape, expected.dtype)
            np.testing.assert_allclose(block, expected, 1e-12, 1e-14)
        assert kind(answer, "values")[(y,)].shape == (4, units)


@pytest.mark.parametrize("units", [2, 9])
@pytest.mark.parametrize("chunks", [CHUNK_BYTES, (1,)])
def test_batch_sum_is_the_sum_of_single_jacobians(units: int, chunks: Any) -> None:
    net, x, w, y = layer(units)
    answer = net.ask(BatchSum.over_program(net.program, net.types, [x], y, [w]), chunks=chunks)
    expected = stacked(singles(net, [x], y, [w]))[(w,)].sum(axis=0)
    np.testing.assert_allclose(kind(answer, "gradients")[(w,)], expected, 1e-12, 1e-14)
    np.testing.assert_allclose(kind(answer, "values")[(y,)], np.tanh(net.feeds[x] @ net.feeds[w]).sum(0), 1e-12)


def test_jacobian_independent_of_the_example_is_repeated() -> None:
    """∂(x·w)/∂x is wᵀ for every x; the square of w does not depend on the example at all."""
    net = Net()
    x, w = net.leaf(X, "input"), net.leaf(W)
    y, z = net.add("matmul", x, w), net.add("square", w)
    jacobian = kind(net.ask(Batch.of_program(net.program, net.types, [x], y, [x])), "gradients")[(x,)]
    np.testing.assert_array_equal(jacobian, np.broadcast_to(W.T, (4, 2, 3)))
    jacobian = kind(net.ask(Batch.of_program(net.program, net.types, [x], z, [w])), "gradients")[(w,)]
    np.testing.assert_array_equal(
        jacobian, np.broadcast_to(np.diag(2 * W.ravel()).reshape(3, 2, 3, 2), (4, 3, 2, 3, 2))
    )


def test_one_element_output_has_gradients_in_any_shape() -> None:
    net = Net()
    x, w = net.leaf(X, "input"), net.leaf(W)
    loss = net.add("sum", net.add("square", net.add("matmul", x, w)), axes=[0], keepdims=True)
    gradient = kind(net.ask(Batch.of_program(net.program, net.types, [x], loss, [x])), "gradients")[(x,)]
    np.testing.assert_allclose(gradient, 2 * X @ W @ W.T, 1e-12)


def test_leaf_without_a_path_is_disconnected_and_zero() -> None:
    net = Net()
    x, w, other = net.leaf(X, "input"), net.leaf(W), net.leaf(np.ones((2, 2), "float32"))
    y = net.add("matmul", x, w)
    for make, shape in ((Batch.of_program, (4, 2, 2, 2)), (BatchSum.over_program, (2, 2, 2))):
        call = make(net.program, net.types, [x], y, [w, other])
        assert plan_call(CompileRequest(net.program, net.types, call, LIMITS))[0].disconnected == (other,)
        gradient = kind(net.ask(call), "gradients")[(other,)]
        assert gradient.dtype == np.float32
        np.testing.assert_array_equal(gradient, np.zeros(shape), strict=False)
        assert gradient.shape == shape


@pytest.mark.parametrize(("examples", "units", "of"), [(0, 2, (2,)), (3, 0, (0,))])
def test_empty_batch_and_empty_output(examples: int, units: int, of: tuple[int, ...]) -> None:
    net, x, w, y = layer(units, examples)
    blocks = kind(net.ask(Batch.of_program(net.program, net.types, [x], y, [x, w])), "gradients")
    assert {block.shape for block in blocks.values()} == {(examples, *of, 3), (examples, *of, 3, units)}
    summed = kind(net.ask(BatchSum.over_program(net.program, net.types, [x], y, [w])), "gradients")[(w,)]
    np.testing.assert_array_equal(summed, np.zeros((*of, 3, units)))


def test_stored_gradient_matches_the_answer() -> None:
    net, x, w, y = layer()
    call = keeping(Batch.of_program(net.program, net.types, [x], y, [w]), net.program, [y], [w])
    answer = net.ask(call, chunks=(1,))
    np.testing.assert_array_equal(kind(answer, "stored")[(w,)], kind(answer, "gradients")[(w,)])
    assert kind(answer, "stored")[(w,)].shape == (4, 2, 3, 2)


def test_scan_within_an_example() -> None:
    """A scan of three steps computes w³ · x; its Jacobians are diagonal: w³ wrt x, 3 w² x wrt w."""
    ops = registry().ops
    body = Function(registry(), [Statement(ops["input"]), Statement(ops["input"]), Statement(ops["mul"], (0, 1))], [2])
    statements = [
        Statement(ops["parameter"]),
        Statement(ops["input"]),
        Statement(ops["scan"], (0, 1), {"body": 0, "carries": 1, "length": 3}),
        Statement(ops["get_output"], (2,), {"index": 0}),
    ]
    program = Program(registry(), statements, opset=LATEST, functions=[body])
    w = np.array([2.0, 3.0])
    feeds = {0: w, 1: X[:, :2]}
    types = Net(feeds=feeds).types
    _, plan = plan_call(CompileRequest(program, types, Batch.of_program(program, types, [1], 3, [0, 1], [3]), LIMITS))
    value, jacobian_w, jacobian_x = EXECUTOR.run(plan, feeds)
    np.testing.assert_allclose(value, w**3 * X[:, :2], 1e-13)
    np.testing.assert_allclose(jacobian_x, np.broadcast_to(np.diag(w**3), (4, 2, 2)), 1e-13)
    np.testing.assert_allclose(jacobian_w, [np.diag(3 * w**2 * x) for x in X[:, :2]], 1e-13)


def wide(examples: int) -> tuple[Net, Batch]:
    """Build a batch of Jacobians of eight rows, each of which takes 8 kB per example."""
    net = Net()
    x, w = net.leaf(np.ones((examples, 8)), "input"), net.leaf(np.ones((8, 1000)))
    hidden = net.add("tanh", net.add("matmul", x, w))
    y = net.add("tanh", net.add("matmul", hidden, net.leaf(np.ones((1000, 8)))))
    return net, Batch.of_program(net.program, net.types, [x], y, [x])


def test_chunk_size_counts_all_examples() -> None:
    """All rows of one example fit in 1 MiB; those of a thousand examples do not."""
    few, many = (
        len(write_call(CompileRequest(net.program, net.types, call, LIMITS), chunk_bytes=1 << 20).graph.nodes)
        for net, call in map(wide, (1, 1000))
    )
    assert many > 2 * few


def test_smaller_chunks_are_used_if_memory_is_short() -> None:
    net, call = wide(1000)
    limits = replace(LIMITS, bytes=50 << 20)
    chunked, plan = plan_call(CompileRequest(net.program, net.types, call, limits))
    whole, whole_plan = plan_call(CompileRequest(net.program, net.types, call, LIMITS))
    assert len(chunked.graph.nodes) > len(whole.graph.nodes)
    assert plan.peak_bytes <= limits.bytes < whole_plan.peak_bytes


def test_jacobian_over_the_budget_is_refused_before_running() -> None:
    net = Net()
    x = net.leaf(np.ones((64, 512)), "input")
    y = net.add("tanh", x)
    call = Batch.of_program(net.program, net.types, [x], y, [x])
    with pytest.raises(OverBudget, match="byte"):
        plan_call(CompileRequest(net.program, net.types, call, Limits(bytes=64 * 512 * 512 * 8 - 1)))


def test_gradient_over_the_budget_is_planned_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A one-element output is not swept, so smaller chunks would give the same plan."""
    attempts = list[int]()

    def counted(*request: Any) -> Any:
        attempts.append(1)
        return write_call(*request)

    monkeypatch.setattr(compiler, "write_call", counted)
    net, x, w, y = layer()
    for output, count in ((net.add("sum", y), 1), (y, len(CHUNK_BYTES))):
        attempts.clear()
        with pytest.raises(OverBudget):
            plan_call(
                CompileRequest(
                    net.program,
                    net.types,
                    Batch.of_program(net.program, net.types, [x], output, [w]),
                    Limits(bytes=200),
                )
            )
        assert len(attempts) == count


def test_default_block_fits_all_rows() -> None:
    net, x, w, y = layer(64, 1 << 14)
    compiled = compile_sum(
        Compiler(LIMITS),
        CompileRequest(net.program, net.types, BatchSum.over_program(net.program, net.types, [x], y, [w]), LIMITS),
    )
    assert 1 < compiled.blocks.block < 1 << 14
    assert compiled.full_block.plan.peak_bytes <= BLOCK_BYTES
    loss = net.add("sum", y)
    scalar = BatchSum.over_program(net.program, net.types, [x], loss, [w])
    assert (
        compile_sum(Compiler(LIMITS), CompileRequest(net.program, net.types, scalar, LIMITS)).blocks.block
        > compiled.blocks.block
    )


@pytest.mark.parametrize("sums", [False, True])
def test_opset_1_has_no_batch_jacobian(sums: bool) -> None:
    net, x, w, y = layer()
    program = Program(net.program.registry, net.statements)
    make = BatchSum.over_program if sums else Batch.of_program
    with pytest.raises(NonScalarOutput) as caught:
        plan_call(CompileRequest(program, net.types, make(program, net.types, [x], y, [w]), LIMITS))
    assert caught.value.node == y
    assert str(caught.value).endswith(
        'has shape [2], but batch computes Jacobians only since opset 2: add "opset": 2 to the graph, which uses opset '
        "1, or reduce this node to one element (sum, mean)"
    )


@pytest.mark.parametrize(
    ("of", "wrt", "code", "sentence"),
    [
        (
            4,
            [0],
            "dtype_mismatch",
            "node 4 (mul): of names this node, which is complex128: matrices are real",
        ),
        (
            5,
            [3],
            "dtype_mismatch",
            "node 3 (make_complex): wrt names this node, which is complex128: matrices are real",
        ),
        (6, [0], "not_differentiable", "node 6 (argsort): of names this node, whose dtype int64 has no derivatives"),
        (5, [6], "not_differentiable", "node 6 (argsort): wrt names this node, whose dtype int64 has no derivatives"),
    ],
)
@pytest.mark.parametrize("sums", [False, True])
def test_complex_and_integer_nodes_have_no_batch_jacobian(
    of: int, wrt: list[int], code: str, sentence: str, sums: bool
) -> None:
    net = Net()
    a, b, x = net.leaf(np.ones(2)), net.leaf(np.ones(2)), net.leaf(X[:, :2], "input")
    z = net.add("make_complex", a, b)
    net.add("real", net.add("mul", z, x))
    net.add("argsort", b, axis=0)
    make = BatchSum.over_program if sums else Batch.of_program
    with pytest.raises(EngineError) as caught:
        net.ask(make(net.program, net.types, [x], of, wrt, [5]))
    is_total = sums and of == 6  # integers have no sum either
    assert caught.value.code == ("dtype_mismatch" if is_total else code)
    if not is_total:
        assert str(caught.value).startswith(sentence)
