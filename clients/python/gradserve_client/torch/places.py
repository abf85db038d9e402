"""Source locations of a program's nodes."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Final

_FRAME: Final = re.compile(r'File "(.+?)", line (\d+), in ')
#: paths of frames that are not the module's source
_LIBRARY: Final = re.compile(r"site-packages.torch.|<eval_with_key>|<string>")


def place_of(node: Any) -> str:
    """Return the path of the submodule, and the innermost source line outside PyTorch."""
    stack = [*(node.meta.get("nn_module_stack") or {}).values()]
    path = str(stack[-1][0]).removeprefix("L['self'].") if stack else ""
    frames = _FRAME.findall(node.meta.get("stack_trace") or "")
    own = [(file, line) for file, line in frames if not _LIBRARY.search(file)]
    line = f"{Path(own[-1][0]).name}:{own[-1][1]}" if own else ""
    return f"{path!r}, {line}" if path and line else repr(path) if path else line or f"the node {node.name!r}"
