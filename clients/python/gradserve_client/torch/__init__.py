"""Bridge to PyTorch. Needs the extra `torch`.

`layer` wraps a recorded function as a differentiable PyTorch operation. `ResidentModule` is such a layer whose
parameters stay on the server. `import_module` exports a module with torch.export and translates the program, one rule
per op, into a graph. The importer is loaded on first use.
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
