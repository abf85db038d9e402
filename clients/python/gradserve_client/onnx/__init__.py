"""Models of ONNX as graphs. Importing this needs `onnx`, the extra that is called so.

reading           files and bytes as models whose tensors hold what they state
importer          `import_model`: from a file and example inputs to what `gradserve_client.importing` gives
examples          `import_file`, with examples of its own where none are given
translator        the walk over the nodes of a model: folds, expands functions, asks rules
scope             the names that nodes see, and their values
call              one node, as a rule sees it
evaluating        ONNX's reference evaluator, a node at a time
sizes             how large results are, before a node runs
mended            what that evaluator lacks, or has wrong
stepping          what runs bodies, a step at a time
bodies            bodies as functions of the graph
expanding         ops that ONNX defines as functions, and a model's own functions
notes_of          what is noted of initialisers
rules             the table of rules, with those of all families
families          the rules, a family a file
"""

from __future__ import annotations

from gradserve_client.onnx.examples import import_file
from gradserve_client.onnx.importer import import_model

__all__ = ["import_file", "import_model"]
