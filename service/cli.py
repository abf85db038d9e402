"""The command `gradserve`: parses its arguments, and runs a subcommand."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence

from service.admin.arguments import parse
from service.core.installed import VERSIONS


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a subcommand, by default `serve`. Exit with status 141, like Unix tools, if the output's reader has gone."""
    try:
        try:
            options = parse(sys.argv[1:] if arguments is None else arguments, VERSIONS["gradserve"])
            from service.admin.commands import RUN  # noqa: PLC0415 - the server, which --help and --version do not need

            RUN[options.pop("command")](options)
        finally:
            print(end="", flush=True)
    except BrokenPipeError:
        # At exit, Python flushes the rest again and would report the error.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise SystemExit(128 + signal.SIGPIPE) from None
