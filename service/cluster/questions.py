"""Questions of other servers, as the owner of a shard answers them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final

from service.cluster.owners import Owners
from service.cluster.protocol import record_of, row_of_record, row_of_version, stored_of
from service.keys.caller import Caller, KeyScope
from service.state.changes import new_answer
from service.state.conditions import ALWAYS
from service.state.idempotency import Repetition
from service.state.values import nbytes_of
from service.store import settling
from service.transport.job import Job, Reply
from service.wire.media import JSON

#: seconds that the owner of a shard has to leave it, where another server is to have it
_LEAVE: Final = 10.0

#: what is answered: the head of a message, and the bytes behind it
Said = tuple[Mapping[str, Any], Sequence[bytes | memoryview]]
#: answers a question: what it says, the bytes behind that, and when its time is up. Raises Moved, Refusal
AnswerQuestion = Callable[[dict[str, Any], memoryview, float], Awaitable[Said]]


class Questions:
    """Answers to them, for the shards that this server has."""

    def __init__(self, owners: Owners) -> None:
        self._owners = owners
        self.by_name: Mapping[str, AnswerQuestion] = {
            "versions": self._versions,
            "graph": self._graph,
            "answer": self._answer,
            "proposal": self._proposal,
            "release": self._release,
        }

    async def _versions(self, asked: dict[str, Any], _: memoryview, expires: float) -> Said:
        """The etags of all names, of one moment; and the versions that whoever asks does not have."""
        namespace = asked["namespace"]
        store = await self._owners.own(namespace, expires)
        there = await store.versions(namespace, asked["names"], expires)
        sent = {version.etag: version for version in there.values() if version.etag not in asked["known"]}
        etags = {name: version.etag for name, version in there.items()}
        head = {"versions": etags, "sent": [row_of_version(version) for version in sent.values()]}
        return head, [version.memory.view for version in sent.values()]

    async def _graph(self, asked: dict[str, Any], _: memoryview, expires: float) -> Said:
        """What workers know a graph by, and the graph where whoever asks has another."""
        namespace = asked["namespace"]
        store = await self._owners.own(namespace, expires)
        graph = await store.graph(namespace, asked["graph_id"], expires)
        if graph is None:
            return {"key": None}, ()
        return {"key": graph.key}, () if graph.key == asked["known"] else (graph.record,)

    async def _answer(self, asked: dict[str, Any], _: memoryview, expires: float) -> Said:
        """What a call was answered before, if it was."""
        repetition = Repetition(*asked["asked"])
        store = await self._owners.own(repetition.namespace, expires)
        await store.commits.fence.passed(expires)
        record = store.answers.asked_before(repetition)
        return ({"record": None}, ()) if record is None else ({"record": row_of_record(record)}, (record.body,))

    async def _proposal(self, asked: dict[str, Any], blobs: memoryview, expires: float) -> Said:
        """Keep what the reply to a job of another server has for keeping."""
        namespace = asked["namespace"]
        store = await self._owners.own(namespace, expires)
        stored = [stored_of(row) for row in asked["stored"]]
        kept, at = [], 0
        for each in stored:
            kept.append(blobs[at : at + nbytes_of(each.dtype, each.shape)])
            at += len(kept[-1])
        changes = []
        for row in asked["records"]:
            changes.append(new_answer(store.answers, record_of(row, bytes(blobs[at : at + row["body"]]))))
            at += row["body"]
        job = Job("proposal", b"", asked["request_id"], asked["timeout"], expires, namespace=namespace)
        caller = Caller("", namespace, frozenset([KeyScope.WRITE]))
        reply = Reply(200, JSON, [b""], stored=stored, kept=kept)
        result = await settling(store.settle, job, caller, reply, ALWAYS, changes)
        if result is reply:
            return {"kept": True}, ()
        return {"kept": False, "status": result.status, "headers": result.headers}, result.parts

    async def _release(self, asked: dict[str, Any], _: memoryview, __: float) -> Said:
        """Whether a shard is left to whoever asks, who asks for what it has more than all others do."""
        shard = int(asked["shard"])
        goes = self._owners.should_go(shard, int(asked["asked"]))
        if goes:
            self._owners.owning.release(shard, _LEAVE)
        return {"released": goes}, ()
