"""The rules by which several servers share a place, and each of them removed: then histories go wrong."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, Final
from unittest.mock import patch

from service.store.commit_objects import Contents, Item, Note, Reading, commit_key, encode_commit, read_head
from service.store.commits import Commits
from service.store.fence import Fence
from service.store.idempotency import AnswerTable
from service.store.object_journal import ObjectJournal
from service.store.objects import Exists, Missing
from service.store.ownership import LeaseWriter

#: replaces parts of the code, until it is left
Removal = Callable[[ExitStack], None]


def replaced(owner: object, name: str, by: Any) -> Removal:
    """Another part in place of one of a class or a module."""
    return lambda stack: stack.enter_context(patch.object(owner, name, by)) and None


_sequences = Reading.sequences
_end = LeaseWriter.end
_inherit = LeaseWriter._inherit
_commit = ObjectJournal.commit


def _sequences_before(reading: Reading, after: int = 0) -> list[int]:
    return [] if after else _sequences(reading)


def _made_or_withdrawn(
    tenure: LeaseWriter, said: Sequence[tuple[Item, memoryview | None]], note: Note
) -> Contents | None:
    """A write without an answer is deleted, and refused."""
    token = secrets.token_hex(8)
    pieces, contents = encode_commit(tenure.next, token, said, note)
    began = tenure._environment.now()
    tenure._token = token
    try:
        tenure._objects.put_new(commit_key(tenure.next), pieces)
    except Exists:
        return None if tenure._token_at(tenure.next) != token else contents
    except OSError:
        try:
            if read_head(tenure._objects, tenure.next).token == token:
                tenure._objects.delete([commit_key(tenure.next)])
        except Missing:
            pass
        raise
    tenure._looked = max(tenure._looked, began)
    return contents


def _made_or_refused(
    tenure: LeaseWriter, said: Sequence[tuple[Item, memoryview | None]], note: Note
) -> Contents | None:
    """A write without an answer is refused, and its number is tried with what comes next."""
    token = secrets.token_hex(8)
    pieces, contents = encode_commit(tenure.next, token, said, note)
    began = tenure._environment.now()
    tenure._token = token
    ours = tenure._send(pieces)
    if ours is None:
        raise OSError(5, "a race")
    if not ours:
        return None
    tenure._looked = max(tenure._looked, began)
    return contents


def _made_anew(tenure: LeaseWriter, said: Sequence[tuple[Item, memoryview | None]], note: Note) -> Contents | None:
    """A write without an answer is tried again with another token."""
    began = tenure._environment.now()
    while True:
        tenure._token = secrets.token_hex(8)
        pieces, contents = encode_commit(tenure.next, tenure._token, said, note)
        ours = tenure._try_create(pieces, first=False)
        if ours is not None:
            tenure._looked = max(tenure._looked, began)
            return contents if ours else None
        if tenure._gives_up:
            raise OSError(5, "the end")
        tenure._environment.sleep(0.1)


def _commit_and_delete_openings(journal: ObjectJournal, batch: Any) -> None:
    _commit(journal, batch)
    tenure: Any = journal._ownership
    opened = [n for n in getattr(tenure, "opened", ()) if n < tenure.next - 1]
    if opened:
        tenure.opened = [n for n in tenure.opened if n not in opened]
        journal._objects.delete([commit_key(n) for n in opened])


def _inherit_openings(tenure: Any, heads: Mapping[int, Contents]) -> None:
    _inherit(tenure, heads)
    tenure.opened = [n for n, head in heads.items() if head.is_opening]


def _inherit_nothing_sent_twice(tenure: Any, heads: Mapping[int, Contents]) -> None:
    _inherit(tenure, heads)
    openings = {n for n, head in heads.items() if head.is_opening} | {tenure.next - 1}
    tenure._stubs = {n: head for n, head in tenure._stubs.items() if n + 1 in openings}


def _write_forgetting(write: Callable[..., Contents]) -> Callable[..., Contents]:
    def written(tenure: LeaseWriter, said: Any) -> Contents:
        contents = write(tenure, said)
        tenure._stubs.pop(contents.sequence, None)
        return contents

    return written


def _end_and_answer_on(tenure: LeaseWriter) -> None:
    _end(tenure)
    tenure._ended = False


async def _unseen(_: Commits) -> None:
    return None


def both(*removals: Removal) -> Removal:
    """All of these removals."""

    def remove(stack: ExitStack) -> None:
        for removal in removals:
            removal(stack)

    return remove


RULES: Final[Mapping[str, Removal]] = {
    "an opening counts once nothing is behind it": replaced(Reading, "sequences", _sequences_before),
    "a write in doubt is not taken back": replaced(LeaseWriter, "_create_commit", _made_or_withdrawn),
    "a write in doubt is not refused": replaced(LeaseWriter, "_create_commit", _made_or_refused),
    "a write in doubt is tried with the same token": replaced(LeaseWriter, "_create_commit", _made_anew),
    "an answer in doubt stands for its call": replaced(
        AnswerTable, "_first", lambda table, key: table._under_way.get(key)
    ),
    "openings stay": both(
        replaced(LeaseWriter, "_inherit", _inherit_openings),
        replaced(ObjectJournal, "commit", _commit_and_delete_openings),
    ),
    "what stands before an opening keeps its number": replaced(LeaseWriter, "stub", lambda tenure, sequence: None),
    "what was sent twice keeps its number": both(
        replaced(LeaseWriter, "_inherit", _inherit_nothing_sent_twice),
        replaced(LeaseWriter, "write_items", _write_forgetting(LeaseWriter.write_items)),
    ),
    "the last object stays": replaced(ObjectJournal, "_deletable", lambda journal: journal._ledger.dead()),
    "a read takes a look, once the lease is over": replaced(LeaseWriter, "holds", lambda tenure: not tenure._lost),
    "a refusal takes a look, or a commit": both(
        replaced(Commits, "_confirm", _unseen),
        replaced(Fence, "open", property(lambda fence: True)),
    ),
    "a server that begins waits": replaced(LeaseWriter, "settle", lambda tenure: None),
    "a server that released answers no more": replaced(LeaseWriter, "end", _end_and_answer_on),
}


@contextmanager
def without(rule: str | None, rules: Mapping[str, Removal] = RULES) -> Iterator[None]:
    """All rules but this one hold; None: all of them."""
    with ExitStack() as stack:
        if rule is not None:
            rules[rule](stack)
        yield
