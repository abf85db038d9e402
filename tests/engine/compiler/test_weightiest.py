"""The peak-memory node, which refusals name: the node that takes most memory at the peak."""

from __future__ import annotations

import numpy as np

from engine import Gradients, Limits, Values
from engine.compiler.body_plans import optimise_and_plan_bodies
from engine.compiler.compiler import CompileRequest, write_call
from engine.compiler.plan import peak_memory_node
from engine.ir.passes import Allowance
from tests.engine.autodiff.calls.asking import Net
from tests.engine.looping import Writer, written


def peak_node(net: Net, *, gradients: bool = False) -> tuple[int, bool]:
    """The peak-memory node, and whether it belongs to the backward pass."""
    program = net.program
    call = Gradients.of_program(program) if gradients else Values.of_program(program)
    graph = write_call(CompileRequest(program, net.types, call, Limits())).graph
    peak = peak_memory_node(optimise_and_plan_bodies(graph, Limits(), Allowance()))
    assert peak is not None
    return peak.node, peak.backward


def test_largest_live_value_is_named() -> None:
    net = Net()
    x = net.leaf(np.zeros((10, 1)))
    wide = net.add("mul", x, net.leaf(np.zeros((1, 1000))))
    narrow = net.add("max", wide, axes=[1])
    assert narrow == net.last
    assert peak_node(net) == (wide, False)


def test_peak_may_be_a_feed() -> None:
    net = Net()
    x = net.leaf(np.zeros((100, 100)), "input")
    net.add("exp", net.add("max", x))
    assert peak_node(net) == (x, False)


def test_peak_of_a_gradient_may_be_in_the_forward_pass() -> None:
    net = Net()
    x = net.leaf(np.zeros((100, 1)))
    y = net.add("mul", x, net.leaf(np.ones((1, 100))))
    net.add("max", net.add("sum", y, axes=[0]))
    assert peak_node(net, gradients=True)[1] is False


def test_loop_workspace_is_attributed_to_the_loop() -> None:
    def large(g: Writer, x: int) -> list[int]:
        wide = g.mul(g.reshape(x, shape=[100, 1]), g.reshape(x, shape=[1, 100]))
        return [g.mean(g.cumsum(wide, axis=0), axes=[1])]

    def looped(g: Writer, x: int) -> list[int]:
        results: list[int] = g.scan(g.exp(x), body=large, carries=1, length=5)
        return results

    case = written(looped, np.zeros(100), floats=())
    call = Values.of_program(case.program, case.results)
    graph = optimise_and_plan_bodies(
        write_call(CompileRequest(case.program, case.types, call, Limits())).graph, Limits(), Allowance()
    )
    peak = peak_memory_node(graph)
    assert peak is not None
    assert peak.op == "scan"


def test_no_node_is_named_without_an_origin() -> None:
    net = Net()
    net.add("exp", net.leaf(np.zeros(3)))
    graph = write_call(CompileRequest(net.program, net.types, Values.of_program(net.program), Limits())).graph
    bare = graph.with_nodes([node._replace(origin=None) for node in graph.nodes], graph.outputs)
    assert peak_memory_node(bare) is None
