"""Confinement of workers here, found by confining a process as they are, and having it try."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Final

import service
from service.doctor.attempts import ATTEMPTS
from service.doctor.diagnosis import TRIAL_SECONDS, Diagnosis, broken, doubtful, fine
from service.settings import Settings, flag, without_secrets
from service.worker.confinement import offers
from service.worker.permitted import environment_of, permitted

_COMMAND: Final = (sys.executable, "-P", "-m", "service.doctor.attempts")


def confinement(settings: Settings) -> Diagnosis:
    """Check what keeps workers from files, sockets, programs and other processes."""
    try:
        allowed = permitted(settings)
    except RuntimeError as error:
        return broken(str(error), "a server does not start like this")
    if allowed is None:
        return doubtful("workers are not confined", f"do without {flag('confine')} off where strangers' graphs are run")
    missing, can = offers().missing, _possible(environment_of(allowed))
    if can:
        reason = f": {'; '.join(missing)}" if missing else ""
        return doubtful(
            f"workers can {', '.join(can)}{reason}", "use a kernel that has what is missing, from Linux 6.12"
        )
    kept = f"workers cannot {', '.join(ATTEMPTS)}: tried, with Landlock {offers().landlock} and seccomp"
    return doubtful(kept, "; ".join(missing)) if missing else fine(kept)


def _possible(confined_to: dict[str, str]) -> list[str]:
    """Return what a process can do that is confined like this."""
    paths = os.pathsep.join((str(Path(service.__file__).parents[1]), *filter(None, sys.path)))
    environment = {**without_secrets(os.environ), "PYTHONPATH": paths, **confined_to}
    done = subprocess.run(_COMMAND, capture_output=True, check=True, env=environment, timeout=TRIAL_SECONDS)  # noqa: S603
    return [str(name) for name in json.loads(done.stdout)]
