"""The table of dtypes: it matches NumPy, and types and printers match it."""

from __future__ import annotations

from itertools import pairwise, product

import numpy as np
import pytest

from engine import DTYPES, TensorType
from engine.codegen.functions.elementary import FORMATS
from engine.codegen.microkernels.routine import MOVED_AS
from engine.ir.tensor_type import (
    COMPLEX,
    ELEMENT_TYPES,
    FLOATS,
    INTEGERS,
    NUMBERS,
    REALS,
    ElementType,
    element_type,
    has_infinities,
    has_kernels,
    in_opset,
    promote,
    real_dtype,
)

#: NumPy's letters for the kinds
LETTERS = {"b": "boolean", "i": "integer", "u": "integer", "f": "floating", "c": "complex"}


@pytest.mark.parametrize("element", ELEMENT_TYPES, ids=DTYPES)
def test_dtype_row_matches_numpy(element: ElementType) -> None:
    dtype = np.dtype(element.name)
    assert (dtype.name, dtype.itemsize, LETTERS[dtype.kind]) == (element.name, element.width, element.kind)
    assert element_type(dtype) is element
    assert element_type(dtype.newbyteorder()) is element


@pytest.mark.parametrize("element", ELEMENT_TYPES, ids=DTYPES)
def test_tensor_type_matches_its_row(element: ElementType) -> None:
    type = TensorType((2, 3), np.dtype(element.name))
    assert type.nbytes == 6 * element.width
    assert type.is_differentiable is element.is_differentiable
    assert type.is_float is (element.kind == "floating")
    assert type.is_complex is (element.kind == "complex")
    assert has_infinities(type.dtype) is (element.kind in ("floating", "complex"))
    assert has_kernels(type.dtype) is (element.name in FORMATS)


def test_unlisted_dtype_is_neither_float_nor_differentiable() -> None:
    for dtype in ("complex256", "uint16", "U3"):
        type = TensorType((2,), np.dtype(dtype))
        assert (element_type(type.dtype), type.is_differentiable, type.is_float) == (None, False, False)


def test_dtype_names_are_unique_and_partitioned_by_kind() -> None:
    spellings = [element.safetensors for element in ELEMENT_TYPES]
    assert len(set(DTYPES)) == len(set(spellings)) == len(ELEMENT_TYPES)
    assert {*INTEGERS, *FLOATS, *COMPLEX, "bool"} == set(DTYPES)
    assert tuple(name for name in DTYPES if name != "bool") == (*NUMBERS, *COMPLEX)
    assert (*REALS, *COMPLEX) == DTYPES


@pytest.mark.parametrize("element", ELEMENT_TYPES, ids=DTYPES)
def test_real_dtype_matches_numpy(element: ElementType) -> None:
    dtype = np.dtype(element.name)
    assert real_dtype(dtype) == np.zeros((), dtype).real.dtype
    assert (element.parts == "") is (element.kind != "complex")


def test_narrower_dtypes_of_a_kind_come_first() -> None:
    widths = [(element.kind, element.width) for element in ELEMENT_TYPES]
    assert all(first[1] <= second[1] for first, second in pairwise(widths) if first[0] == second[0])


def test_promotion_stays_in_the_table() -> None:
    for a, b in product(map(np.dtype, DTYPES), repeat=2):
        assert promote(a, b).name in DTYPES
        assert np.can_cast(a, promote(a, b)), "it holds the numbers of both"


@pytest.mark.parametrize(("absent", "wider"), [("uint16", "int32"), ("uint64", "int64")])
def test_integers_outside_the_opset_are_widened(absent: str, wider: str) -> None:
    assert in_opset(np.dtype(absent)) == np.dtype(wider)


def test_printers_agree_on_widths() -> None:
    widths = {element.name: element.width for element in ELEMENT_TYPES}
    assert {dtype: 8 * widths[dtype] for dtype in FORMATS} == {dtype: form.width for dtype, form in FORMATS.items()}
    assert {widths[dtype]: dtype for dtype in MOVED_AS.values()} == MOVED_AS
