"""Products as they are passed to cuBLASLt, computed by its stand-in, against NumPy in float64."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from engine.codegen.microkernels.product import Product
from engine.codegen.native.machine_code import KernelStore, KernelUnavailable
from engine.compiler.geometry import geometry_of
from engine.cuda.autotuning import NO_CHOICES, Choices
from engine.cuda.card_recipe import CardPlace, ProductPhase
from engine.cuda.cublaslt import (
    COMPUTE_32F,
    COMPUTE_32F_FAST_16BF,
    COMPUTE_32F_FAST_TF32,
    COMPUTE_64F,
    MAX_BATCH_CALLS,
    MAX_EXTENT,
    CublasLt,
    merged_batch_axes,
    stored_products,
)
from engine.cuda.products import ProductCalls, ProductPlaces
from engine.ir.op import Kernel
from engine.ir.run_report import PRECISIONS
from engine.ir.tensor_type import Strided, TensorType
from engine.ops import registry
from tests.engine.cuda.cublaslt_stand_in import Called, CublasLtStandIn
from tests.engine.cuda.host_clock import HostClock
from tests.sampling import together

Array = np.ndarray[Any, Any]
PLACE = CardPlace("operand", 0)
MATMUL = registry().ops["matmul"]
assert isinstance(MATMUL, Kernel)


def numbers(*shape: int, dtype: str = "float32", seed: int = 0) -> Array:
    """Small integers: exact in every format, so that sums are exact in any order."""
    return np.random.default_rng(seed).integers(-8, 9, shape).astype(dtype)


def product_of_arrays(out: Array, a: Array, b: Array) -> Product:
    geometry = geometry_of(MATMUL, *(Strided(TensorType.of(x), x.strides) for x in (out, a, b)))
    assert isinstance(geometry, Product)
    return geometry


class Multiplier:
    """Multiplies with the stand-in, and records the arrays of pointers."""

    def __init__(self, **settings: Any) -> None:
        self.library = CublasLtStandIn(**settings)
        self.uploaded: list[list[int]] = []
        self.calls = ProductCalls(CublasLt(self.library), self._upload)
        self._workspace = np.empty(1 << 12, np.uint8)

    def _upload(self, addresses: Sequence[int]) -> tuple[int, Any]:
        array = (ctypes.c_int64 * len(addresses))(*addresses)
        self.uploaded.append([*addresses])
        return ctypes.addressof(array), array

    def multiply(self, out: Array, a: Array, b: Array, bias: Array | None = None, **phase: Any) -> list[Called]:
        product = ProductPhase(product_of_arrays(out, a, b), PLACE, PLACE, PLACE, **phase)
        places = ProductPlaces(*(x.ctypes.data for x in (a, b, out)), 0 if bias is None else bias.ctypes.data)
        for each in self.calls.bound(product, places, self._workspace.nbytes):
            each.launch(self._workspace.ctypes.data, 0)
        return self.library.calls


def heads(x: Array) -> Array:
    """[batch, heads, time, width] as a view of the columns of [batch, time, 3, heads, width]."""
    return x.transpose(2, 0, 3, 1, 4)[1]


#: operands in all supported layouts
LAYOUTS = {
    "rows": (numbers(3, 5), numbers(5, 4, seed=1)),
    "a transposed": (numbers(5, 3).T, numbers(5, 4, seed=1)),
    "b transposed": (numbers(3, 5), numbers(4, 5, seed=1).T),
    "both transposed": (numbers(5, 3).T, numbers(4, 5, seed=1).T),
    "columns apart": (numbers(3, 9)[:, 2:7], numbers(5, 8, seed=1)[:, 3:7]),
    "rows apart": (numbers(6, 5)[::2], numbers(10, 4, seed=1)[::2]),
    "a row": (numbers(1, 5), numbers(5, 4, seed=1)),
    "a column": (numbers(3, 5), numbers(5, 1, seed=1)),
    "a column of many": (numbers(3, 5), numbers(5, 4, seed=1)[:, 2:3]),
    "an outer product": (numbers(3, 4)[:, 1:2], numbers(1, 4, seed=1)),
    "numbers": (numbers(1, 1), numbers(1, 1, seed=1)),
    "a batch": (numbers(2, 3, 5), numbers(2, 5, 4, seed=1)),
    "a batch of two axes": (numbers(2, 3, 4, 5), numbers(2, 3, 5, 2, seed=1)),
    "one for all": (numbers(3, 4, 5), np.broadcast_to(numbers(5, 2, seed=1), (3, 5, 2))),
    "a batch backwards transposed": (numbers(4, 5, 3).transpose(0, 2, 1), numbers(4, 2, 5, seed=1).transpose(0, 2, 1)),
    "heads": (heads(numbers(2, 5, 3, 4, 6)), heads(numbers(2, 5, 3, 4, 6, seed=1)).transpose(0, 1, 3, 2)),
    "heads, one for all": (heads(numbers(2, 5, 3, 4, 6)), numbers(2, 1, 6, 3, seed=1)),
    "three axes": (numbers(3, 2, 4, 5, 6)[:, :, ::2], numbers(2, 3, 2, 6, 3, seed=1).swapaxes(0, 1)),
}


@together
@pytest.mark.parametrize("has_pointer_arrays", [True, False])
@pytest.mark.parametrize("lying", LAYOUTS)
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_products_are_right_for_any_layout(dtype: str, lying: str, has_pointer_arrays: bool) -> None:
    a, b = (_with_dtype(x, dtype) for x in LAYOUTS[lying])
    out = np.full(np.matmul(a, b).shape, 77, dtype)
    Multiplier(has_pointer_arrays=has_pointer_arrays).multiply(out, a, b)
    np.testing.assert_array_equal(out, np.matmul(a.astype("float64"), b.astype("float64")).astype(dtype))


def _with_dtype(x: Array, dtype: str) -> Array:
    """The array in another dtype, with the same layout."""
    base = x
    while isinstance(base.base, np.ndarray):
        base = base.base
    other = base.astype(dtype)
    start = (x.ctypes.data - base.ctypes.data) // base.itemsize
    steps = [step // base.itemsize * other.itemsize for step in x.strides]
    return np.lib.stride_tricks.as_strided(other.reshape(-1)[start:], x.shape, steps)


@pytest.mark.parametrize("lying", LAYOUTS)
def test_every_layout_is_one_call_without_a_copy(lying: str) -> None:
    multiplier, (a, b) = Multiplier(), LAYOUTS[lying]
    out = np.empty(np.matmul(a, b).shape, "float32")
    (called,) = multiplier.multiply(out, a, b)
    assert called.matrices == max(1, out[..., 0, 0].size)
    by_pointers = lying.startswith(("heads", "three"))
    assert called.by_pointers is by_pointers
    assert [len(each) for each in multiplier.uploaded] == [3 * called.matrices] * by_pointers


def test_without_pointer_arrays_the_longest_axis_is_one_call() -> None:
    multiplier, (a, b) = Multiplier(has_pointer_arrays=False), LAYOUTS["heads"]
    calls = multiplier.multiply(np.empty((2, 4, 5, 5), "float32"), a, b)
    assert [(call.matrices, call.by_pointers) for call in calls] == [(4, False)] * 2
    assert not multiplier.uploaded


def test_equal_products_share_an_algorithm() -> None:
    multiplier, (a, b) = Multiplier(), LAYOUTS["rows"]
    phase = ProductPhase(product_of_arrays(np.empty((3, 4), "float32"), a, b), PLACE, PLACE, PLACE)
    (one,), (other,) = (multiplier.calls.bound(phase, ProductPlaces(256, 512, start), 64) for start in (768, 1024))
    assert one.matmul is other.matmul
    (less,) = multiplier.calls.bound(phase, ProductPlaces(256 + 16, 512, 768), 64)
    assert (one.matmul.terms.alignments, less.matmul.terms.alignments) == ((256, 256, 256), (256, 16, 256))


def reach(x: Array) -> int:
    """Bytes from the first element to the end of the last one."""
    return sum((extent - 1) * step for extent, step in zip(x.shape, x.strides, strict=True)) + x.itemsize


@pytest.mark.parametrize("has_pointer_arrays", [True, False])
@pytest.mark.parametrize("lying", LAYOUTS)
def test_algorithms_are_timed_in_buffers_of_the_operand_sizes(lying: str, has_pointer_arrays: bool) -> None:
    """The chosen algorithm is used from then on, at other addresses too."""
    a, b = LAYOUTS[lying]
    out = np.empty(np.matmul(a, b).shape, "float32")
    multiplier = Multiplier(has_pointer_arrays=has_pointer_arrays, wants=64, milliseconds=(2, 1, 3))
    library, phase = multiplier.library, ProductPhase(product_of_arrays(out, a, b), PLACE, PLACE, PLACE)
    clock = HostClock(lambda: library.milliseconds[library.calls[-1].algorithm])
    choices = Choices(KernelStore(), clock)
    multiplier.calls.choose(phase, 4096, choices)
    choices.close()
    assert clock.sizes == [(4096, reach(a), reach(b), out.nbytes)]
    assert {call.algorithm for call in library.calls} == {0, 1, 2}
    algorithms = {}
    for name, current in (("chosen", choices), ("first", NO_CHOICES)):
        library.calls.clear()
        places = ProductPlaces(*(x.ctypes.data for x in (a, b, out)))
        for each in multiplier.calls.bound(phase, places, 4096, current):
            each.launch(multiplier._workspace.ctypes.data, 0)
        np.testing.assert_array_equal(out, np.matmul(a, b))
        algorithms[name] = {call.algorithm for call in library.calls}
    assert algorithms == {"chosen": {1}, "first": {0}}


def test_algorithms_are_chosen_per_precision_and_workspace() -> None:
    a, b = LAYOUTS["rows"]
    multiplier, clock = Multiplier(milliseconds=(2, 1)), HostClock(lambda: 1.0)
    choices = Choices(KernelStore(), clock)
    product = product_of_arrays(np.empty((3, 4), "float32"), a, b)
    for precision in ("float32", "tf32", "float32"):
        for workspace in (0, 64):
            multiplier.calls.choose(
                ProductPhase(product, PLACE, PLACE, PLACE, precision=precision),  # type: ignore[arg-type]
                workspace,
                choices,
            )
    assert len(clock.sizes) == 4
    assert {sizes[0] for sizes in clock.sizes} == {0}  # they need no workspace


@pytest.mark.parametrize("lying", ["rows", "a batch", "heads"])
def test_products_with_a_bias_are_timed_with_it(lying: str) -> None:
    a, b = LAYOUTS[lying]
    out, bias = np.empty(np.matmul(a, b).shape, "float32"), numbers(b.shape[-1], seed=2)
    multiplier = Multiplier(milliseconds=(2, 1))
    library, clock = multiplier.library, HostClock(lambda: library.milliseconds[library.calls[-1].algorithm])
    choices = Choices(KernelStore(), clock)
    phase = ProductPhase(product_of_arrays(out, a, b), PLACE, PLACE, PLACE)
    multiplier.calls.choose(phase._replace(bias=PLACE), 64, choices)
    assert clock.sizes == [(0, reach(a), reach(b), out.nbytes, bias.nbytes)]
    places = ProductPlaces(*(x.ctypes.data for x in (a, b, out, bias)))
    for with_bias, chosen in ((True, 1), (False, 0)):
        library.calls.clear()
        choices.close()
        for each in multiplier.calls.bound(phase, places if with_bias else places._replace(bias=0), 64, choices):
            each.launch(0, 0)
        assert {call.algorithm for call in library.calls} == {chosen}
        np.testing.assert_array_equal(out, np.matmul(a, b) + (bias if with_bias else 0))


def test_product_without_an_algorithm_is_not_timed() -> None:
    product = product_of_arrays(np.empty((3, 4), "float32"), *LAYOUTS["rows"])
    clock, multiplier = HostClock(lambda: 1.0), Multiplier(milliseconds=(2, 1), wants=65)
    multiplier.calls.choose(ProductPhase(product, PLACE, PLACE, PLACE), 64, Choices(KernelStore(), clock))
    assert not clock.sizes


def test_alignment_accounts_for_batch_strides() -> None:
    a, b = numbers(2, 3, 5), numbers(2, 5, 4)
    phase = ProductPhase(product_of_arrays(np.empty((2, 3, 4), "float32"), a, b), PLACE, PLACE, PLACE)
    (bound,) = Multiplier().calls.bound(phase, ProductPlaces(0x1000, 0x2000, 0x3000), 0)
    assert bound.matmul.terms.alignments == (16, 4, 16)  # of b, a and c: 80, 60 and 48 bytes apart


@pytest.mark.parametrize("has_pointer_arrays", [True, False])
def test_bias_is_added_to_each_row(has_pointer_arrays: bool) -> None:
    bias = numbers(5, seed=2)
    for a, b in (LAYOUTS["heads"], (numbers(3, 7), numbers(7, 5, seed=1))):
        out = np.empty(np.matmul(a, b).shape, "float32")
        Multiplier(has_pointer_arrays=has_pointer_arrays).multiply(out, a, b, bias)
        np.testing.assert_array_equal(out, np.matmul(a, b) + bias)


def test_product_is_added_to_the_output() -> None:
    a, b = LAYOUTS["b transposed"]
    out = numbers(3, 4, seed=5)
    expected = out + a @ b
    Multiplier().multiply(out, a, b, adds=True)
    np.testing.assert_array_equal(out, expected)


def test_float16_accumulates_in_float32_and_rounds_once() -> None:
    a, b = np.full((1, 4096), 1, "float16"), np.full((4096, 1), 1, "float16")
    b[-1] = 0.5
    out = np.empty((1, 1), "float16")
    (called,) = Multiplier().multiply(out, a, b)
    assert called.compute == COMPUTE_32F
    assert out[0, 0] == np.float16(4095.5)


@pytest.mark.parametrize("lying", ["rows", "a batch", "heads"])
def test_float16_product_may_stay_in_float32(lying: str) -> None:
    a, b = (_with_dtype(x, "float16") for x in LAYOUTS[lying])
    out = np.full(np.matmul(a, b).shape, 0.25, "float32")
    expected = np.matmul(a.astype("float64"), b.astype("float64")) + 0.25
    product = product_of_arrays(np.empty(out.shape, "float16"), a, b)
    *batch, row, column = out.strides
    product = product._replace(c=product.c._replace(row=row, column=column, batch=tuple(batch)))
    multiplier = Multiplier()
    phase = ProductPhase(product, PLACE, PLACE, PLACE, adds=True, widens=True)
    for each in multiplier.calls.bound(phase, ProductPlaces(*(x.ctypes.data for x in (a, b, out))), 0):
        each.launch(0, 0)
    np.testing.assert_array_equal(out, expected)


@pytest.mark.parametrize("precision", PRECISIONS)
def test_precision_selects_the_compute_type(precision: Any) -> None:
    computes = {"tf32": COMPUTE_32F_FAST_TF32, "bfloat16": COMPUTE_32F_FAST_16BF}
    for dtype in ("float16", "float32", "float64"):
        a, b = (_with_dtype(x, dtype) for x in LAYOUTS["rows"])
        (called,) = Multiplier().multiply(np.empty((3, 4), dtype), a, b, precision=precision)
        other = COMPUTE_64F if dtype == "float64" else COMPUTE_32F
        assert called.compute == (computes.get(precision, COMPUTE_32F) if dtype == "float32" else other)


UNREADABLE = {
    "no rows": (numbers(0, 5), numbers(5, 4)),
    "nothing to add up": (numbers(3, 0), numbers(0, 4)),
    "no products": (numbers(0, 3, 5), numbers(0, 5, 4)),
    "repeated rows": (np.broadcast_to(numbers(5), (3, 5)), numbers(5, 4)),
    "backwards": (numbers(3, 5)[::-1], numbers(5, 4)),
    "neither axis dense": (numbers(3, 10)[:, ::2], numbers(5, 4)),
    "a batch backwards": (numbers(2, 3, 5)[::-1], numbers(2, 5, 4)),
}


@pytest.mark.parametrize("lying", UNREADABLE)
def test_unsupported_layouts_are_unavailable(lying: str) -> None:
    a, b = UNREADABLE[lying]
    out = np.empty(np.matmul(a, b).shape, a.dtype)
    assert stored_products(product_of_arrays(out, a, b)) == []
    with pytest.raises(KernelUnavailable, match="lie so"):
        Multiplier().multiply(out, a, b)


def test_extents_beyond_the_library_limit_are_unsupported() -> None:
    product = product_of_arrays(np.empty((3, 4), "float32"), *LAYOUTS["rows"])
    assert stored_products(product._replace(rows=MAX_EXTENT))
    assert not stored_products(product._replace(rows=MAX_EXTENT + 1))


def test_large_strided_batch_requires_pointer_arrays() -> None:
    product = product_of_arrays(np.empty((2, 4, 5, 5), "float32"), *LAYOUTS["heads"])
    few = product._replace(batch=(MAX_BATCH_CALLS, 4))
    many = product._replace(batch=(MAX_BATCH_CALLS + 1,) * 2)
    assert [layout.by_pointers for layout in stored_products(few)] == [True, False]
    assert [layout.by_pointers for layout in stored_products(many)] == [True]
    multiplier = Multiplier(has_pointer_arrays=False)
    with pytest.raises(KernelUnavailable):
        multiplier.calls.bound(ProductPhase(many, PLACE, PLACE, PLACE), ProductPlaces(0, 0, 0), 0)


def test_contiguous_batch_axes_are_merged() -> None:
    dense = product_of_arrays(np.empty((2, 3, 4, 5), "float32"), numbers(2, 3, 4, 6), numbers(2, 3, 6, 5))
    assert [axis.extent for axis in merged_batch_axes(dense)] == [6]
    assert [axis.extent for axis in merged_batch_axes(dense._replace(batch=(1, 3)))] == [3]
    repeated = product_of_arrays(np.empty((2, 3, 4, 5), "float32"), numbers(4, 6), numbers(2, 3, 6, 5))
    assert [axis.extent for axis in merged_batch_axes(repeated)] == [6]
