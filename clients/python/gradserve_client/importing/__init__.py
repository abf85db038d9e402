"""The parts that all importers share: a model of another system becomes a graph, or is rejected with all reasons.

An importer walks over the nodes of a model and looks up a rule for each op in its `RuleTable`. The rule appends nodes
to a `SourceGraph`. For example, the rule of ONNX's `Gemm` appends a `matmul`, a `mul_scalar` and an `add`. If a rule
cannot express an op, it raises `Blocked` with the reason. The importer records it in `Obstacles` with the place in the
source, and continues as if the op had been expressed. So one `ImportRefused`, raised by `Obstacles.raise_all`, lists
everything that prevents the import.

Rules may append nodes that nothing reads in the end. The result, an `Imported`, therefore holds the part of the graph
that the outputs depend on, with names for its leaves and outputs, the values of its weights, and notes. A `Budget`
counts nodes, steps and bytes along the way, so that a small model file cannot exhaust the machine.

Shapes are those of an example. For free extents, a model is imported with two examples, and the two graphs are joined:
extents in which they differ become -1.
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
