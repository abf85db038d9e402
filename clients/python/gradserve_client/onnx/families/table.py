"""The table of rules that the families fill."""

from __future__ import annotations

from typing import Final

from gradserve_client.importing import RuleTable
from gradserve_client.onnx.call import OpRule

RULES: Final[RuleTable[OpRule]] = RuleTable()
