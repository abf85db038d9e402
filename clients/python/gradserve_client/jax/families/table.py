"""The table that each family adds its rules to."""

from __future__ import annotations

from typing import Final

from gradserve_client.importing import RuleTable
from gradserve_client.jax.call import PrimitiveRule

RULES: Final[RuleTable[PrimitiveRule]] = RuleTable()
