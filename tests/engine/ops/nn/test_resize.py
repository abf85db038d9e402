"""`resize` at its limits: one entry, conflicting attributes, and wider kernels for antialiasing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.engine.ops.run import error, run


def test_resizing_to_and_from_one_entry() -> None:
    assert run("resize", np.array([1.0, 3.0]), sizes=[1]).tolist() == [2.0]
    assert run("resize", np.array([3.0]), sizes=[3]).tolist() == [3.0] * 3


def test_only_antialias_widens_the_kernel() -> None:
    """Computed by hand: from 8 entries to 2, with centers at 1.5 and 5.5, a triangle four times as wide."""
    first = np.eye(8)[0]
    assert run("resize", first, sizes=[2]).tolist() == [0.0, 0.0]
    np.testing.assert_allclose(run("resize", first, sizes=[2], antialias=True), [0.625 / 3.5, 0.0], 1e-14)


@pytest.mark.parametrize(
    ("shape", "attrs", "says"),
    [
        ((2,), {"sizes": [3, 3]}, "attribute sizes must have at most 1 entry, but has 2 entries"),
        ((2, 2), {"sizes": [3], "axes": [0, 1]}, "attribute sizes must have 2 entries, one for each entry of axes"),
        ((2,), {"sizes": [3], "method": "nearest", "antialias": True}, "attribute antialias requires method linear"),
        ((2,), {"sizes": [3], "method": "nearest", "corners": True}, "attribute corners requires method linear"),
        (
            (2,),
            {"sizes": [3], "antialias": True, "corners": True},
            "attribute corners cannot be combined with antialias",
        ),
        ((2,), {"sizes": [0]}, "attribute sizes must be whole numbers of at least 1"),
    ],
)
def test_invalid_attributes_are_refused(shape: tuple[int, ...], attrs: dict[str, Any], says: str) -> None:
    refused = error("resize", np.zeros(shape), **attrs)
    assert refused.code == "bad_attribute"
    assert refused.detail.startswith(f"node 1 (resize): {says}")


def test_resizing_an_empty_axis_is_refused() -> None:
    refused = error("resize", np.zeros((2, 0)), sizes=[3])
    assert (refused.code, refused.operand) == ("shape_mismatch", 0)
    assert run("resize", np.zeros((0, 2)), sizes=[3]).shape == (0, 3)
