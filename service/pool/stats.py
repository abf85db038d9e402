from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Stats:
    """Numbers of what waits and runs at this moment, and of what has become of workers since the start.

    `queued` and `workers` are by lane, `restarts` by the reason for which workers were replaced. Bytes: `reserved` for
    requests from their heads on, `resident` of the workers in all, `device` of their GPUs' pools. `compiled` are
    kernels that were made or loaded. `incidents` are workers that were ended by a signal, by its name; `condemned` are
    plans that run without kernels since they ended workers. `callers` share it all at this moment, and `displaced`
    tasks have given way to others' since the start. `pieces` of sums have been done since then, by where, and some of
    them `repeated`.
    """

    queued: Mapping[str, int] = field(default_factory=dict)
    running: int = 0
    workers: Mapping[str, int] = field(default_factory=dict)
    restarts: Mapping[str, int] = field(default_factory=dict)
    reserved: int = 0
    resident: int = 0
    device: int = 0
    compiled: int = 0
    incidents: Mapping[str, int] = field(default_factory=dict)
    condemned: int = 0
    callers: int = 0
    displaced: int = 0
    pieces: Mapping[str, int] = field(default_factory=dict)
    repeated: int = 0
