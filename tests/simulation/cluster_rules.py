"""The rules by which servers of a cluster ask each other, and each of them removed: then histories go wrong."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from service.cluster.owners import Owners
from service.cluster.shared_store import SharedStore
from service.core.errors import Refusal
from service.store.fence import Fence
from service.store.tables import TensorVersion
from tests.simulation.rules import Removal, replaced

_at_owner = Owners.at_owner
_unanswered = Owners.handle_failure
_versions = SharedStore.versions


async def _sent_again(owners: Owners, *asked: Any, **_: bool) -> Any:
    """What may have reached an owner goes to the next one as well."""
    return await _at_owner(owners, *asked, repeats=True)


async def _one_by_one(
    store: SharedStore, namespace: str, names: Sequence[str], expires: float
) -> Mapping[str, TensorVersion]:
    """A question for each name."""
    found: dict[str, TensorVersion] = {}
    for name in names:
        found |= await _versions(store, namespace, [name], expires)
    return found


async def _unseen(fence: Fence, *_: float) -> None:
    """Nobody looks; who knows that the place is another's says so."""
    if fence.lost is not None:
        raise fence.lost


async def _told_as_refused(owners: Owners, *asked: Any, repeats: bool) -> None:
    """Of what may have reached an owner it is said that it was not kept."""
    try:
        await _unanswered(owners, *asked, repeats=repeats)
    except Refusal as refusal:
        refusal.code = "not_ready"
        raise


CLUSTER_RULES: Final[Mapping[str, Removal]] = {
    "what may have reached an owner is not sent to the next": replaced(Owners, "at_owner", _sent_again),
    "what may have reached an owner is unconfirmed": replaced(Owners, "handle_failure", _told_as_refused),
    "all names of a call are of one moment": replaced(SharedStore, "versions", _one_by_one),
    "an owner looks before it answers others": replaced(Fence, "wait_until_current", _unseen),
}
