"""Parts that all importers share: their limits, their result and their refusals.

budget            how many nodes, steps and bytes an import may use
obstacles         what cannot be said, collected, and raised at once
rule_table        one rule an op
notes             what an import has to tell beside its graph
source_graph      the graph that rules write into, and the part of it that outputs need
writing           what the rules of all importers write
imported          what an importer gives: graph, leaves, outputs, buffers, notes
free_extents      two imports of one model as one graph whose shapes hold -1
command           `python -m gradserve_client import`

An importer walks the nodes of a model and asks its `RuleTable` for each. A rule writes nodes of a `SourceGraph`, or
raises `Blocked`, which goes into `Obstacles` with the place; the walk then goes on as if it had been said, so that all
that is in the way is told at once, by `Obstacles.raise_all`. What is left is an `Imported`, of the nodes that its
outputs need alone.
"""

from __future__ import annotations

from gradserve_client.importing.budget import DEFAULT_LIMITS, Budget, ImportLimits
from gradserve_client.importing.imported import Imported
from gradserve_client.importing.notes import Note
from gradserve_client.importing.obstacles import Blocked, ImportRefused, Obstacle, Obstacles
from gradserve_client.importing.rule_table import Rule, RuleTable
from gradserve_client.importing.source_graph import SourceGraph

__all__ = [
    "DEFAULT_LIMITS",
    "Blocked",
    "Budget",
    "ImportLimits",
    "ImportRefused",
    "Imported",
    "Note",
    "Obstacle",
    "Obstacles",
    "Rule",
    "RuleTable",
    "SourceGraph",
]
