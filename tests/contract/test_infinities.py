"""Elementwise ops at infinities, zeros and huge numbers: a derivative with a limit is that limit, not NaN."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product

import numpy as np
import pytest

from engine.ops.elementwise.base import Elementwise
from tests.contract.cases import Array, Case, all_cases, has_rule
from tests.engine.ops.run import grads
from tests.sampling import together

INF = np.inf
NEAR = (INF, -INF, 0.0, -0.0, 1.0, -1.0)
ENDS = (*NEAR, 1e200, -1e200)
#: composites of one operand
UNARY_COMPOSITES = ("gelu", "log_eps", "selu", "silu")

Points = tuple[float, ...]


def _has_indeterminate_form(x: float, y: float) -> bool:
    """Return whether x / y or x · log y is NaN in IEEE 754, or log y is undefined at x = 0."""
    return (x == 0 and y <= 0) or (abs(x) == INF and y in (1, INF))


#: points without a unique derivative, with the reason
NO_LIMIT: dict[str, tuple[Callable[..., bool], str]] = {
    "atan2": (lambda a, b: a == b == 0, "every direction has its own"),
    "betaln": (lambda a, b: min(a, b) <= 0 or a == b == INF, "poles on the left; at the end, it depends on a / b"),
    "betainc": (
        lambda a, b, x: min(a, b) <= 0 or not 0 <= x <= 1,
        "there is no value, or a shape of 0 has none beside it",
    ),
    "igamma": (lambda a, x: min(a, x) < 0, "there is no value"),
    "igammac": (lambda a, x: min(a, x) < 0, "there is no value"),
    "lgamma": (lambda x: x < 0, "poles at the whole numbers, however far"),
    "mod": (lambda a, b: abs(a) == INF, "it goes to and fro"),
    "rem": (lambda a, b: abs(a) == INF, "it goes to and fro"),
    "mul": (lambda a, b: {abs(a), abs(b)} == {0, INF}, "a product of IEEE 754: NaN"),
    "pow": (lambda a, b=1.0: a < 0, "by b there is none: between whole numbers the power is NaN"),
    "zeta": (lambda s, q: s <= 1 or q < 0, "poles, and whole numbers alone beyond them"),
    "xlog1py": (lambda x, y: _has_indeterminate_form(x, 1 + y), "x / (1 + y) and x · log (1 + y) have many"),
    "xlogy": (_has_indeterminate_form, "x / y and x · log y have many"),
}


def has_limit(case: Case, point: Points) -> bool:
    excepted, _ = NO_LIMIT.get(case.op.name, (lambda *_: False, ""))
    return not excepted(*point)


def real_operand_count(case: Case) -> int:
    return sum(o.kind == "real" for o in case.sample.operands)


def elementwise_cases() -> Iterator[Case]:
    """Yield one case for each elementwise op and its attributes."""
    seen = set()
    for case in all_cases():
        name = case.op.name, str(case.attrs), real_operand_count(case), len(case.sample.operands)
        if case.is_complex:  # products and quotients by the plain formula may be NaN at infinity
            continue
        if (
            name not in seen
            and (isinstance(case.op, Elementwise) or case.op.name in UNARY_COMPOSITES)
            and has_rule(case)
        ):
            seen.add(name)
            yield case


def value_and_gradients(case: Case, points: list[Points]) -> tuple[Array, list[Array]]:
    """Return values and gradients at points given by the float operands. Bool operands are true, integers 1."""
    columns = iter(np.array(points, "float64").T)
    kinds = {"bool": np.ones(len(points), bool), "int": np.ones(len(points), int)}
    arrays = [next(columns) if o.kind == "real" else kinds[o.kind] for o in case.sample.operands]
    return grads(case.op.name, *arrays, **case.attrs)


each_case = pytest.mark.parametrize("case", list(elementwise_cases()), ids=str)


@together
@each_case
def test_gradient_is_not_nan_where_value_is_defined(case: Case) -> None:
    points = list(product(ENDS, repeat=real_operand_count(case)))
    value, gradients = value_and_gradients(case, points)
    for gradient in gradients:
        lost = [p for p, y, g in zip(points, value, gradient, strict=True) if np.isnan(g) and not np.isnan(y)]
        assert not [p for p in lost if has_limit(case, p)]


@together
@each_case
def test_value_and_gradient_at_infinity_are_limits(case: Case) -> None:
    """Take the limit as known if 1e290 and 1e300 in place of an infinity agree."""
    points = [
        p for p in product(NEAR, repeat=real_operand_count(case)) if np.isinf(p).sum() == 1 and has_limit(case, p)
    ]
    far, farther = (
        value_and_gradients(case, [tuple(np.copysign(x, p) if np.isinf(p) else p for p in point) for point in points])
        for x in (1e290, 1e300)
    )
    value, gradients = value_and_gradients(case, points)
    for actual, at_far, at_farther in zip(
        [value, *gradients], [far[0], *far[1]], [farther[0], *farther[1]], strict=True
    ):
        settled = np.isfinite(at_farther) & np.isclose(at_farther, at_far, rtol=1e-9, atol=1e-80)
        np.testing.assert_allclose(actual[settled], at_farther[settled], rtol=1e-9, atol=1e-80)


@pytest.mark.parametrize("a", [0.5, 1.0, 99.0, 500.0, 1e200])
def test_betaln_with_infinite_operand(a: float) -> None:
    value, (da, db) = grads("betaln", np.array([a, INF]), np.array([INF, a]))
    assert value.tolist() == [-INF, -INF]
    assert (da.tolist(), db.tolist()) == ([-INF, 0], [0, -INF])
