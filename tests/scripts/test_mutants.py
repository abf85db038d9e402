"""Mutation testing itself: what counts as a mistake, that it takes effect everywhere, and what the report says."""

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
from scripts.mutants import Measured, Session, Tally, forked, measure_all, options, report
from scripts.mutants_apply import FunctionKey, NotApplied, alive, apply, changed
from scripts.mutants_cost import only_for_costs
from scripts.mutants_find import Mutant, find_mutants

Load = Callable[[str], tuple[ModuleType, list[Mutant]]]


@pytest.fixture
def load(tmp_path: Path) -> Iterator[Load]:
    """Loads a module from its text; with it come its mutants."""
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


def names(mutants: list[Mutant]) -> list[str]:
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
def test_mistakes(tmp_path: Path, text: str, mistakes: list[str]) -> None:
    path = tmp_path / "a.py"
    path.write_text(text)
    assert names(find_mutants(path)) == mistakes


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
def test_what_has_no_meaning_for_a_result_is_left_alone(tmp_path: Path, text: str) -> None:
    path = tmp_path / "a.py"
    path.write_text(text)
    assert names(find_mutants(path)) == []


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("_X = 1\nclass C:\n    samples = _X\n    n = _X\n", 1),
        ("X = 2\nclass C:\n    samples = X\n", 2),
        ("@in_a_table\ndef _f():\n    return 3\n", 3),
        ("def _f():\n    return 4\ndef g():\n    return _f()\n", 4),
    ],
)
def test_what_others_may_read_is_not_left_out(tmp_path: Path, text: str, number: int) -> None:
    path = tmp_path / "a.py"
    path.write_text(text)
    assert names(find_mutants(path)) == [f"constant: {number} → {number + 1}"]


def test_what_costs_alone_use_is_for_the_laws_of_cost() -> None:
    texts = [
        "def flops():\n    return deep() + shared() + recursive()\ndef workspace():\n    return x.stated\n",
        "def deep():\n    return deeper()\ndef deeper():\n    return 1\ndef recursive():\n    return recursive()\n",
        "class C:\n    def stated(self):\n        return 1\n    def unused(self):\n        return 1\n",
        "def shared():\n    return 1\ndef forward(deep):\n    return deep + shared()\nforward()\n",
    ]
    assert only_for_costs(texts) == {"flops", "workspace", "deep", "deeper", "recursive", "stated"}


@pytest.mark.slow
def test_a_mutant_is_named_without_its_line(load: Load) -> None:
    _, (mutant,) = load("class C:\n    def f(self, a, b):\n        return a + b\n")
    assert str(mutant).endswith("/mutated.py C.f: `a + b` → `a - b`")


def put(module: ModuleType, mutant: Mutant) -> None:
    apply(mutant, module, alive([mutant.path]))


@pytest.mark.slow
def test_a_function_that_others_imported_changes(load: Load) -> None:
    module, (mutant,) = load("def f(a, b):\n    return [a + x for x in b]\n")
    imported = module.f
    put(module, mutant)
    assert imported(5, [2]) == [3]


@pytest.mark.parametrize(("number", "values"), [(0, [-3, 3]), (1, [3, -3])])
def test_one_of_two_functions_that_are_alike_changes(load: Load, number: int, values: list[int]) -> None:
    module, mutants = load("class C:\n    table = (lambda x: x, lambda x: x)\n")
    put(module, mutants[number])
    assert [f(3) for f in module.C.table] == values


def test_a_constant_changes_where_it_was_imported(load: Load) -> None:
    module, (mutant,) = load("LIMIT = 1000\ndef f():\n    return LIMIT\n")
    other = ModuleType("other")
    vars(other)["LIMIT"] = module.LIMIT
    sys.modules["other"] = other
    try:
        put(module, mutant)
    finally:
        del sys.modules["other"]
    assert module.f() == vars(other)["LIMIT"] == 1001


def test_what_is_made_of_a_constant_changes_with_it(load: Load) -> None:
    module, mutants = load(
        "A = 2\nB = tuple(A * k for k in (1, 3))\nC = B[1] + 1\nD = [A]\ndef f():\n    return B, C\n"
    )
    put(module, mutants[0])
    assert module.f() == ((3, 9), 10)
    assert module.D == [2]


def test_the_default_of_an_argument_changes(load: Load) -> None:
    module, (mutant,) = load("class C:\n    def f(self, n=1):\n        return n\n")
    put(module, mutant)
    assert module.C().f() == 2


def test_a_declaration_that_ops_share_changes(load: Load) -> None:
    module, mutants = load(
        "from engine.ir.attributes import Attr\nAXIS = Attr('int', 0, 'one')\nclass C:\n    attrs = {'axis': AXIS}\n"
    )
    put(module, mutants[0])
    assert module.C.attrs["axis"] == Attr("int", 1, "one")


def test_a_declaration_may_come_to_state_more(load: Load) -> None:
    module, mutants = load(
        "from engine.ir.attributes import Attr\nMORE = {'b': Attr('int')}\n"
        "class C:\n    attrs = {'a': Attr('int'), **(MORE if False else {})}\n"
    )
    (mutant,) = (m for m in mutants if m.kind == "constant" and "True" in m.shown[1])
    put(module, mutant)
    assert sorted(module.C.attrs) == ["a", "b"]


def test_a_mutant_leaves_the_file_and_the_tree_alone(load: Load) -> None:
    text = "def f(a, b):\n    return a + b\n"
    module, (mutant,) = load(text)
    put(module, mutant)
    assert mutant.path.read_text() == text
    assert names(find_mutants(mutant.path)) == names([mutant])


def test_a_mutant_does_not_hide_the_function_from_the_next(load: Load) -> None:
    module, mutants = load("def f(a, b):\n    return -(a * b)\n")
    put(module, mutants[-1])
    assert module.f(6, 3) == -2


def test_a_mutant_that_cannot_be_applied_is_no_mutant(load: Load) -> None:
    module, (mutant,) = load("def f(a, b):\n    return a + b\n")
    with pytest.raises(NotApplied, match="cannot apply"):
        apply(mutant, module, {})


def test_a_fork_returns_raises_or_dies() -> None:
    def fails() -> None:
        raise ZeroDivisionError

    ended = dict(forked([lambda: "well", fails, lambda: os._exit(1), lambda: None], 2))
    assert ended[0] == "well"
    assert isinstance(ended[1], ZeroDivisionError)
    assert isinstance(ended[2], EOFError)
    assert ended[3] is None


def test_forks_run_side_by_side_and_the_next_sees_what_the_first_brought() -> None:
    seen: list[int] = []
    reading, writing = os.pipe()

    def waits() -> bool:
        return select.select([reading], [], [], 20)[0] == [reading]

    found = {}
    for number, outcome in forked(iter([waits, lambda: os.write(writing, b"x"), lambda: list(seen)]), 2):
        found[number] = outcome
        seen.append(number)
    os.close(reading)
    os.close(writing)
    assert found[0], "the second ran while the first waited for it"
    assert found[2], "the third began when another had ended"


def session(*arguments: str) -> Session:
    return Session(options().parse_args(arguments), io.StringIO())


def test_only_takes_several_texts(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_text("y = -x\nn = x.shape[1]\nz = a + b\n")
    assert names(session("--only", "sign ", "a + b", "--jobs", "1").mutants(path)) == [
        "sign: -x → x",
        "operator: a + b → a - b",
    ]
    assert len(session().mutants(path)) == 4


@dataclass(frozen=True)
class Named:
    nodeid: str


@pytest.mark.slow
def test_tests_that_fail_without_a_mutant_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("scripts.mutants.passes", lambda item: item.nodeid == "well")
    items = [cast("pytest.Item", Named(name)) for name in ("one", "well", "two")]
    assert [m.called for m in measure_all(items[1:2], [], 1)] == [set()]
    with pytest.raises(AssertionError, match="one, two: failing as it is"):
        measure_all(items, [], 1)


@pytest.mark.slow
def test_what_a_test_before_has_had_made_is_made_again(load: Load, monkeypatch: pytest.MonkeyPatch) -> None:
    module, mutants = load("from functools import cache\n@cache\ndef f(x):\n    return x + 1\n")
    shapes = RuleCache(lambda op, types, attrs: module.f(len(types)))
    monkeypatch.setattr("scripts.mutants.passes", lambda item: shapes(registry().ops["sin"], (), {}) == module.f(0))
    items = [cast("pytest.Item", Named(name)) for name in ("first", "again")]
    assert [m.called for m in measure_all(items, [module], 1)] == [set(changed(mutants[0]))] * 2
    monkeypatch.setattr("scripts.mutants.cache_clearers", lambda modules: [])
    assert measure_all(items, [module], 1)[1].called == set()


def test_tests_come_by_what_they_noticed_then_by_what_they_are_about_then_by_their_time(load: Load) -> None:
    _, mutants = load("def f(a, b):\n    return -(a * b)\n")
    ran = session("--seconds", "5")
    (called,) = changed(mutants[0])
    about = f"tests/test_{mutants[0].path.stem}.py::test_it"
    times = {"slow": 2.0, "quick": 1.0, "too slow": 4.0, about: 1.5}
    ran.items = [cast("pytest.Item", Named(name)) for name in (*times, "calls nothing of it")]
    ran.measure([*(Measured({called}, seconds) for seconds in times.values()), Measured(set(), 0.5)])
    assert [item.nodeid for _, item in ran.concerned(mutants[0])] == [about, "quick", "slow"]
    ran.note(mutants[0], "slow")
    assert [item.nodeid for _, item in ran.concerned(mutants[1])] == ["slow", about, "quick"]


def test_tests_that_noticed_others_come_first_for_half_of_the_time(load: Load) -> None:
    _, mutants = load("def f(a, b):\n    return -(a * b)\n")
    ran = session("--seconds", "5")
    (called,) = changed(mutants[0])
    about = f"tests/test_{mutants[0].path.stem}.py::test_it"
    times = {"sharp": 1.5, "sharp, too": 1.5, "quick": 1.0, about: 1.4}
    ran.items = [cast("pytest.Item", Named(name)) for name in times]
    ran.measure([Measured({called}, seconds) for seconds in times.values()])
    for noticed in ("sharp", "sharp", "sharp, too"):
        ran.note(mutants[0], noticed)
    assert [item.nodeid for _, item in ran.concerned(mutants[1])] == ["sharp", about, "quick"]


def test_tests_that_name_a_file_or_its_op_come_before_those_about_its_room(load: Load) -> None:
    _, mutants = load('class Op:\n    name = "double"\n    factor = 2\n')
    (path,) = {mutant.path for mutant in mutants}
    ran, room = session(), f"tests/engine/{path.parent.name}/test_others.py::test_it"
    own = f"tests/golden/test_{path.stem}.py::test_it"
    ids = ["tests/golden/quick", room, f"tests/golden/{path.stem}", "tests/engine/passes/slow[double]", own]
    ran.items = [cast("pytest.Item", Named(name)) for name in ids]
    called = FunctionKey(str(path), "any", 0)
    ran.measure([*(Measured({called}, seconds) for seconds in (1.0, 2.0, 3.0)), *[Measured(set(), 4.0)] * 2])
    assert [item.nodeid for _, item in ran.concerned(mutants[-1])] == [own, ids[2], ids[3], ids[1], ids[0]]


def test_outside_of_a_class_tests_name_any_op_of_the_file(load: Load) -> None:
    _, mutants = load(
        'def f(x):\n    return x + 1\nclass Op:\n    name = "double"\nclass Other:\n    name = "triple"\n'
    )
    ran = session()
    ran.items = [
        cast("pytest.Item", Named(name)) for name in ("tests/quick", "tests/slow[double]", "tests/slower[triple]")
    ]
    ran.measure([Measured({*changed(mutants[0])}, seconds) for seconds in (1.0, 2.0, 3.0)])
    assert [seconds for seconds, _ in ran.concerned(mutants[0])] == [2.0, 3.0, 1.0]


def test_what_makes_a_constant_is_for_all_tests_of_its_module(load: Load) -> None:
    """The function is called as the module loads, and by no test."""
    _, mutants = load("SERIES = tuple(k * k for k in range(3))\ndef f(x):\n    return -x\n")
    (mutant,) = (m for m in mutants if m.kind == "operator")
    ran = session()
    ran.items = [cast("pytest.Item", Named(name)) for name in ("calls f", "calls nothing")]
    (f,) = changed(mutants[-1])
    ran.measure([Measured({f}, 1.0), Measured(set(), 2.0)])
    assert [item.nodeid for _, item in ran.concerned(mutant)] == ["calls f"]


def test_what_ends_a_process_is_killed_and_what_the_runner_cannot_do_is_raised(load: Load) -> None:
    _, (mutant,) = load("y = 1\n")
    ran = session()
    for found in ("a test", EOFError(), None):
        ran.note(mutant, found)
    assert ran.tally.tried.total() == 3
    assert ran.tally.survivors == [mutant]
    with pytest.raises(NotApplied):
        ran.note(mutant, NotApplied())


def tally(mutant: Mutant, killed: int, survived: int) -> Tally:
    counted = Tally()
    for killer in [*["a test"] * killed, *[None] * survived]:
        counted.add(mutant, killer)
    return counted


def test_report_counts_what_was_killed(load: Load) -> None:
    _, (mutant,) = load("y = 1\n")
    assert "all               20      19   95.0%" in report(tally(mutant, 19, 1))
