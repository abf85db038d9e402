"""The bridge to PyTorch, and its importer. Both need the extra `torch`.

layer             `layer`: recorded functions as operations of PyTorch
resident          `ResidentModule`: layers whose parameters stay with the server
arrays            tensors of PyTorch as arrays that are fed, and back
importer          `import_module`: from a module and example arguments to what `gradserve_client.importing` gives
exporting         from a module to a program of ops that have rules, by torch.export
stop_gradients    where a program stops gradients, marked before that is forgotten
leaves            what a program reads: parameters, buffers, constants, inputs
translator        the walk over the nodes of a program: folds, asks rules
values            what their results are
call              one node, as a rule sees it
places            where a node was written
rules             the table of rules, with those of all families; what is refused by name
families          the rules, a family a file

The importer is loaded when it is first asked for.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from gradserve_client.torch.layer import layer
from gradserve_client.torch.resident import ResidentModule

if TYPE_CHECKING:
    from gradserve_client.torch.importer import import_module

__all__ = ["ResidentModule", "import_module", "layer"]


def __getattr__(name: str) -> Any:
    if name == "import_module":
        return importlib.import_module("gradserve_client.torch.importer").import_module
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
