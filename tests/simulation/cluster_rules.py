"""The rules of requests between servers of a cluster, and their removals, which make histories go wrong."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from service.cluster.owners import Owners
from service.cluster.shared_store import SharedStore
from service.core.errors import Refusal
from service.store.commits import Commits
from service.store.fence import Fence
from service.store.tables import TensorVersion
from tests.simulation.rules import Removal, replace

_at_owner = Owners.at_owner
_unanswered = Owners.handle_failure
_versions = SharedStore.versions


async def _sent_again(owners: Owners, *arguments: Any, **_: bool) -> Any:
    """Send a request that may have reached an owner to the next owner as well."""
    return await _at_owner(owners, *arguments, repeats=True)


async def _one_by_one(
    store: SharedStore, namespace: str, names: Sequence[str], expires: float
) -> Mapping[str, TensorVersion]:
    """Ask for each name separately."""
    versions: dict[str, TensorVersion] = {}
    for name in names:
        versions |= await _versions(store, namespace, [name], expires)
    return versions


async def _unseen(fence: Fence, *_: float) -> None:
    """Do not check the lease; fail only if its loss is already known."""
    if fence.lost is not None:
        raise fence.lost


async def _report_as_refused(owners: Owners, *arguments: Any, repeats: bool) -> None:
    """Report a write that may have reached an owner as not stored."""
    try:
        await _unanswered(owners, *arguments, repeats=repeats)
    except Refusal as refusal:
        refusal.code = "not_ready"
        raise


async def _settle_at_once(*_: Any) -> None:
    """Change values whose promises are not over."""


CLUSTER_RULES: Final[Mapping[str, Removal]] = {
    "what may have reached an owner is not sent to the next": replace(Owners, "at_owner", _sent_again),
    "what may have reached an owner is unconfirmed": replace(Owners, "handle_failure", _report_as_refused),
    "all names of a call are of one moment": replace(SharedStore, "versions", _one_by_one),
    "a write waits for promises": replace(Commits, "_wait_for_promises", _settle_at_once),
    "an owner looks before it answers others": replace(Fence, "wait_until_current", _unseen),
}
