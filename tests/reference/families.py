"""All cases, drawn once and in one order, so that each has the same numbers in every run."""

from __future__ import annotations

from tests.reference import algebra, indexing, movement, networks, pointwise, reductions, spatial, special, volumes

FAMILIES = (pointwise, reductions, movement, networks, spatial, algebra, special, indexing, volumes)
ALL = [case for family in FAMILIES for case in family.cases()]
