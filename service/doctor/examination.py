"""The checks, in the order in which they are reported."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from service.doctor.confinement import confinement
from service.doctor.diagnosis import Check, Diagnosis, broken
from service.doctor.places import cache, certificate, incidents, keys, state
from service.doctor.resources import caches, clock, descriptors, memory, processors
from service.doctor.software import blas, card_libraries, gpu, kernels, python
from service.doctor.trial import gradient, port
from service.settings import Settings

CHECKS: Final[Mapping[str, Check]] = {
    "python": python,
    "blas": blas,
    "kernels": kernels,
    "gpu": gpu,
    "libraries": card_libraries,
    "processors": processors,
    "memory": memory,
    "caches": caches,
    "descriptors": descriptors,
    "clock": clock,
    "confinement": confinement,
    "cache": cache,
    "incidents": incidents,
    "state": state,
    "keys": keys,
    "tls": certificate,
    "port": port,
    "server": gradient,
}


def examined(settings: Settings, checks: Mapping[str, Check] = CHECKS) -> Iterator[tuple[str, Diagnosis]]:
    """Each check by its name, and what it found, as it is done. One that fails itself is a finding too."""
    for name, check in checks.items():
        try:
            yield name, check(settings)
        except Exception as error:  # noqa: BLE001 - a check that breaks must not hide those after it
            yield name, broken(f"the check itself failed: {type(error).__name__}: {error}", "report this as a fault")
