"""Recording: Python functions, written with operators or against the Array API standard, become graphs."""

from __future__ import annotations

from gradserve_client.recording.async_function import AsyncFunction
from gradserve_client.recording.function import Function, function
from gradserve_client.recording.lines import RecordingError
from gradserve_client.recording.loops import call, cond, fixed_point, map, scan, while_loop

__all__ = [
    "AsyncFunction",
    "Function",
    "RecordingError",
    "call",
    "cond",
    "fixed_point",
    "function",
    "map",
    "scan",
    "while_loop",
]
