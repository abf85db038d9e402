"""Forms of nodes: one for all that say the same, and one of its own for each whose attributes are not remembered."""

from __future__ import annotations

from typing import Any

import numpy as np

from engine import Builder, TensorType, registry
from engine.graph.ir import Node
from engine.graph.kinds.kind import LONGEST_REMEMBERED
from engine.graph.limits import NO_LIMITS
from engine.graph.memory import Stated
from engine.oplib.elementwise import Elementwise
from engine.transforms.forms import NO_CAST, Forms
from tests.contract.cases import Case, has_rule, sample

VECTOR = TensorType((3,), np.dtype("float64"))
LONG = "i" * LONGEST_REMEMBERED


def forms_of(*attrs: dict[str, Any], op: str = "einsum") -> list[int]:
    """The forms of nodes of an op on one and the same operand, each with its own attributes."""
    leaf = Node(registry().ops["input"], (), {"feed": None}, (VECTOR,))
    said = [Node(registry().ops[op], (0,), Stated(each), (VECTOR,)) for each in attrs]
    return Forms(registry()).of_all([leaf, *said])[1:]


def test_nodes_that_say_the_same_are_of_one_form() -> None:
    one, again, other = forms_of({"equation": "i->i"}, {"equation": "i->i"}, {"equation": "j->j"})
    assert one == again != other


def test_nodes_without_attributes_are_of_one_form() -> None:
    assert len(set(forms_of({}, {}, op="sin"))) == 1


def test_of_large_attributes_each_node_has_its_own() -> None:
    one, other = forms_of({"equation": f"{LONG}->i"}, {"equation": f"{LONG}->ii"})
    assert one != other


@sample(has_rule)
def test_a_way_is_what_depends_on_a_cotangent_and_a_gradient_depends_on(case: Case) -> None:
    """By a search forth and one back, through what a rule has written, for each cotangent that it gives."""
    forms = Forms(registry())
    nodes = case.write(case.arrays()).builder.nodes
    for number in forms.of_all(nodes):
        form = forms.forms[number]
        if not form.passes or form.node.op.several:
            continue
        written = forms.written[forms.pull(number, (True,))]
        outer = written.arrived + 1 + len(form.operands)
        reads = [*[()] * outer, *written.operands]
        forth = {0}
        for i, operands in enumerate(reads):
            if forth & set(operands):
                forth.add(i)
        for given in written.given:
            back, todo = set[int](), [given.number]
            while todo:
                back.add(i := todo.pop())
                todo += reads[i]
            on_the_way = sorted(i - outer for i in forth & back if i >= outer)
            elementwise = [i for i in on_the_way if isinstance(forms.forms[written.forms[i]].node.op, Elementwise)]
            assert (given.way is None) == (given.number not in forth)
            assert given.way is None or sorted(given.way) == elementwise


def test_a_cotangent_of_another_type_is_cast_and_no_other() -> None:
    single = TensorType((3,), np.dtype("float32"))
    builder = Builder(registry(), NO_LIMITS)
    sum_of_both = builder.leaf(single, "x") + builder.leaf(VECTOR, "y")
    forms = Forms(registry())
    number = forms.of(sum_of_both.node, tuple(forms._number_types((each,)) for each in (single, VECTOR)))
    cast, same = forms.written[forms.pull(number, (True,))].given
    assert forms.forms[cast.cast].node.op.name == "cast"
    assert same.cast == NO_CAST != cast.cast


def test_of_an_operand_of_several_results_a_cotangent_is_given_for_those_that_have_one() -> None:
    builder = Builder(registry(), NO_LIMITS)
    logarithm = builder.leaf(TensorType((2, 2), np.dtype("float64")), "x").slogdet().output(1)
    forms = Forms(registry())
    number = forms.of_all(builder.nodes)[logarithm.index]
    (given,) = forms.written[forms.pull(number, (True,))].given
    assert (given.operand, given.result, given.number) == (0, 1, 0)
