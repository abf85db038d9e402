"""`batch` of what has several elements: the Jacobians of single examples, of which it is the stack, or the sum."""

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
    """tanh(x·w) of each x, which has three features."""
    net = Net()
    x, w = net.leaf(RNG.standard_normal((examples, 3)), "input"), net.leaf(RNG.standard_normal((3, units)))
    return net, x, w, net.add("tanh", net.add("matmul", x, w))


def singles(net: Net, mapped: list[int], of: int, wrt: list[int]) -> list[dict[tuple[int, ...], Array]]:
    """∂of/∂wrt of one example after the other, each by itself."""
    found = list[dict[tuple[int, ...], Array]]()
    for n in range(len(net.feeds[mapped[0]])):
        one = Net(net.statements, {node: a[n] if node in mapped else a for node, a in net.feeds.items()})
        blocks = kind(one.ask(Jacobian.of_program(one.program, wrt, [of])), "jacobian")
        found.append({(node,): blocks[of, node] for node in wrt})
    return found


def stacked(rows: list[dict[tuple[int, ...], Array]]) -> dict[tuple[int, ...], Array]:
    return {label: np.stack([row[label] for row in rows]) for label in rows[0]}


@together
@pytest.mark.slow
@each_op
def test_of_every_op_it_is_a_loop(case: Case) -> None:
    """By rows or by columns, whichever are fewer: a rule for many, of derivatives that were written for many."""
    net, wrt, (of, *_) = ends(case)
    stacks = zip(*(case.arrays(salt=salt) for salt in range(3)), strict=True)
    many = Net(net.statements, {i: np.stack(arrays) for i, arrays in enumerate(stacks)})
    mapped = list(many.feeds)
    wanted = singles(many, mapped, of, wrt)
    found = kind(many.ask(Batch.of_program(many.program, many.types, mapped, of, wrt, [of])), "gradients")
    for label, block in stacked(wanted).items():
        has_one = block.size == found[label].size and block.shape != found[label].shape
        np.testing.assert_allclose(found[label], block.reshape(found[label].shape) if has_one else block, 1e-9, 1e-11)


@pytest.mark.parametrize("units", [2, 9])
@pytest.mark.parametrize("chunks", [CHUNK_BYTES, (1,)])
def test_by_rows_and_by_columns_at_once_or_one_after_the_other(units: int, chunks: Any) -> None:
    """By what is mapped, what all share, and a node between: [N, of…, wrt…]. Nine units are more than features."""
    net, x, w, y = layer(units)
    between = net.statements[y].operands[0]
    for wrt in ([x], [w], [between], [x, w, between]):
        call = Batch.of_program(net.program, net.types, [x], y, wrt, [y])
        answer = net.ask(call, chunks=chunks)
        for label, wanted in stacked(singles(net, [x], y, wrt)).items():
            found = kind(answer, "gradients")[label]
            assert (found.shape, found.dtype) == (wanted.shape, wanted.dtype)
            np.testing.assert_allclose(found, wanted, 1e-12, 1e-14)
        assert kind(answer, "values")[(y,)].shape == (4, units)


@pytest.mark.parametrize("units", [2, 9])
@pytest.mark.parametrize("chunks", [CHUNK_BYTES, (1,)])
def test_reduced_it_is_the_sum_of_them(units: int, chunks: Any) -> None:
    net, x, w, y = layer(units)
    answer = net.ask(BatchSum.over_program(net.program, net.types, [x], y, [w]), chunks=chunks)
    wanted = stacked(singles(net, [x], y, [w]))[(w,)].sum(axis=0)
    np.testing.assert_allclose(kind(answer, "gradients")[(w,)], wanted, 1e-12, 1e-14)
    np.testing.assert_allclose(kind(answer, "values")[(y,)], np.tanh(net.feeds[x] @ net.feeds[w]).sum(0), 1e-12)


def test_what_no_example_changes_is_the_same_for_all() -> None:
    """∂(x·w)/∂x is wᵀ, whatever x is; and of what is no function of an example at all."""
    net = Net()
    x, w = net.leaf(X, "input"), net.leaf(W)
    y, z = net.add("matmul", x, w), net.add("square", w)
    found = kind(net.ask(Batch.of_program(net.program, net.types, [x], y, [x])), "gradients")[(x,)]
    np.testing.assert_array_equal(found, np.broadcast_to(W.T, (4, 2, 3)))
    found = kind(net.ask(Batch.of_program(net.program, net.types, [x], z, [w])), "gradients")[(w,)]
    np.testing.assert_array_equal(found, np.broadcast_to(np.diag(2 * W.ravel()).reshape(3, 2, 3, 2), (4, 3, 2, 3, 2)))


def test_what_has_one_element_has_gradients_whatever_its_shape() -> None:
    net = Net()
    x, w = net.leaf(X, "input"), net.leaf(W)
    loss = net.add("sum", net.add("square", net.add("matmul", x, w)), axes=[0], keepdims=True)
    found = kind(net.ask(Batch.of_program(net.program, net.types, [x], loss, [x])), "gradients")[(x,)]
    np.testing.assert_allclose(found, 2 * X @ W @ W.T, 1e-12)


def test_without_a_path_it_is_zeros_and_disconnected() -> None:
    net = Net()
    x, w, other = net.leaf(X, "input"), net.leaf(W), net.leaf(np.ones((2, 2), "float32"))
    y = net.add("matmul", x, w)
    for make, shape in ((Batch.of_program, (4, 2, 2, 2)), (BatchSum.over_program, (2, 2, 2))):
        call = make(net.program, net.types, [x], y, [w, other])
        assert plan_call(CompileRequest(net.program, net.types, call, LIMITS))[0].disconnected == (other,)
        found = kind(net.ask(call), "gradients")[(other,)]
        assert found.dtype == np.float32
        np.testing.assert_array_equal(found, np.zeros(shape), strict=False)
        assert found.shape == shape


@pytest.mark.parametrize(("examples", "units", "of"), [(0, 2, (2,)), (3, 0, (0,))])
def test_of_no_examples_and_of_nothing(examples: int, units: int, of: tuple[int, ...]) -> None:
    net, x, w, y = layer(units, examples)
    each = kind(net.ask(Batch.of_program(net.program, net.types, [x], y, [x, w])), "gradients")
    assert {found.shape for found in each.values()} == {(examples, *of, 3), (examples, *of, 3, units)}
    summed = kind(net.ask(BatchSum.over_program(net.program, net.types, [x], y, [w])), "gradients")[(w,)]
    np.testing.assert_array_equal(summed, np.zeros((*of, 3, units)))


def test_what_is_kept_is_what_is_answered() -> None:
    net, x, w, y = layer()
    call = keeping(Batch.of_program(net.program, net.types, [x], y, [w]), net.program, [y], [w])
    answer = net.ask(call, chunks=(1,))
    np.testing.assert_array_equal(kind(answer, "stored")[(w,)], kind(answer, "gradients")[(w,)])
    assert kind(answer, "stored")[(w,)].shape == (4, 2, 3, 2)


def test_a_loop_within_an_example() -> None:
    """w³ · x by a scan of three steps, by x a diagonal of w³, by w one of 3 w² x."""
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
    value, by_w, by_x = EXECUTOR.run(plan, feeds)
    np.testing.assert_allclose(value, w**3 * X[:, :2], 1e-13)
    np.testing.assert_allclose(by_x, np.broadcast_to(np.diag(w**3), (4, 2, 2)), 1e-13)
    np.testing.assert_allclose(by_w, [np.diag(3 * w**2 * x) for x in X[:, :2]], 1e-13)


def wide(examples: int) -> tuple[Net, Batch]:
    """Eight rows of a Jacobian, each of which holds 8 kB of every example."""
    net = Net()
    x, w = net.leaf(np.ones((examples, 8)), "input"), net.leaf(np.ones((8, 1000)))
    hidden = net.add("tanh", net.add("matmul", x, w))
    y = net.add("tanh", net.add("matmul", hidden, net.leaf(np.ones((1000, 8)))))
    return net, Batch.of_program(net.program, net.types, [x], y, [x])


def test_a_chunk_is_one_of_all_examples() -> None:
    """All rows of one example are within 1 MiB, and not those of a thousand."""
    few, many = (
        len(write_call(CompileRequest(net.program, net.types, call, LIMITS), chunk_bytes=1 << 20).graph.nodes)
        for net, call in map(wide, (1, 1000))
    )
    assert many > 2 * few


def test_it_goes_in_smaller_chunks_where_the_memory_is_small() -> None:
    net, call = wide(1000)
    few = replace(LIMITS, bytes=50 << 20)
    asked, plan = plan_call(CompileRequest(net.program, net.types, call, few))
    whole, most = plan_call(CompileRequest(net.program, net.types, call, LIMITS))
    assert len(asked.graph.nodes) > len(whole.graph.nodes)
    assert plan.peak_bytes <= few.bytes < most.peak_bytes


def test_it_is_refused_before_anything_runs() -> None:
    net = Net()
    x = net.leaf(np.ones((64, 512)), "input")
    y = net.add("tanh", x)
    call = Batch.of_program(net.program, net.types, [x], y, [x])
    with pytest.raises(OverBudget, match="byte"):
        plan_call(CompileRequest(net.program, net.types, call, Limits(bytes=64 * 512 * 512 * 8 - 1)))


def test_a_gradient_over_the_budget_is_planned_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """What has one element is not swept, so smaller chunks of it are the same again."""
    tried = list[int]()

    def counted(*asked: Any) -> Any:
        tried.append(1)
        return write_call(*asked)

    monkeypatch.setattr(compiler, "write_call", counted)
    net, x, w, y = layer()
    for of, count in ((net.add("sum", y), 1), (y, len(CHUNK_BYTES))):
        tried.clear()
        with pytest.raises(OverBudget):
            plan_call(
                CompileRequest(
                    net.program, net.types, Batch.of_program(net.program, net.types, [x], of, [w]), Limits(bytes=200)
                )
            )
        assert len(tried) == count


def test_a_block_by_default_has_room_for_all_rows() -> None:
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
def test_in_a_graph_of_opset_1_there_are_gradients_alone(sums: bool) -> None:
    net, x, w, y = layer()
    program = Program(net.program.registry, net.statements)
    make = BatchSum.over_program if sums else Batch.of_program
    with pytest.raises(NonScalarOutput) as found:
        plan_call(CompileRequest(program, net.types, make(program, net.types, [x], y, [w]), LIMITS))
    assert found.value.node == y
    assert str(found.value).endswith(
        'has shape [2], whose Jacobian batch gives since opset 2: say "opset": 2 in the graph, which is of opset 1, '
        "or reduce it to one element (sum, mean)"
    )


@pytest.mark.parametrize(
    ("of", "wrt", "code", "sentence"),
    [
        (
            4,
            [0],
            "dtype_mismatch",
            "node 4 (mul): of names this node, which is complex128: a matrix is of",
        ),
        (5, [3], "dtype_mismatch", "node 3 (make_complex): wrt names this node, which is complex128: a matrix is of"),
        (6, [0], "not_differentiable", "node 6 (argsort): of names this node, whose dtype int64 has no derivatives"),
        (5, [6], "not_differentiable", "node 6 (argsort): wrt names this node, whose dtype int64 has no derivatives"),
    ],
)
@pytest.mark.parametrize("sums", [False, True])
def test_what_has_no_matrix_is_refused(of: int, wrt: list[int], code: str, sentence: str, sums: bool) -> None:
    net = Net()
    a, b, x = net.leaf(np.ones(2)), net.leaf(np.ones(2)), net.leaf(X[:, :2], "input")
    z = net.add("make_complex", a, b)
    net.add("real", net.add("mul", z, x))
    net.add("argsort", b, axis=0)
    make = BatchSum.over_program if sums else Batch.of_program
    with pytest.raises(EngineError) as found:
        net.ask(make(net.program, net.types, [x], of, wrt, [5]))
    is_total = sums and of == 6  # of integers there is no sum either
    assert found.value.code == ("dtype_mismatch" if is_total else code)
    if not is_total:
        assert str(found.value).startswith(sentence)
