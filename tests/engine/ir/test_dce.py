"""Dead code: nodes that no output depends on are removed, the rest keeps its order and its origin."""

from __future__ import annotations

from engine import registry
from engine.ir.passes import Allowance, dce
from engine.ir.text import parse_graph, print_graph
from tests.engine.ir.deadlines import assert_stops


def without_dead_code(text: str) -> str:
    return print_graph(dce(parse_graph(text, registry())))


def test_dead_nodes_are_removed_and_the_rest_renumbered() -> None:
    assert without_dead_code(
        '%0 = parameter {"feed": 0} : float64[2]\n'
        '%1 = parameter {"feed": 1} : float64[2]\n'
        "%2 = sin(%1) : float64[2]\n"
        "%3 = exp(%0) : float64[2]\n"
        "%4 = cos(%2) : float64[2]\n"
        "%5 = neg(%3) : float64[2]\n"
        "return %5, %3"
    ) == print_graph(
        parse_graph(
            '%0 = parameter {"feed": 0} : float64[2]\n'
            "%1 = exp(%0) : float64[2]\n"
            "%2 = neg(%1) : float64[2]\n"
            "return %2, %1",
            registry(),
        )
    )


def test_graph_without_dead_nodes_is_returned_as_is() -> None:
    graph = parse_graph('%0 = parameter {"feed": 0} : float64[2]\n%1 = sin(%0) : float64[2]\nreturn %1', registry())
    assert dce(graph) is graph


def test_repeated_output_stays_repeated() -> None:
    graph = parse_graph('%0 = parameter {"feed": 0} : float64[]\n%1 = sin(%0) : float64[]\nreturn %0, %0', registry())
    assert dce(graph).outputs == (0, 0)
    assert len(dce(graph).nodes) == 1


def test_dce_checks_the_deadline() -> None:
    assert_stops(lambda graph, deadline: dce(graph, Allowance(deadline=deadline)))
