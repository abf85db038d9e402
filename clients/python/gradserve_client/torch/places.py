"""Where a node of a program was written."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Final

_FRAME: Final = re.compile(r'File "(.+?)", line (\d+), in ')
#: frames of these are none that the module was written in
_LIBRARY: Final = re.compile(r"site-packages.torch.|<eval_with_key>|<string>")


def place_of(node: Any) -> str:
    """The module within the model by its path, and the last line of its source outside PyTorch."""
    stack = [*(node.meta.get("nn_module_stack") or {}).values()]
    path = str(stack[-1][0]).removeprefix("L['self'].") if stack else ""
    frames = _FRAME.findall(node.meta.get("stack_trace") or "")
    own = [(file, line) for file, line in frames if not _LIBRARY.search(file)]
    line = f"{Path(own[-1][0]).name}:{own[-1][1]}" if own else ""
    return f"{path!r}, {line}" if path and line else repr(path) if path else line or f"the node {node.name!r}"
