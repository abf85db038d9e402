"""Dead code: what no output depends on goes, the rest keeps its order and its origin."""

from __future__ import annotations

from engine import registry
from engine.ir.passes import Allowance, dce
from engine.ir.text import parse_graph, print_graph
from tests.engine.ir.deadlines import assert_stops


def cut(text: str) -> str:
    return print_graph(dce(parse_graph(text, registry())))


def test_what_nobody_reads_goes_and_what_is_behind_it_moves_up() -> None:
    assert cut(
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


def test_a_graph_of_which_all_is_read_is_the_same_object() -> None:
    graph = parse_graph('%0 = parameter {"feed": 0} : float64[2]\n%1 = sin(%0) : float64[2]\nreturn %1', registry())
    assert dce(graph) is graph


def test_an_output_that_is_asked_for_twice_stays_twice() -> None:
    graph = parse_graph('%0 = parameter {"feed": 0} : float64[]\n%1 = sin(%0) : float64[]\nreturn %0, %0', registry())
    assert dce(graph).outputs == (0, 0)
    assert len(dce(graph).nodes) == 1


def test_the_time_is_looked_at() -> None:
    assert_stops(lambda graph, deadline: dce(graph, Allowance(deadline=deadline)))
