"""Cases asked of a program, and what is wrong with each answer."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Final, NamedTuple

from clients.conformance.cases import Case, told
from clients.conformance.compare import fault
from clients.conformance.languages import Language
from clients.conformance.plain_client import PlainClient
from clients.conformance.programs import ENVIRONMENT_KEY, Program, ProgramError
from clients.conformance.proxy import growing_proxy
from clients.conformance.requests import unexpected
from clients.conformance.rewriting import expected
from clients.conformance.scripted import ScriptedServer, scripted_server
from examples.server import running_server

#: how the real server runs: what it answers depends on what it is asked alone
_OPTIONS: Final = ("--device", "cpu", "--workers", "1", "--determinism", "bitwise")


class Verdict(NamedTuple):
    """A case, and what is wrong with the answer to it; None: nothing."""

    case: Case
    fault: str | None


@dataclass(frozen=True)
class Servers:
    """What cases are asked of. `live` is the address of a real server, which `plain` asks without a client."""

    scripted: ScriptedServer
    live: str | None
    plain: PlainClient | None
    future: bool = False


@contextmanager
def servers(*, live: bool, future: bool = False) -> Iterator[Servers]:
    """Start them; the real one where there are cases for it. With `future`, they answer as tomorrow's will."""
    with ExitStack() as stack:
        scripted = stack.enter_context(scripted_server(future=future))
        if not live:
            yield Servers(scripted, None, None, future)
            return
        url = stack.enter_context(running_server(*_OPTIONS))
        plain = stack.enter_context(PlainClient(url))
        yield Servers(scripted, stack.enter_context(growing_proxy(url)) if future else url, plain, future)


def verdicts(language: Language, chosen: Iterable[Case], around: Servers) -> Iterator[Verdict]:
    """Ask the program of a language all of these cases, one after the other."""
    with Program(language) as program:
        for case in chosen:
            wanted = _wanted(case, around)
            try:
                yield Verdict(case, _judged(wanted, program, around))
            except ProgramError as error:
                yield Verdict(case, str(error))
            if case["kind"] == "live" and around.plain is not None:
                around.plain.clear()


def _wanted(case: Case, around: Servers) -> Case:
    """The case with what is wanted of it: of a real server, what that answers."""
    if case["kind"] == "live":
        assert around.plain is not None, "live cases need a real server"
        case = case | {"want": around.plain.wanted(case)}
        around.plain.clear()
    return case | {"want": expected(case["want"])} if around.future else case


def _judged(case: Case, program: Program, around: Servers) -> str | None:
    if case["kind"] == "exchange":
        result, written = program.ask(told(case, around.scripted.begin(case)))
        came = around.scripted.end(case)
        return _leaked(case, written) or fault(case, result) or unexpected(case, came)
    if case["kind"] == "live" and (broken := _broken(case)):
        return broken
    result, written = program.ask(told(case, around.live if case["kind"] == "live" else None))
    return _leaked(case, written) or fault(case, result)


def _broken(case: Case) -> str | None:
    """Whether the real server failed when it was asked what is wanted: then all clients would be right."""
    results = case["want"]["results"]
    failed = [error for result in results if (error := result.get("raised", {})).get("type") == "server"]
    return f"the server itself failed: {failed[0]}" if failed else None


def _leaked(case: Case, written: str) -> str | None:
    """Whether a key is in what the program wrote."""
    keys = (ENVIRONMENT_KEY, case.get("client", {}).get("api_key"))
    found = [key for key in keys if key and (key in written or json.dumps(key)[1:-1] in written)]
    return f"the key {found[0]} is in what the program wrote" if found else None
