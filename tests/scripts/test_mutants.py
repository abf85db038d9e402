"""Mutation testing: which mutants a source yields, how they are applied, and the report."""

from __future__ import annotations

import importlib.util
import io
import os
import select
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import cast

import pytest

from engine import registry
from engine.ir.attributes import Attr
from engine.ir.graph import RuleCache
from scripts.mutants import Measured, Session, Tally, forked, measure_all, options, report, spread
from scripts.mutants_apply import FunctionKey, NotApplied, alive, apply, changed
from scripts.mutants_cost import only_for_costs
from scripts.mutants_find import Mutant, find_mutants

Load = Callable[[str], tuple[ModuleType, list[Mutant]]]


@pytest.fixture
def load(tmp_path: Path) -> Iterator[Load]:
    """Return a function that loads a module from its text, with its mutants."""
    path = tmp_path / "mutated.py"

    def load(text: str) -> tuple[ModuleType, list[Mutant]]:
        path.write_text(text)
        spec = importlib.util.spec_from_file_location("mutated", path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules["mutated"] = module
        spec.loader.exec_module(module)
        return module, find_mutants(path)

    yield load
    del sys.modules["mutated"]


def mutant_labels(mutants: list[Mutant]) -> list[str]:
    return [f"{m.kind}: {m.shown[0]} → {m.shown[1]}" for m in mutants]


@pytest.mark.parametrize(
    ("text", "mistakes"),
    [
        ("y = -x", ["sign: -x → x"]),
        ("y = not x", ["sign: not x → x"]),
        ("y = lambda x: x", ["sign: lambda x: x → lambda x: -x"]),
        ("def vjp(g):\n    return (g, None)", ["sign: (g, None) → (-g, None)"]),
        ("n = x.shape[1]", ["constant: x.shape[1] → x.shape[2]", "axis: x.shape[1] → x.shape[0]"]),
        ("n = -2", ["constant: -2 → -1", "sign: -2 → 2"]),
        ("y = f(x, axis=i)", ["axis: f(x, axis=i) → f(x)"]),
        ("n = 2", ["constant: 2 → 3"]),
        ("y = True", ["constant: True → False"]),
        ("y = a < b <= c", ["comparison: a < b <= c → a <= b <= c", "comparison: a < b <= c → a < b < c"]),
        ("y = a is None", ["comparison: a is None → a is not None"]),
        ("if a:\n    b", ["comparison: a → not a"]),
        ("y = a @ b", ["operator: a @ b → a * b"]),
        ("y = a and b", ["operator: a and b → a or b"]),
    ],
    ids=str,
)
def test_source_yields_mutants(tmp_path: Path, text: str, mistakes: list[str]) -> None:
    path = tmp_path / "a.py"
    path.write_text(text)
    assert mutant_labels(find_mutants(path)) == mistakes


@pytest.mark.parametrize(
    "text",
    [
        '"""Documented: 1 + 1."""',
        "x: Literal[1]",
        "def f(x: Literal[1]) -> Literal[2]: ...",
        "def flops():\n    return 1 + 1",
        "samples = (1, 2)",
        "truths = (Truth([1.0], [2.0]),)",
        "_X = 1\ndef _made(x):\n    return (x + 1,)\nclass C:\n    truths = _made(_X)",
        "case = Sample(Real(2, 3))",
        "raise ValueError(f'{n + 1} of {m}')",
        "zip(a, b, strict=True)",
        "if TYPE_CHECKING:\n    n = 1",
        "most = 1e30",
    ],
)
def test_irrelevant_source_yields_no_mutants(tmp_path: Path, text: str) -> None:
    path = tmp_path / "a.py"
    path.write_text(text)
    assert mutant_labels(find_mutants(path)) == []


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("_X = 1\nclass C:\n    samples = _X\n    n = _X\n", 1),
        ("X = 2\nclass C:\n    samples = X\n", 2),
        ("@in_a_table\ndef _f():\n    return 3\n", 3),
        ("def _f():\n    return 4\ndef g():\n    return _f()\n", 4),
    ],
)
def test_shared_definition_yields_mutant(tmp_path: Path, text: str, number: int) -> None:
    path = tmp_path / "a.py"
    path.write_text(text)
    assert mutant_labels(find_mutants(path)) == [f"constant: {number} → {number + 1}"]


def test_only_for_costs_finds_cost_functions() -> None:
    texts = [
        "def flops():\n    return deep() + shared() + recursive()\ndef workspace():\n    return x.stated\n",
        "def deep():\n    return deeper()\ndef deeper():\n    return 1\ndef recursive():\n    return recursive()\n",
        "class C:\n    def stated(self):\n        return 1\n    def unused(self):\n        return 1\n",
        "def shared():\n    return 1\ndef forward(deep):\n    return deep + shared()\nforward()\n",
    ]
    assert only_for_costs(texts) == {"flops", "workspace", "deep", "deeper", "recursive", "stated"}


@pytest.mark.slow
def test_mutant_name_omits_line(load: Load) -> None:
    _, (mutant,) = load("class C:\n    def f(self, a, b):\n        return a + b\n")
    assert str(mutant).endswith("/mutated.py C.f: `a + b` → `a - b`")


def apply_mutant(module: ModuleType, mutant: Mutant) -> None:
    apply(mutant, module, alive([mutant.path]))


@pytest.mark.slow
def test_imported_function_is_mutated(load: Load) -> None:
    module, (mutant,) = load("def f(a, b):\n    return [a + x for x in b]\n")
    imported = module.f
    apply_mutant(module, mutant)
    assert imported(5, [2]) == [3]


@pytest.mark.parametrize(("number", "values"), [(0, [-3, 3]), (1, [3, -3])])
def test_one_of_two_equal_functions_is_mutated(load: Load, number: int, values: list[int]) -> None:
    module, mutants = load("class C:\n    table = (lambda x: x, lambda x: x)\n")
    apply_mutant(module, mutants[number])
    assert [f(3) for f in module.C.table] == values


def test_imported_constant_is_mutated(load: Load) -> None:
    module, (mutant,) = load("LIMIT = 1000\ndef f():\n    return LIMIT\n")
    other = ModuleType("other")
    vars(other)["LIMIT"] = module.LIMIT
    sys.modules["other"] = other
    try:
        apply_mutant(module, mutant)
    finally:
        del sys.modules["other"]
    assert module.f() == vars(other)["LIMIT"] == 1001


def test_derived_constants_are_recomputed(load: Load) -> None:
    module, mutants = load(
        "A = 2\nB = tuple(A * k for k in (1, 3))\nC = B[1] + 1\nD = [A]\ndef f():\n    return B, C\n"
    )
    apply_mutant(module, mutants[0])
    assert module.f() == ((3, 9), 10)
    assert module.D == [2]


def test_default_argument_is_mutated(load: Load) -> None:
    module, (mutant,) = load("class C:\n    def f(self, n=1):\n        return n\n")
    apply_mutant(module, mutant)
    assert module.C().f() == 2


def test_shared_declaration_is_mutated(load: Load) -> None:
    module, mutants = load(
        "from engine.ir.attributes import Attr\nAXIS = Attr('int', 0, 'one')\nclass C:\n    attrs = {'axis': AXIS}\n"
    )
    apply_mutant(module, mutants[0])
    assert module.C.attrs["axis"] == Attr("int", 1, "one")


def test_mutant_can_add_attributes(load: Load) -> None:
    module, mutants = load(
        "from engine.ir.attributes import Attr\nMORE = {'b': Attr('int')}\n"
        "class C:\n    attrs = {'a': Attr('int'), **(MORE if False else {})}\n"
    )
    (mutant,) = (m for m in mutants if m.kind == "constant" and "True" in m.shown[1])
    apply_mutant(module, mutant)
    assert sorted(module.C.attrs) == ["a", "b"]


def test_mutant_does_not_change_file_or_tree(load: Load) -> None:
    text = "def f(a, b):\n    return a + b\n"
    module, (mutant,) = load(text)
    apply_mutant(module, mutant)
    assert mutant.path.read_text() == text
    assert mutant_labels(find_mutants(mutant.path)) == mutant_labels([mutant])


def test_later_mutant_applies_to_same_function(load: Load) -> None:
    module, mutants = load("def f(a, b):\n    return -(a * b)\n")
    apply_mutant(module, mutants[-1])
    assert module.f(6, 3) == -2


def test_inapplicable_mutant_raises(load: Load) -> None:
    module, (mutant,) = load("def f(a, b):\n    return a + b\n")
    with pytest.raises(NotApplied, match="cannot apply"):
        apply(mutant, module, {})


def test_fork_reports_result_exception_or_death() -> None:
    def fails() -> None:
        raise ZeroDivisionError

    outcomes = dict(forked([lambda: "well", fails, lambda: os._exit(1), lambda: None], 2))
    assert outcomes[0] == "well"
    assert isinstance(outcomes[1], ZeroDivisionError)
    assert isinstance(outcomes[2], EOFError)
    assert outcomes[3] is None


def test_forks_run_concurrently_and_share_earlier_results() -> None:
    finished: list[int] = []
    reading, writing = os.pipe()

    def waits() -> bool:
        return select.select([reading], [], [], 20)[0] == [reading]

    outcomes = {}
    for number, outcome in forked(iter([waits, lambda: os.write(writing, b"x"), lambda: list(finished)]), 2):
        outcomes[number] = outcome
        finished.append(number)
    os.close(reading)
    os.close(writing)
    assert outcomes[0], "the second ran while the first waited for it"
    assert outcomes[2], "the third began when another had ended"


def make_session(*arguments: str) -> Session:
    return Session(options().parse_args(arguments), io.StringIO())


def test_only_option_accepts_several_texts(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_text("y = -x\nn = x.shape[1]\nz = a + b\n")
    assert mutant_labels(make_session("--only", "sign ", "a + b", "--jobs", "1").mutants(path)) == [
        "sign: -x → x",
        "operator: a + b → a - b",
    ]
    assert len(make_session().mutants(path)) == 4


@dataclass(frozen=True)
class FakeItem:
    nodeid: str


@pytest.mark.slow
def test_failing_baseline_tests_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("scripts.mutants.passes", lambda item: item.nodeid == "well")
    items = [cast("pytest.Item", FakeItem(name)) for name in ("one", "well", "two")]
    assert [m.called for m in measure_all(items[1:2], [], 1)] == [set()]
    with pytest.raises(AssertionError, match="one, two: failing as it is"):
        measure_all(items, [], 1)


@pytest.mark.slow
def test_caches_are_cleared_between_tests(load: Load, monkeypatch: pytest.MonkeyPatch) -> None:
    module, mutants = load("from functools import cache\n@cache\ndef f(x):\n    return x + 1\n")
    shapes = RuleCache(lambda op, types, attrs: module.f(len(types)))
    monkeypatch.setattr("scripts.mutants.passes", lambda item: shapes(registry().ops["sin"], (), {}) == module.f(0))
    items = [cast("pytest.Item", FakeItem(name)) for name in ("first", "again")]
    assert [m.called for m in measure_all(items, [module], 1)] == [set(changed(mutants[0]))] * 2
    monkeypatch.setattr("scripts.mutants.cache_clearers", lambda modules: [])
    assert measure_all(items, [module], 1)[1].called == set()


def test_tests_are_ordered_by_kills_topic_and_time(load: Load) -> None:
    _, mutants = load("def f(a, b):\n    return -(a * b)\n")
    session = make_session("--seconds", "5")
    (key,) = changed(mutants[0])
    own_test = f"tests/test_{mutants[0].path.stem}.py::test_it"
    times = {"slow": 2.0, "quick": 1.0, "too slow": 4.0, own_test: 1.5}
    session.items = [cast("pytest.Item", FakeItem(name)) for name in (*times, "calls nothing of it")]
    session.measure([*(Measured({key}, seconds) for seconds in times.values()), Measured(set(), 0.5)])
    assert [item.nodeid for _, item in session.concerned(mutants[0])] == [own_test, "quick", "slow"]
    session.note(mutants[0], "slow")
    assert [item.nodeid for _, item in session.concerned(mutants[1])] == ["slow", own_test, "quick"]


def test_killing_tests_fill_half_of_time_budget(load: Load) -> None:
    _, mutants = load("def f(a, b):\n    return -(a * b)\n")
    session = make_session("--seconds", "5")
    (key,) = changed(mutants[0])
    own_test = f"tests/test_{mutants[0].path.stem}.py::test_it"
    times = {"sharp": 1.5, "sharp, too": 1.5, "quick": 1.0, own_test: 1.4}
    session.items = [cast("pytest.Item", FakeItem(name)) for name in times]
    session.measure([Measured({key}, seconds) for seconds in times.values()])
    for killer in ("sharp", "sharp", "sharp, too"):
        session.note(mutants[0], killer)
    assert [item.nodeid for _, item in session.concerned(mutants[1])] == ["sharp", own_test, "quick"]


def test_tests_naming_file_or_op_precede_folder_tests(load: Load) -> None:
    _, mutants = load('class Op:\n    name = "double"\n    factor = 2\n')
    (path,) = {mutant.path for mutant in mutants}
    session, folder_test = make_session(), f"tests/engine/{path.parent.name}/test_others.py::test_it"
    own_test = f"tests/golden/test_{path.stem}.py::test_it"
    ids = ["tests/golden/quick", folder_test, f"tests/golden/{path.stem}", "tests/engine/passes/slow[double]", own_test]
    session.items = [cast("pytest.Item", FakeItem(name)) for name in ids]
    key = FunctionKey(str(path), "any", 0)
    session.measure([*(Measured({key}, seconds) for seconds in (1.0, 2.0, 3.0)), *[Measured(set(), 4.0)] * 2])
    assert [item.nodeid for _, item in session.concerned(mutants[-1])] == [own_test, ids[2], ids[3], ids[1], ids[0]]


def test_module_level_mutant_prefers_tests_of_any_op(load: Load) -> None:
    _, mutants = load(
        'def f(x):\n    return x + 1\nclass Op:\n    name = "double"\nclass Other:\n    name = "triple"\n'
    )
    session = make_session()
    session.items = [
        cast("pytest.Item", FakeItem(name)) for name in ("tests/quick", "tests/slow[double]", "tests/slower[triple]")
    ]
    session.measure([Measured({*changed(mutants[0])}, seconds) for seconds in (1.0, 2.0, 3.0)])
    assert [seconds for seconds, _ in session.concerned(mutants[0])] == [2.0, 3.0, 1.0]


def test_constant_mutant_runs_all_module_tests(load: Load) -> None:
    """Cover a function that only runs while the module loads."""
    _, mutants = load("SERIES = tuple(k * k for k in range(3))\ndef f(x):\n    return -x\n")
    (mutant,) = (m for m in mutants if m.kind == "operator")
    session = make_session()
    session.items = [cast("pytest.Item", FakeItem(name)) for name in ("calls f", "calls nothing")]
    (f,) = changed(mutants[-1])
    session.measure([Measured({f}, 1.0), Measured(set(), 2.0)])
    assert [item.nodeid for _, item in session.concerned(mutant)] == ["calls f"]


def test_dead_process_counts_as_kill_and_not_applied_raises(load: Load) -> None:
    _, (mutant,) = load("y = 1\n")
    session = make_session()
    for outcome in ("a test", EOFError(), None):
        session.note(mutant, outcome)
    assert session.tally.tried.total() == 3
    assert session.tally.survivors == [mutant]
    with pytest.raises(NotApplied):
        session.note(mutant, NotApplied())


def make_tally(mutant: Mutant, killed: int, survived: int) -> Tally:
    counted = Tally()
    for killer in [*["a test"] * killed, *[None] * survived]:
        counted.add(mutant, killer)
    return counted


def test_report_counts_killed_mutants(load: Load) -> None:
    _, (mutant,) = load("y = 1\n")
    assert "all               20      19   95.0%" in report(make_tally(mutant, 19, 1))


def test_mutant_sample_is_evenly_spread() -> None:
    assert spread(range(10), 4) == [0, 2, 5, 7]
    assert spread("abc", 3) == spread("abc", 4) == ["a", "b", "c"]
