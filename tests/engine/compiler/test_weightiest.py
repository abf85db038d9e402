"""What a refusal names: the node that most of the memory is for, where most is needed at once."""

from __future__ import annotations

import numpy as np

from engine import Gradients, Limits, Values
from engine.compiler.body_plans import optimise_and_plan_bodies
from engine.compiler.compiler import CompileRequest, write_call
from engine.compiler.plan import peak_memory_node
from engine.ir.passes import Allowance
from tests.engine.autodiff.calls.asking import Net
from tests.engine.looping import Writer, written


def heaviest(net: Net, *, gradients: bool = False) -> tuple[int, bool]:
    """The node, and whether that is said of the way back."""
    program = net.program
    call = Gradients.of_program(program) if gradients else Values.of_program(program)
    graph = write_call(CompileRequest(program, net.types, call, Limits())).graph
    found = peak_memory_node(optimise_and_plan_bodies(graph, Limits(), Allowance()))
    assert found is not None
    return found.node, found.backward


def test_the_largest_of_those_that_are_there_at_once() -> None:
    net = Net()
    x = net.leaf(np.zeros((10, 1)))
    wide = net.add("mul", x, net.leaf(np.zeros((1, 1000))))
    narrow = net.add("max", wide, axes=[1])
    assert narrow == net.last
    assert heaviest(net) == (wide, False)


def test_what_is_fed_counts() -> None:
    net = Net()
    x = net.leaf(np.zeros((100, 100)), "input")
    net.add("exp", net.add("max", x))
    assert heaviest(net) == (x, False)


def test_the_way_back_is_told_by_the_node_that_it_passes() -> None:
    net = Net()
    x = net.leaf(np.zeros((100, 1)))
    y = net.add("mul", x, net.leaf(np.ones((1, 100))))
    net.add("max", net.add("sum", y, axes=[0]))
    assert heaviest(net, gradients=True)[1] is False


def test_what_a_loop_works_in_is_the_loops() -> None:
    def large(g: Writer, x: int) -> list[int]:
        wide = g.mul(g.reshape(x, shape=[100, 1]), g.reshape(x, shape=[1, 100]))
        return [g.mean(g.cumsum(wide, axis=0), axes=[1])]

    def looped(g: Writer, x: int) -> list[int]:
        found: list[int] = g.scan(g.exp(x), body=large, carries=1, length=5)
        return found

    asked = written(looped, np.zeros(100), floats=())
    call = Values.of_program(asked.program, asked.results)
    graph = optimise_and_plan_bodies(
        write_call(CompileRequest(asked.program, asked.types, call, Limits())).graph, Limits(), Allowance()
    )
    found = peak_memory_node(graph)
    assert found is not None
    assert found.op == "scan"


def test_nobody_is_named_for_what_is_nobodys() -> None:
    net = Net()
    net.add("exp", net.leaf(np.zeros(3)))
    graph = write_call(CompileRequest(net.program, net.types, Values.of_program(net.program), Limits())).graph
    bare = graph.with_nodes([node._replace(origin=None) for node in graph.nodes], graph.outputs)
    assert peak_memory_node(bare) is None
