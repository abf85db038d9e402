"""Execution of cases by a program, and the verdict on each result."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Final, NamedTuple

from clients.conformance.cases import Case, program_input
from clients.conformance.compare import fault
from clients.conformance.languages import Language
from clients.conformance.plain_client import PlainClient
from clients.conformance.programs import ENVIRONMENT_KEY, Program, ProgramError
from clients.conformance.proxy import growing_proxy
from clients.conformance.requests import unexpected
from clients.conformance.rewriting import expected
from clients.conformance.scripted import ScriptedServer, scripted_server
from examples.server import running_server

#: options of the real server that make its responses depend only on the requests
_OPTIONS: Final = ("--device", "cpu", "--workers", "1", "--determinism", "bitwise")


class Verdict(NamedTuple):
    """A case, and the fault of its result, None if it has none."""

    case: Case
    fault: str | None


@dataclass(frozen=True)
class Servers:
    """Running servers. `live` is the address of a real one, which `plain` calls without a client library."""

    scripted: ScriptedServer
    live: str | None
    plain: PlainClient | None
    future: bool = False


@contextmanager
def servers(*, live: bool, future: bool = False) -> Iterator[Servers]:
    """Start the servers, with a real one if `live`. With `future`, they extend responses as a future server might."""
    with ExitStack() as stack:
        scripted = stack.enter_context(scripted_server(future=future))
        if not live:
            yield Servers(scripted, None, None, future)
            return
        url = stack.enter_context(running_server(*_OPTIONS))
        plain = stack.enter_context(PlainClient(url))
        yield Servers(scripted, stack.enter_context(growing_proxy(url)) if future else url, plain, future)


def verdicts(language: Language, chosen: Iterable[Case], running: Servers) -> Iterator[Verdict]:
    """Run cases one after the other in the program of a language."""
    with Program(language) as program:
        for case in chosen:
            expected_case = _with_expected(case, running)
            try:
                yield Verdict(case, _fault_of(expected_case, program, running))
            except ProgramError as error:
                yield Verdict(case, str(error))
            if case["kind"] == "live" and running.plain is not None:
                running.plain.clear()


def _with_expected(case: Case, running: Servers) -> Case:
    """Return the case with its expected result, which for live cases is the response of the real server."""
    if case["kind"] == "live":
        assert running.plain is not None, "live cases need a real server"
        case = case | {"want": running.plain.expected_results(case)}
        running.plain.clear()
    return case | {"want": expected(case["want"])} if running.future else case


def _fault_of(case: Case, program: Program, running: Servers) -> str | None:
    if case["kind"] == "exchange":
        result, written = program.ask(program_input(case, running.scripted.begin(case)))
        received = running.scripted.end(case)
        return _leaked(case, written) or fault(case, result) or unexpected(case, received)
    if case["kind"] == "live" and (broken := _broken(case)):
        return broken
    result, written = program.ask(program_input(case, running.live if case["kind"] == "live" else None))
    return _leaked(case, written) or fault(case, result)


def _broken(case: Case) -> str | None:
    """Return an error if the real server failed to give the expected result: otherwise every client would pass."""
    results = case["want"]["results"]
    failed = [error for result in results if (error := result.get("raised", {})).get("type") == "server"]
    return f"the server itself failed: {failed[0]}" if failed else None


def _leaked(case: Case, written: str) -> str | None:
    """Return an error if the program wrote an API key."""
    keys = (ENVIRONMENT_KEY, case.get("client", {}).get("api_key"))
    leaked = [key for key in keys if key and (key in written or json.dumps(key)[1:-1] in written)]
    return f"the key {leaked[0]} is in what the program wrote" if leaked else None
