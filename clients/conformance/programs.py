"""Conformance programs: started as subprocesses, sent one case after the other, and stopped."""

from __future__ import annotations

import json
import os
import queue
import subprocess
import tempfile
import threading
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, Self

from clients.conformance.cases import Case
from clients.conformance.languages import Language

#: API key that a client finds in its environment
ENVIRONMENT_KEY: Final = "gs_of_the_environment"
#: timeout of one case, in seconds
_TIMEOUT_S: Final = 120.0
#: maximum number of characters of standard error that an error message quotes
_SHOWN: Final = 300
#: consecutive failures after which a program is not started again
_MAX_FAILURES: Final = 3


class ProgramError(Exception):
    """A program failed to build or gave no result."""


def build(language: Language) -> None:
    """Run the commands that build the program. Raises ProgramError."""
    for command in language.build:
        done = subprocess.run(command, cwd=language.folder, capture_output=True, text=True, check=False)  # noqa: S603 - our own table
        if done.returncode:
            raise ProgramError(f"{' '.join(command)} failed:\n{done.stdout}{done.stderr}")


class Program:
    """Program of a client, started by the first case, and again if it has ended."""

    def __init__(self, language: Language) -> None:
        self._language = language
        self._running: _Running | None = None
        self._failures = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self._end()

    def ask(self, case: Case) -> tuple[dict[str, Any], str]:
        """Return the result of a case, and everything that the program wrote during it. Raises ProgramError."""
        if self._failures == _MAX_FAILURES:
            raise ProgramError("the program is not asked any more")
        try:
            self._running = self._running or _Running(self._language.start, self._language.folder)
            answer = self._running.ask(case)
        except (ProgramError, OSError) as error:
            self._failures += 1
            self._end()
            raise ProgramError(str(error)) from None
        self._failures = 0
        return answer

    def _end(self) -> None:
        if self._running is not None:
            self._running.end()
            self._running = None


class _Running:
    """A process, with its output lines in a queue that ends with None."""

    def __init__(self, command: Sequence[str], folder: Path) -> None:
        self._log = tempfile.NamedTemporaryFile()  # noqa: SIM115 - closed by `end`
        try:
            self._process = subprocess.Popen(  # noqa: S603 - our own table
                command,
                cwd=folder,
                env=os.environ | {"GRADSERVE_API_KEY": ENVIRONMENT_KEY},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._log,
                encoding="utf-8",
            )
        except OSError:
            self._log.close()
            raise
        self._lines: queue.Queue[str | None] = queue.Queue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None, "it is a pipe"
        with self._process.stdout as lines:
            for line in lines:
                self._lines.put(line)
        self._lines.put(None)

    def ask(self, case: Case) -> tuple[dict[str, Any], str]:
        logged = self._logged()
        try:
            self._send(case)
            line = self._lines.get(timeout=_TIMEOUT_S)
        except queue.Empty:
            raise ProgramError(f"no result came for {_TIMEOUT_S:.0f} s") from None
        except BrokenPipeError:
            line = None
        if line is None:
            raise ProgramError(f"the program ended: {self._last_stderr()}")
        return _result(line, case), line + self._logged()[len(logged) :]

    def _send(self, case: Case) -> None:
        assert self._process.stdin is not None, "it is a pipe"
        self._process.stdin.write(json.dumps(case) + "\n")
        self._process.stdin.flush()

    def _logged(self) -> str:
        return Path(self._log.name).read_text(encoding="utf-8", errors="replace")

    def _last_stderr(self) -> str:
        """Return the end of its standard error, in one line."""
        return " ".join(self._logged().split())[-_SHOWN:] or "it said nothing"

    def end(self) -> None:
        """Close its input, and kill it if it still runs after ten seconds."""
        assert self._process.stdin is not None, "it is a pipe"
        with suppress(BrokenPipeError):
            self._process.stdin.close()
        try:
            self._process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._reader.join()
        self._log.close()


def _result(line: str, case: Case) -> dict[str, Any]:
    try:
        result = json.loads(line)
    except json.JSONDecodeError:
        raise ProgramError(f"a line is no JSON: {line[:200]!r}") from None
    if not isinstance(result, dict) or result.get("id") != case["id"]:
        raise ProgramError(f"a line is no result of this case: {line[:200]!r}")
    return result
