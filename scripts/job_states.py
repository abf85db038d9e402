"""The states of a job in architecture.md, drawn and listed from the table that the pool uses."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from scripts.generated_part import replace_part
from service.workers.ticket import TRANSITIONS, TaskState

START: Final = "<!-- states: written by `make docs` from service/workers/ticket.py -->"
END: Final = "<!-- end of the states -->"


def with_states(page: str) -> str:
    """Return the page with the current drawing and table."""
    return replace_part(page, START, END, "\n".join(_lines()), "the states of a job")


def _lines() -> Iterator[str]:
    yield "```mermaid"
    yield "stateDiagram-v2"
    yield f"  [*] --> {_name(TaskState.WAITING)}: admitted"
    for before, follows in TRANSITIONS.items():
        for after, event in follows.items():
            yield f"  {_name(before)} --> {_name(after)}: {event}"
    yield f"  {_name(TaskState.ANSWERED)} --> [*]"
    yield "```"
    yield ""
    yield "| state | |"
    yield "| --- | --- |"
    yield from (f"| {_name(state)} | {state.meaning} |" for state in TaskState)


def _name(state: TaskState) -> str:
    return state.name.lower()
