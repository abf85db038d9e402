"""Loop bodies are machine code: every sample of every op, in a scan, and its gradient, except those listed below.

Machine code continues after a Python step; Python drives a body that consists of Python steps only.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterator
from typing import Any, Final

import numpy as np
import pytest

from engine import Call, Compiler, Gradients, Values, open_executor
from engine.codegen.native.native_call import IS_SUPPORTED
from engine.compiler.control_flow import PlannedScan
from engine.runtime.native_bodies import PythonStep
from tests.contract.cases import Case, all_cases, aspects, has_rule
from tests.engine.looping import EXECUTOR, Writer, Written, same, written
from tests.sampling import sampled, together

pytest.importorskip("llvmlite")
pytestmark = [pytest.mark.slow, pytest.mark.skipif(not IS_SUPPORTED, reason="no runner for this machine")]

NATIVE = open_executor("cpu", compile="on")
LENGTH = 3
#: ops without machine code, and their implementation
PYTHON_OPS: Final = {
    "argsort": "an order is NumPy's",
    "betaln": "in float64, whole arrays of NumPy",
    "compress": "by its indices, which it looks at",
    "cond_number": "by singular values",
    "cumlogsumexp": "whole runs of NumPy",
    "cummax": "whole runs of NumPy",
    "cummin": "whole runs of NumPy",
    "cumprod": "whole runs of NumPy",
    "det": "NumPy's",
    "digamma": "in float64, SciPy's, mended",
    "fft": "SciPy's pocketfft",
    "ifft": "SciPy's pocketfft",
    "eigh": "two results",
    "index": "looks at its indices",
    "index_add": "looks at its indices",
    "index_set": "looks at its indices",
    "irfft": "SciPy's pocketfft",
    "lgamma": "in float64, SciPy's, mended",
    "log_ndtr": "in float64, SciPy's, mended",
    "lstsq": "by triangles that LAPACK makes, or singular vectors",
    "lu": "three results",
    "matrix_exp": "squared as often as its elements say",
    "matrix_rank": "by singular values",
    "nonzero": "an order is NumPy's",
    "one_hot": "looks at its indices",
    "pinv": "by singular vectors",
    "polygamma": "SciPy's zeta function",
    "qr": "two results",
    "random_permutation": "an order is NumPy's",
    "rfft": "SciPy's pocketfft",
    "segment_max": "looks at its indices",
    "segment_mean": "looks at its indices",
    "segment_min": "looks at its indices",
    "segment_prod": "looks at its indices",
    "segment_sum": "looks at its indices",
    "slice_at": "looks at its starts",
    "slogdet": "two results",
    "sort": "an order is NumPy's",
    "stft": "by rfft",
    "svd": "three results",
    "symmetric_function": "by eigenvectors",
    "topk": "an order is NumPy's",
    "trunc_div": "NumPy's, which no kernel has",
    "update_slice_at": "looks at its starts",
    "zeta": "SciPy's, mended below 0",
}
#: samples of other ops that run in Python, such as those on integers
PYTHON_SAMPLES: Final = {
    "ceil(int[3])",
    "clamp(int[4],min=2,max=4)",
    "einsum(int[2,3],int[3],equation=ij,j->i)",
    "embedding(real[4,3],int[2,5],from_end=True)",
    "floor(int[3])",
    "gather(real[4,3],int[2,3],from_end=True)",
    "matmul(int[2,3],int[3,2])",
    "max(int[2,3],axes=[1])",
    "min(int[2,3],axes=[1])",
    "pow(int[2,3],int[3])",
    "prod(int[2,3])",
    "relu(int[3])",
    "round(int[3])",
    "scatter_add(real[4,3],int[2,3],real[2,3],from_end=True)",
    "take_along(real[1,4,2],int[3,2,1],axis=1,from_end=True)",
}
#: samples with a gradient in Python only: sums of repeated rows, and additions at fewer rows than there are
PYTHON_GRADIENTS: Final = {
    "cdist(real[2,3,2],real[1,2,2],p=1.0)",
    "einsum(real[2],real[3],equation=i,j->ji)",
    "gather(real[3,4],int[2,5],axis=-1)",
    "logsumexp(real[])",
}
#: ops whose gradients use digamma and lgamma, which are SciPy's
PYTHON_GRADIENT_OPS: Final = {"betainc", "igamma", "igammac"}
ADDED_IN_PART: Final = {"scatter_add(real[3,4],int[2,5],real[2,5],axis=-1)"}
#: ops that move floats or call library functions, with the same bits as NumPy
EXACT_OPS: Final = {
    *("acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "cast", "cat", "cosh", "cumsum", "diag", "embedding"),
    *("flip", "gather", "inv", "pad", "pow", "roll", "sinh", "slice", "solve", "split", "stack", "take_along", "tan"),
    *("tile", "transpose", "tril", "triu", "update_slice"),
}


def looped(case: Case) -> Written:
    """Run the op in each step of a scan on operands of that step, next to other work."""

    def body(g: Writer, angle: int, *operands: int) -> list[int]:
        names = {"and": "and_", "or": "or_", "not": "not_"}
        output = getattr(g, names.get(case.op.name, case.op.name))(*operands, **case.attrs)
        types = case.result_types()
        results = [g.get_output(output, index=k) for k in range(len(types))] if case.op.several else [output]
        reals = [g.add(g.real(y), g.imag(y)) if t.is_complex else y for y, t in zip(results, types, strict=True)]
        return [g.sin(angle), *reals]

    def write(g: Writer, angle: int, *entries: int) -> list[int]:
        return list(g.scan(angle, *entries, body=body, carries=1, length=LENGTH, sequences=len(entries)))

    steps = [case.arrays(salt=step) for step in range(LENGTH)]
    return written(write, np.array(0.5), *(np.stack(entries) for entries in zip(*steps, strict=True)))


def has_body(case: Case) -> bool:
    """Return whether there is work for a kernel: elements, and no functions or complex numbers, tested elsewhere."""
    shapes = [*(type.shape for type in case.result_types()), *(x.shape for x in case.arrays())]
    kinds = {operand.kind for operand in case.sample.operands}
    has_code = bool(kinds) and not case.op.functions and "complex" not in kinds
    return has_code and all(map(math.prod, shapes))


def recording(calls: list[None], function: Callable[..., None]) -> Callable[..., None]:
    """Wrap the function so that each call is recorded."""

    def wrapper(*arguments: Any) -> None:
        calls.append(None)
        function(*arguments)

    return wrapper


def check_loop(asked: Written, call: Call, patch: pytest.MonkeyPatch, by_python: bool, exactly: bool) -> None:
    """Assert that Python runs the loop only if expected, and that results match Python, to the bit or nearly."""
    by_steps, python_calls = list[None](), list[None]()
    patch.setattr(PlannedScan, "repeat", recording(by_steps, PlannedScan.repeat))
    patch.setattr(PythonStep, "__call__", recording(python_calls, PythonStep.__call__))
    plan = Compiler(asked.program.limits).compile(asked.program, asked.types, call).plan
    feeds = {feed: asked.feeds[feed] for feed in plan.feeds}
    expected = EXECUTOR.run(plan, feeds)
    for _ in range(3):
        for _ in range(2):
            NATIVE.run(plan, feeds)
        NATIVE.settle()
    by_steps.clear()
    python_calls.clear()
    actual = NATIVE.run(plan, feeds)
    assert bool(by_steps or python_calls) is by_python
    same(actual, expected, 1e-6 if any(x.dtype == np.float32 for x in expected) else 1e-11)
    same(actual[1:] if exactly else [], expected[1:] if exactly else [], 0)


def is_exact(case: Case) -> bool:
    """Return whether bits match NumPy: for moved, counted or called values, not for computed and summed ones."""
    return any(type.dtype.kind != "f" for type in case.result_types()) or case.op.name in EXACT_OPS


CASES = [case for case in all_cases() if has_body(case)]


def bodies(case: Case) -> Iterator[Hashable]:
    """Yield the aspects a body covers: the op, for Python ops; else its aspects, and the sample if it is listed."""
    yield str(case) if str(case) in PYTHON_SAMPLES | PYTHON_GRADIENTS | ADDED_IN_PART else case.op.name
    yield from () if case.op.name in PYTHON_OPS else aspects(case)


@together
@pytest.mark.parametrize("case", sampled(CASES, bodies), ids=str)
def test_body_is_one_native_call(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = looped(case)
    by_python = case.op.name in PYTHON_OPS or str(case) in PYTHON_SAMPLES | ADDED_IN_PART
    check_loop(asked, Values.of_program(asked.program, asked.results), monkeypatch, by_python, is_exact(case))


@together
@pytest.mark.parametrize("case", sampled(filter(has_rule, CASES), bodies), ids=str)
def test_backward_pass_is_one_native_call(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = looped(case)
    by_python = (
        case.op.name in PYTHON_OPS.keys() | PYTHON_GRADIENT_OPS
        or str(case) in PYTHON_SAMPLES | PYTHON_GRADIENTS | ADDED_IN_PART
    )
    check_loop(asked, Gradients.of_program(asked.program), monkeypatch, by_python, exactly=False)


def test_constants_created_by_bind_outlive_the_calls() -> None:
    """A pad's fill, which is no constant of the graph, is read by copies."""
    asked = written(
        lambda g, x: g.scan(
            x,
            body=lambda g, x: [g.slice(g.pad(g.add(x, x), pad_width=[1, 1], fill=7.0), starts=[0], stops=[3])],
            carries=1,
            length=2,
        ),
        np.arange(3.0),
    )
    plan = Compiler(asked.program.limits).forward(asked.program, asked.types, asked.results).plan
    for _ in range(4):
        NATIVE.run(plan, asked.feeds)
        NATIVE.settle()
    held = [np.full((), 3.0) for _ in range(10_000)]
    assert NATIVE.run(plan, asked.feeds)[0].tolist() == [7.0, 14.0, 0.0]
    assert len(held) == 10_000
