"""All cases, drawn once and in one order, so that each has the same numbers whatever else runs."""

from __future__ import annotations

from tests.reference import algebra, movement, networks, pointwise, reductions, spatial, special

FAMILIES = (pointwise, reductions, movement, networks, spatial, algebra, special)
ALL = [case for family in FAMILIES for case in family.cases()]
