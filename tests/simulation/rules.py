"""The rules by which several servers share a state, and their removals, which make histories go wrong."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace as dataclass_replace
from typing import Any, Final
from unittest.mock import patch

from service.store import ownership, promises
from service.store.commit_objects import (
    Chain,
    Contents,
    Item,
    Note,
    Past,
    Reading,
    commit_key,
    encode_commit,
    read_head,
)
from service.store.commits import Commits
from service.store.fence import Fence
from service.store.idempotency import AnswerTable
from service.store.object_journal import ObjectJournal
from service.store.objects import Exists, Missing
from service.store.ownership import LeaseWriter

#: seconds of a server in the simulation, so that histories of a minute have commits that are late for them, and reads
#: that promises allow although a message takes up to 20 ms
TIMES: Final = ((ownership, "CERTAIN", 2.0), (ownership, "SUPERSEDED", 2.5), (promises, "PROMISED", 0.25))

#: replaces parts of the code until the stack is left
Removal = Callable[[ExitStack], None]


def replace(owner: object, name: str, value: Any) -> Removal:
    """Replace an attribute of a class or a module."""
    return lambda stack: stack.enter_context(patch.object(owner, name, value)) and None


_sequences = Reading.sequences
_chain = Reading.chain
_end = LeaseWriter.end
_past = LeaseWriter._past


def _sequences_before(reading: Reading, after: int = 0) -> list[int]:
    return [] if after else _sequences(reading)


def _create_or_withdraw(
    writer: LeaseWriter, items: Sequence[tuple[Item, memoryview | None]], note: Note
) -> Contents | None:
    """Delete and refuse a write without an answer."""
    token = secrets.token_hex(8)
    pieces, contents = encode_commit(writer.next, token, items, note)
    began = writer._environment.now()
    writer._token = token
    try:
        writer._objects.put_new(commit_key(writer.next), pieces)
    except Exists:
        return None if writer._token_at(writer.next) != token else contents
    except OSError:
        try:
            if read_head(writer._objects, writer.next).token == token:
                writer._objects.delete([commit_key(writer.next)])
        except Missing:
            pass
        raise
    writer._looked = max(writer._looked, began)
    return contents


def _create_or_refuse(
    writer: LeaseWriter, items: Sequence[tuple[Item, memoryview | None]], note: Note
) -> Contents | None:
    """Refuse a write without an answer, and reuse its number for the next one."""
    token = secrets.token_hex(8)
    pieces, contents = encode_commit(writer.next, token, items, note)
    began = writer._environment.now()
    writer._token = token
    ours = writer._send(pieces)
    if ours is None:
        raise OSError(5, "a race")
    if not ours:
        return None
    writer._looked = max(writer._looked, began)
    return contents


def _create_with_a_new_token(
    writer: LeaseWriter, items: Sequence[tuple[Item, memoryview | None]], note: Note
) -> Contents | None:
    """Retry a write without an answer with another token."""
    began = writer._environment.now()
    while True:
        writer._token = secrets.token_hex(8)
        pieces, contents = encode_commit(writer.next, writer._token, items, note)
        ours = writer._try_create(pieces, first=False)
        if ours is not None:
            writer._looked = max(writer._looked, began)
            return contents if ours else None
        if writer._gives_up:
            raise OSError(5, "the end")
        writer._environment.sleep(0.1)


def _past_without_duplicates(writer: LeaseWriter, chain: Chain, heads: Mapping[int, Contents]) -> Past:
    """Leave out of `fixed` what was sent twice."""
    past = _past(writer, chain, heads)
    opened = {n for n, head in heads.items() if head.is_opening} | {writer.next}
    return dataclass_replace(past, fixed=tuple(n for n in past.fixed if n + 1 in opened))


def _chain_of_all(reading: Reading) -> Chain:
    """Count all commits, also those that no opening knows."""
    chain = _chain(reading)
    return chain._replace(valid=chain.listed)


def _without_stub(write: Callable[..., Contents]) -> Callable[..., Contents]:
    def written(writer: LeaseWriter, items: Any) -> Contents:
        contents = write(writer, items)
        writer._stubs.pop(contents.sequence, None)
        return contents

    return written


def _end_and_keep_answering(writer: LeaseWriter, successor: str | None = None) -> None:
    _end(writer, successor)
    writer._ended = False


async def _unseen(_: Commits) -> None:
    return None


def combine(*removals: Removal) -> Removal:
    """Combine removals."""

    def remove(stack: ExitStack) -> None:
        for removal in removals:
            removal(stack)

    return remove


RULES: Final[Mapping[str, Removal]] = {
    "an opening counts once nothing is behind it": replace(Reading, "sequences", _sequences_before),
    "a write in doubt is not taken back": replace(LeaseWriter, "_create_commit", _create_or_withdraw),
    "a write in doubt is not refused": replace(LeaseWriter, "_create_commit", _create_or_refuse),
    "a write in doubt is tried with the same token": replace(LeaseWriter, "_create_commit", _create_with_a_new_token),
    "an answer in doubt stands for its call": replace(
        AnswerTable, "_first", lambda table, key: table._under_way.get(key)
    ),
    "superseded commits stay for a while": replace(ownership, "SUPERSEDED", 0.0),
    "a server that has not looked for long lists more": replace(ownership, "CERTAIN", float("inf")),
    "late commits that no opening knows are not read": replace(Reading, "chain", _chain_of_all),
    "what stands before an opening keeps its number": replace(LeaseWriter, "stub", lambda tenure, sequence: None),
    "what was sent twice keeps its number": combine(
        replace(LeaseWriter, "_past", _past_without_duplicates),
        replace(LeaseWriter, "write_items", _without_stub(LeaseWriter.write_items)),
    ),
    "the last object stays": replace(ObjectJournal, "_deletable", lambda journal: journal._ledger.dead()),
    "a read takes a look, once the lease is over": replace(
        LeaseWriter, "lease_left", lambda writer: 0.0 if writer._lost else float("inf")
    ),
    "a refusal takes a look, or a commit": combine(
        replace(Commits, "_confirm", _unseen),
        replace(Fence, "open", property(lambda fence: True)),
    ),
    "a server that begins waits": replace(LeaseWriter, "settle", lambda tenure: None),
    "a server that released answers no more": replace(LeaseWriter, "end", _end_and_keep_answering),
}


@contextmanager
def without(rule: str | None, rules: Mapping[str, Removal] = RULES) -> Iterator[None]:
    """Run the block without this rule, or with all rules if it is None, with shorter times than in production."""
    with ExitStack() as stack:
        for module, name, seconds in TIMES:
            stack.enter_context(patch.object(module, name, seconds))
        if rule is not None:
            rules[rule](stack)
        yield
