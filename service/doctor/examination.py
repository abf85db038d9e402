"""All checks, in the order in which one who reads them wants to know."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from service.doctor import confinement, places, resources, software, trial
from service.doctor.diagnosis import Check, Diagnosis, broken
from service.settings import Settings

CHECKS: Final[Mapping[str, Check]] = {
    "python": software.python,
    "blas": software.blas,
    "kernels": software.kernels,
    "gpu": software.gpu,
    "libraries": software.card_libraries,
    "processors": resources.processors,
    "memory": resources.memory,
    "caches": resources.caches,
    "descriptors": resources.descriptors,
    "clock": resources.clock,
    "confinement": confinement.held,
    "cache": places.cache,
    "incidents": places.incidents,
    "state": places.state,
    "keys": places.keys,
    "tls": places.certificate,
    "port": trial.port,
    "server": trial.gradient,
}


def examined(settings: Settings, checks: Mapping[str, Check] = CHECKS) -> Iterator[tuple[str, Diagnosis]]:
    """Each check by its name, and what it found, as it is done. One that fails itself is a finding too."""
    for name, check in checks.items():
        try:
            yield name, check(settings)
        except Exception as error:  # noqa: BLE001 - a check that breaks must not hide those after it
            yield name, broken(f"the check itself failed: {type(error).__name__}: {error}", "report this as a fault")
