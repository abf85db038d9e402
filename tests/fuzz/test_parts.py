"""The parts of the fuzzer: drawing requests, tolerating differences, and shrinking and storing findings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engine import Builder, EngineError, Limits, TensorType, registry
from engine.codegen.native.machine_code import KernelStore
from engine.compiler.plan import Plan, Step, make_plan
from engine.runtime.numpy_backend import NumPyExecutor
from service.api.calls import calls
from tests.fuzz.asking import planned
from tests.fuzz.differing import Tolerated, first_difference, is_exact, same_bits
from tests.fuzz.graphs import CALLS, Request, random_request, tensor_of
from tests.fuzz.keeping import Kept
from tests.fuzz.shrink import array_of, shrunk
from tests.fuzz.trying import try_request
from tests.fuzz.values import Array


def nodes(request: Request) -> list[dict[str, Any]]:
    graph_nodes: list[dict[str, Any]] = request.body["graph"]["nodes"]
    return graph_nodes


def all_nodes(request: Request) -> list[dict[str, Any]]:
    """The nodes of a request and of its functions."""
    return [node for part in (request.body["graph"], *functions(request)) for node in part["nodes"]]


def functions(request: Request) -> list[dict[str, Any]]:
    graph_functions: list[dict[str, Any]] = request.body["graph"].get("functions", [])
    return graph_functions


def nesting_depth(functions_of_graph: list[dict[str, Any]]) -> int:
    """The depth of nested functions."""
    depths: list[int] = []
    for function in functions_of_graph:
        calls = [(registry().ops[node["op"]].functions, node.get("attrs", {})) for node in function["nodes"]]
        inner = [depths[attrs[name]] for names, attrs in calls for name in names if name in attrs]
        depths.append(1 + max(inner, default=0))
    return max(depths)


def steps_within(plan: Plan) -> Iterator[Step]:
    """The steps of a plan and of its bodies."""
    for step in plan.steps:
        yield step
        for body in step.op.runs:
            yield from steps_within(body)


# ---------------------------------------------------------------- random requests

#: plan ops that run functions, all of which must be drawn
LOOPS = {"scan", "while", "cond", "counted_scan"}
#: lengths and attributes of loops, all of which must be drawn
LENGTHS = {0, 1, 2, 3, 33}
CHOICES = ("reverse", "recompute", "derivative", "at_once")


def test_every_call_has_a_share() -> None:
    assert CALLS.keys() == calls().keys()
    assert sum(share for share, _ in CALLS.values()) == pytest.approx(1)


@pytest.mark.slow
def test_every_op_rank_and_long_line_is_drawn() -> None:
    drawn, lines, ranks = Counter[str](), 0, set[int]()
    for number in range(600):
        request = random_request(1, number)
        drawn.update(node["op"] for node in all_nodes(request))
        shapes = [array_of(feed["tensor"]).shape for feed in request.body.get("feeds", ())]
        lines += any(16_384 < size < 20_480 for size in map(np.prod, shapes))
        ranks.update(map(len, shapes))
    assert registry().ops.keys() == drawn.keys()
    assert lines > 60
    assert ranks >= set(range(7))


def test_request_is_reproducible_from_its_seed() -> None:
    assert random_request(3, 14) == random_request(3, 14)
    assert random_request(3, 14) != random_request(3, 15)


@pytest.mark.slow
def test_most_random_requests_are_valid() -> None:
    refused = 0
    for number in range(60):
        try:
            planned(random_request(2, number))
        except EngineError:
            refused += 1
    assert refused < 10


@pytest.mark.slow
def test_all_kinds_of_nested_functions_are_drawn() -> None:
    depths, others, loops = Counter[int](), Counter[str](), Counter[str]()
    lengths, attrs = set[int](), Counter[str]()

    def is_all_drawn() -> bool:
        whole = len(depths) == 3 and len(others) == 3 and loops.keys() >= LOOPS
        return whole and lengths >= LENGTHS and all(attrs[name] for name in CHOICES)

    for number in range(250):
        request = random_request(4, number)
        run = [node for node in all_nodes(request) if registry().ops[node["op"]].functions]
        lengths |= {node["attrs"]["length"] for node in run if "length" in node["attrs"]}
        attrs.update(name for node in run for name, value in node["attrs"].items() if value is not False)
        if not functions(request):
            continue
        with suppress(EngineError):
            result = planned(request)
            others.update([*result.others])
            loops.update(step.op.name for step in result.plan.steps if step.op.runs)
            depths[nesting_depth(functions(request))] += 1
        if number >= 100 and is_all_drawn():
            break  # planning takes nearly all of the time
    assert depths.keys() == {1, 2, 3}, depths
    assert lengths >= LENGTHS
    assert all(attrs[name] for name in CHOICES), attrs
    assert others.keys() == {"exported", "written out", "less memory"}, others
    assert loops.keys() >= LOOPS, loops


def looped_request() -> Request:
    """The gradient of a scan of scans, y ← sin(exp(y·x)) three times five; and an unused function."""
    inner = {
        "nodes": [
            {"op": "input"},
            {"op": "input"},
            {"op": "mul", "operands": [0, 1]},
            {"op": "exp", "operands": [2]},
            {"op": "sin", "operands": [3]},
        ],
        "outputs": [4],
    }
    outer = {
        "nodes": [
            {"op": "input"},
            {"op": "input"},
            {"op": "scan", "operands": [0, 1], "attrs": {"body": 0, "carries": 1, "length": 3}},
            {"op": "get_output", "operands": [2], "attrs": {"index": 0}},
        ],
        "outputs": [3],
    }
    nodes = [
        {"op": "parameter"},
        {"op": "parameter"},
        {"op": "scan", "operands": [0, 1], "attrs": {"body": 2, "carries": 1, "length": 5}},
        {"op": "get_output", "operands": [2], "attrs": {"index": 0}},
        {"op": "sum", "operands": [3]},
    ]
    graph = {"opset": 2, "functions": [inner, inner, outer], "nodes": nodes}
    feeds = [tensor_of(0, np.linspace(0.5, 1.0, 4)), tensor_of(1, np.linspace(1.0, 2.0, 4))]
    return Request("gradients", {"graph": graph, "feeds": feeds, "of": 4})


@pytest.mark.slow
def test_wrong_loop_gradient_differs_from_the_unrolled_loop(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def tried() -> list[str]:
        return [finding.way for finding in try_request(looped_request(), [], KernelStore(tmp_path)).findings]

    assert tried() == []
    scan = registry().ops["scan"]
    right: Any = scan.vjp

    def wrong(*given: Any, **attrs: Any) -> list[Any]:
        return [None if g is None else g * (1 + 1e-9) for g in right(*given, **attrs)]

    monkeypatch.setattr(scan, "vjp", wrong)
    assert tried() == ["written out"]


# ---------------------------------------------------------------- tolerated differences


def tolerated(op: str, *arrays: Array, **attrs: Any) -> Tolerated:
    """The tolerance for the results of one op."""
    builder = Builder(registry())
    first, *others = (builder.leaf(TensorType.of(x), i) for i, x in enumerate(arrays))
    plan = make_plan(builder.graph([getattr(first, op)(*others, **attrs)]), Limits())
    feeds = dict(enumerate(arrays))
    return Tolerated(plan, feeds, NumPyExecutor().interpret(plan, feeds))


def test_bit_comparison_treats_all_nans_as_equal() -> None:
    x = np.array([0.0, np.nan, 1.0], "float32")
    assert same_bits(x, np.array([0.0, -np.nan, 1.0], "float32"))
    assert not same_bits(x, np.array([-0.0, np.nan, 1.0], "float32"))
    assert not same_bits(x, x.astype("float64"))
    assert "first at [2]" in str(first_difference([x], [np.array([0.0, np.nan, 1.0000001], "float32")]))
    assert first_difference([x], [x.copy()]) is None


def test_reordered_sum_passes_and_incomplete_sum_does_not() -> None:
    x = np.random.default_rng(0).uniform(0.5, 1.5, 16_400).astype("float32")
    tolerance = tolerated("sum", x)
    assert tolerance.difference([np.asarray(np.cumsum(x)[-1])]) is None
    assert tolerance.difference([np.asarray(x[:-1].sum())])


def test_cancellation_widens_the_tolerance() -> None:
    x = np.array([1e8, 1.0, -1e8, 1.0], "float32")
    assert tolerated("sum", x).difference([np.asarray(np.float32(0))]) is None
    assert tolerated("sum", np.abs(x)).difference([np.asarray(np.float32(2.001e8))])


def test_cancellation_within_a_row_widens_the_tolerance() -> None:
    """The logarithm of a sum near one inherits the sum's rounding error, in a result of any size."""
    x = np.full((2, 8), 0.5)
    x[0, 5] = 8.8236
    tolerance = tolerated("log_softmax", x)
    (expected,) = tolerance.expected
    for eps, passes in ((1, True), (1000, False)):
        actual = expected.copy()
        actual[0, 5] += eps * np.finfo("float64").eps
        assert (tolerance.difference([actual]) is None) == passes
    actual = expected.copy()
    actual[1, 5] *= 1 + 1000 * np.finfo("float64").eps
    assert tolerance.difference([actual])


@pytest.mark.parametrize(
    ("x", "wrong"), [(1.0, 2.71829), (1.0, np.nan), (1.0, np.inf), (np.inf, 1.0), (-np.inf, 0.5), (np.nan, 1.0)]
)
def test_wrong_element_does_not_pass(x: float, wrong: float) -> None:
    tolerance = tolerated("exp", np.array([0.5, x, 0.25], "float32"))
    (actual,) = (array.copy() for array in tolerance.expected)
    assert tolerance.difference([actual]) is None
    actual[1] = wrong
    assert tolerance.difference([actual])


def test_overflow_that_depends_on_the_last_bit_passes() -> None:
    tolerance = tolerated("exp", np.array([88.722839, 0.0], "float32"))
    for y in (3.4027e38, np.inf):
        assert tolerance.difference([np.array([y, 1.0], "float32")]) is None
    assert tolerance.difference([np.array([1e38, 1.0], "float32")])


def test_ops_that_move_or_select_are_exact() -> None:
    exact = {name for name, op in registry().ops.items() if is_exact(op)}
    assert exact >= {"transpose", "gather", "max", "sort", "pad", "where", "neg", "argmax", "less"}
    assert not exact & {"add", "sin", "sum", "matmul", "softmax", "cumsum"}


# ---------------------------------------------------------------- findings


def large_request() -> Request:
    """A few ops and numbers, of which one op and one number matter."""
    x = np.random.default_rng(0).normal(size=(6, 40)).astype("float32")
    x[5, 39] = 1e7
    nodes = [
        {"op": "parameter"},
        {"op": "exp", "operands": [0]},
        {"op": "sin", "operands": [0]},
        {"op": "mul", "operands": [1, 2]},
        {"op": "sum", "operands": [3], "attrs": {"axes": [1]}},
        {"op": "sum", "operands": [4]},
    ]
    return Request("gradients", {"graph": {"nodes": nodes}, "feeds": [tensor_of(0, x)], "of": 5, "outputs": [5, 3]})


def test_failing_request_is_shrunk() -> None:
    def fails(request: Request) -> bool:
        planned(request)
        ops = {node["op"] for node in nodes(request)}
        return "sin" in ops and any((array_of(f["tensor"]) > 1e6).any() for f in request.body["feeds"])

    small = shrunk(large_request(), fails, 60.0)
    assert [node["op"] for node in nodes(small)] == ["parameter", "sin"]
    (feed,) = small.body["feeds"]
    assert array_of(feed["tensor"]).shape == (1, 1)


@pytest.mark.slow
def test_failing_request_with_functions_is_shrunk() -> None:
    def fails(request: Request) -> bool:
        with suppress(EngineError):
            return "sin" in {step.op.name for step in steps_within(planned(request).plan)}
        return False

    small = shrunk(looped_request(), fails, 60.0)
    assert small.call == "forward"
    assert [node["op"] for node in nodes(small)] == ["parameter", "parameter", "scan", "get_output"]
    assert nodes(small)[2]["attrs"]["length"] == 1
    inner, outer = functions(small)
    assert [node["op"] for node in inner["nodes"]] == ["input", "input", "sin"]
    assert [node["attrs"].get("length") for node in outer["nodes"] if node["op"] == "scan"] == [1]


def test_stored_finding_round_trips(tmp_path: Path) -> None:
    x = np.full(1000, 0.5)
    x[[3, 999]] = np.nan, -0.0
    body = {"graph": {"nodes": [{"op": "input"}]}, "feeds": [tensor_of(0, x)]}
    finding = Kept("why", Request("forward", body), None, [x])
    finding.write(tmp_path / "one.json")
    restored = Kept.read(tmp_path / "one.json")
    assert restored.request == finding.request
    assert restored.results[0].tobytes() == x.tobytes()
    assert (tmp_path / "one.json").stat().st_size < 1000
