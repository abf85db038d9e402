"""Compare the answers of two servers to the same requests: `python -m tests.exchanges write requests.jsonl`, and then

    record requests.jsonl before.jsonl     in a checkout of each version, whose server it starts
    compare requests.jsonl before.jsonl after.jsonl

A recording starts `python -m service` in the current folder; `--root` names another checkout.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import chdir
from pathlib import Path
from typing import Final

from examples.server import running_server
from tests.exchanges.corpus import Request, corpus
from tests.exchanges.recording import Difference, differences, record

#: options that make answers depend only on the requests
_REPRODUCIBLE: Final = ("--device", "cpu", "--workers", "1", "--max-bytes", "4GiB", "--log-level", "error")
_COMPILED: Final = ("--compile", "on", "--determinism", "bitwise")
_SHOWN: Final = 400


def main() -> int:
    """Run the command; return 1 if two recordings differ."""
    arguments = _arguments()
    if arguments.command == "write":
        lines = [request.line() + "\n" for request in corpus(arguments.size)]
        arguments.requests.write_text("".join(lines))
        print(f"{len(lines)} requests")
        return 0
    if arguments.command == "record":
        requests, answers = arguments.requests.resolve(), arguments.answers.resolve()
        compiling = _COMPILED if arguments.compiled else ("--compile", "off")
        with chdir(arguments.root), running_server(*_REPRODUCIBLE, *compiling) as url:
            print(f"{record(url, _read(requests), answers)} exchanges")
        return 0
    return _compare(arguments.requests, arguments.before, arguments.after)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="tests.exchanges")
    commands = parser.add_subparsers(dest="command", required=True)
    write = commands.add_parser("write", help="write a corpus of requests")
    write.add_argument("--size", type=int, default=3000)
    recording = commands.add_parser("record", help="send it to a server, and write down the answers")
    recording.add_argument("--root", type=Path, default=Path.cwd())
    recording.add_argument("--compiled", action="store_true", help="with kernels, compiled before the first answer")
    comparing = commands.add_parser("compare", help="compare two recordings")
    for command in (write, recording, comparing):
        command.add_argument("requests", type=Path)
    recording.add_argument("answers", type=Path)
    comparing.add_argument("before", type=Path)
    comparing.add_argument("after", type=Path)
    return parser.parse_args()


def _read(path: Path) -> Iterator[Request]:
    with path.open() as file:
        yield from map(Request.of, file)


def _compare(requests: Path, before: Path, after: Path) -> int:
    sent = list(_read(requests))
    differing = list(differences(sent, before, after))
    for difference in differing[:20]:
        _show(difference)
    statuses = Counter(line.split(",", 1)[0].strip("[") for line in after.read_text().splitlines())
    print(f"{len(sent)} exchanges, {len(differing)} differ; by status: {dict(sorted(statuses.items()))}")
    return 1 if differing else 0


def _show(difference: Difference) -> None:
    print(difference.request.method, difference.request.path, difference.request.content[:_SHOWN])
    for answer in (difference.before, difference.after):
        print("   ", "nothing" if answer is None else (answer.status, answer.headers, answer.content[:_SHOWN]))


if __name__ == "__main__":
    sys.exit(main())
