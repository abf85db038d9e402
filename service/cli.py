"""The command `gradserve`: its arguments, then one of the commands."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence

from service.admin.arguments import parse
from service.core.installed import VERSIONS


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one command; without one, serve. Ends with status 141, as a shell's tools do, when nobody reads on."""
    try:
        try:
            options = parse(sys.argv[1:] if arguments is None else arguments, VERSIONS["gradserve"])
            from service.admin.commands import RUN  # noqa: PLC0415 - the server, which --help and --version do not need

            RUN[options.pop("command")](options)
        finally:
            print(end="", flush=True)
    except BrokenPipeError:
        # Python writes what is left once more when it ends, and would complain then.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise SystemExit(128 + signal.SIGPIPE) from None
