"""Functions in Python, recorded as graphs: what is written against the Array API standard, or with operators."""

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
