"""Forms of nodes: one for all that say the same, and one of its own for each whose attributes are not remembered."""

from __future__ import annotations

from typing import Any

import numpy as np

from engine import TensorType, registry
from engine.graph.ir import Node
from engine.graph.kinds.kind import LONGEST_REMEMBERED
from engine.graph.memory import Stated
from engine.transforms.forms import Forms

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
