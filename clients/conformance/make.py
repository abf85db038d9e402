"""Generation of the case files, by `python -m clients.conformance.make`.

The cases come from the registry, the table of error codes, and the modules of `making`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Final

from clients.conformance.cases import GENERATED, Case
from clients.conformance.making import complex_cases, function_cases, hessian_cases, model_cases
from clients.conformance.making.answer_cases import answer_cases
from clients.conformance.making.graph_cases import graph_cases
from clients.conformance.making.live_cases import live_cases
from clients.conformance.making.refusal_cases import refusal_cases
from clients.conformance.making.retry_cases import retry_cases
from clients.conformance.making.state_cases import state_cases
from clients.conformance.making.tensor_cases import tensor_cases

#: modules with exchanges and live cases
_MODULES: Final = (model_cases, function_cases, complex_cases, hessian_cases)


def _graphs() -> Iterator[Case]:
    return chain(graph_cases(), function_cases.build_cases())


def _exchanges() -> Iterator[Case]:
    of_modules = (module.exchange_cases() for module in _MODULES)
    return chain(refusal_cases(), retry_cases(), answer_cases(), state_cases(), *of_modules)


def _live() -> Iterator[Case]:
    return chain(live_cases(), *(module.live_cases() for module in _MODULES))


SOURCES: Final[Mapping[str, Callable[[], Iterable[Case]]]] = {
    "tensors": tensor_cases,
    "graphs": _graphs,
    "exchanges": _exchanges,
    "live": _live,
}


def content(kind: str) -> str:
    """Return the text of the file of a kind, with one case per line."""
    lines = ",\n".join(json.dumps(case, ensure_ascii=False) for case in SOURCES[kind]())
    return f'{{"kind": "{kind}", "cases": [\n{lines}\n]}}\n'


def files() -> dict[Path, str]:
    """Return the text of each file, by path."""
    return {GENERATED / f"{kind}.json": content(kind) for kind in SOURCES}


def main() -> None:
    """Write all case files."""
    for path, text in files().items():
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
