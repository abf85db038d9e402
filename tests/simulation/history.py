"""One history: three servers of one state, clients that read and write, and trouble, all determined by a seed."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from tests.simulation.checker import SOMETHING, Operation
from tests.simulation.member import INF, Member
from tests.simulation.server import CREATED, OK, REPLACED, Request, Server
from tests.simulation.store import Store
from tests.simulation.virtual import World

SERVERS: Final = 3
CLIENTS: Final = 4
EACH: Final = 7
#: seconds after which the history ends
SPAN: Final = 120.0
#: seconds after which a client gives up on an answer, and the number of its attempts
PATIENCE: Final = 4.5
TRIES: Final = 4
_TROUBLE: Final = ("pause", "pause", "kill", "cut", "begin", "release", "release")
_CLUSTER_TROUBLE: Final = (*_TROUBLE, "blind", "blind", "hand over", "hand over")
#: refusals by which the server says that nothing was stored
_CERTAIN: Final = ("not_ready", "deadline_exceeded", "shutting_down")
_ANSWERS: Final = ("ok", "412", "404")

#: an activity: it yields seconds to wait, or a function that gets a callback to continue it
Activity = Iterator[float | Callable[[Callable[[object], None]], None]]


@dataclass
class History:
    """The operations, including beginnings, the numbers of requests and answers, and unexpected exceptions."""

    operations: list[Operation]
    asked: int
    answered: int
    wrong: list[object]


def history(seed: int, lease: float = 1.0, *, cluster: bool = False, memory: float = INF) -> History:
    """Run the history of a seed, of servers that share a state as a `cluster`, or take it from each other.

    Each server of a cluster has `memory` bytes for the elements of tensors, which have one byte each.
    """
    return _Run(seed, lease, cluster, memory).result()


class _Run:
    def __init__(self, seed: int, lease: float, cluster: bool, memory: float) -> None:
        self.memory = memory
        self.peers: dict[str, Member] | None = {} if cluster else None
        self.kinds = _CLUSTER_TROUBLE if cluster else _TROUBLE
        self.world = World(seed)
        self.chance = chance = self.world.chance
        self.lease = lease
        #: the kind of trouble: all kinds; the network, with many deletions; or servers that begin slowly
        self.mood = mood = chance.choice(["all kinds", "network", "slow"])
        self.store = Store(self.world, {"network": 0.2, "slow": 0.0}.get(mood, chance.choice([0, 0.02, 0.08])))
        self.volatile = chance.random() < 0.3 and not cluster
        self.values = itertools.count(1)
        self.operations: list[Operation] = []
        self.clients = CLIENTS
        self.servers: list[Server | Member] = [self._server(number) for number in range(SERVERS)]
        self.ended: list[Server | Member] = []
        self._run_activity(self._trouble())
        for number in range(CLIENTS):
            self._run_activity(self._client(number))

    def result(self) -> History:
        self.world.run(SPAN)
        for server in (*self.servers, *self.ended):
            server.process.forget()
        requests = [each for each in self.operations if each.kind != "begin"]
        answered = sum(each.answer is not None for each in requests)
        recorded = [each for each in requests if each.kind != "read" or each.answer is not None]
        return History([*recorded, *self._beginnings()], len(requests), answered, list(self.world.wrong))

    def _server(self, number: int) -> Server | Member:
        if self.peers is None:
            return Server(self.world, self.store, self.lease)
        return Member(self.world, self.store, self.lease, f"server {number}", self.peers, self.memory)

    def _beginnings(self) -> list[Operation]:
        """The beginnings of servers, from their opening until they own the state, when volatile writes may be lost."""
        if not self.volatile:
            return []
        began = {each.began[1]: each.began[0] for each in (*self.servers, *self.ended) if each.began}
        opened = self.store.opened.items()
        return [
            Operation("begin", opened_at, returned=began[token]) for token, opened_at in opened if token in began
        ] + [Operation("begin", opened_at) for token, opened_at in opened if token not in began]

    def _run_activity(self, activity: Activity) -> None:
        """Run an activity until it ends."""

        def step(value: object = None) -> None:
            try:
                action = activity.send(value)
            except StopIteration:
                return
            if isinstance(action, float):
                self.world.at(self.world.now + action, step)
            else:
                action(step)

        self.world.at(self.world.now, step)

    def _trouble(self) -> Activity:
        chance = self.chance
        while self.clients:
            yield chance.uniform(1.5, 5.0)
            number = chance.randrange(SERVERS)
            server = self.servers[number]
            what = "slow" if self.mood == "slow" and chance.random() < 0.7 else chance.choice(self.kinds)
            if what == "pause":
                server.process.paused = self.world.now + chance.uniform(0.5, 5.0)
            elif what == "cut":
                server.process.cut = True
                self.world.at(self.world.now + chance.uniform(1.0, 4.0), lambda server=server: _mend(server))
            elif what == "blind":
                server.process.blind = True
                self.world.at(self.world.now + chance.uniform(1.0, 12.0), lambda server=server: _mend(server))
            elif what == "hand over" and isinstance(server, Member):
                server.hand_over(self.servers[(number + 1) % SERVERS].address)
            elif what == "release":
                number = next((i for i, each in enumerate(self.servers) if each.serves and not each.has_lost), number)
                self.servers[number].release()
                self._replace(number, chance.uniform(0.0, 1.0), kill=False)
            elif what == "slow":
                self._begin_slowly()
            elif what == "begin" and server.serves and not server.has_lost:
                continue
            else:
                server.kill()
                self._replace(number, chance.uniform(0.1, 1.5))
            if all(each.process.dead or each.has_lost for each in self.servers):
                self._replace(chance.randrange(SERVERS), 0.2)

    def _begin_slowly(self) -> None:
        """Begin another process and pause it, while the present owner continues."""
        number = next((i for i, each in enumerate(self.servers) if each.has_lost or each.process.dead), None)
        if number is not None:
            self._replace(number, 0.0)
            self.world.at(self.world.now + self.chance.uniform(0.02, 0.2), lambda: self._pause(number))

    def _pause(self, number: int) -> None:
        self.servers[number].process.paused = self.world.now + self.chance.uniform(1.0, 4.0)

    def _replace(self, number: int, seconds: float, *, kill: bool = True) -> None:
        """Replace a lost server, or else this one, by a new process after a delay."""
        before = self.servers[number]

        def begin() -> None:
            index = next((i for i, each in enumerate(self.servers) if each.has_lost or each.process.dead), number)
            if self.servers[index] is before and not kill and not before.process.dead:
                index = (number + 1) % SERVERS
            self.servers[index].kill()
            self.ended.append(self.servers[index])
            self.servers[index] = self._server(index)

        self.world.at(self.world.now + seconds, begin)

    def _client(self, number: int) -> Activity:
        chance = self.chance
        seen: dict[str, int | None] = {}
        for turn in range(EACH):
            yield chance.uniform(0.0, 1.2)
            operation, key = self._operation(f"{number}.{turn}", seen)
            operation.called = self.world.now
            self.operations.append(operation)
            answer = yield from self._asked(Request(operation, key, chance.choice([0.3, 1.0, 3.0])))
            if isinstance(answer, str) and answer.startswith(OK):
                told = {CREATED: None, REPLACED: SOMETHING}
                operation.replaced = told[answer] if answer in told else int(answer.removeprefix(OK))
                answer = "ok"
            if operation.kind == "read" and isinstance(answer, tuple):
                seen.update(zip(operation.names, answer, strict=True))
            elif answer == "ok":
                seen.update(operation.writes)
            elif answer not in _ANSWERS and answer != "refused":
                continue
            operation.answer, operation.returned = answer, self.world.now
        self.clients -= 1

    def _asked(self, request: Request) -> Iterator[object]:
        """The answer to a request, repeated if that is safe; None if the outcome is unknown."""
        chance, reads = self.chance, request.operation.kind == "read"
        doubtful = False
        for _ in range(TRIES):
            answer = yield from self._once(request)
            if isinstance(answer, tuple) or answer in _ANSWERS or str(answer).startswith(OK):
                return answer
            certain = answer in _CERTAIN
            doubtful |= not certain
            if not reads and not doubtful and chance.random() < 0.5:
                return "refused"  # and it must have no effect
            if not reads and request.key is None and doubtful:
                return None
            yield chance.uniform(0.05, 0.6)
        return "refused" if not reads and not doubtful else None

    def _once(self, request: Request) -> Iterator[object]:
        server = self._chosen()
        answer = yield lambda go_on: self._ask(server, request, go_on)
        return answer

    def _ask(self, server: Server | Member, request: Request, go_on: Callable[[object], None]) -> None:
        answers: list[object] = []

        def tell(answer: object) -> None:
            if not answers:
                answers.append(answer)
                go_on(answer)

        self.world.at(self.world.now + 0.002, lambda: server.ask(request, tell))
        self.world.at(self.world.now + PATIENCE, lambda: tell("silence"))

    def _chosen(self) -> Server | Member:
        """Choose a server to ask: mostly one that may own the state."""
        likely = [each for each in self.servers if each.serves and not each.has_lost]
        if likely and self.chance.random() < 0.95:
            return self.chance.choice(likely)
        return self.chance.choice(self.servers)

    def _operation(self, name: str, seen: dict[str, int | None]) -> tuple[Operation, str | None]:
        chance = self.chance
        slow = self.mood == "slow"  # then most writes go to one register, so that numbers are soon free
        names = ("x",) if slow and chance.random() < 0.8 else chance.choice([("x",), ("y",), ("x", "y")])
        if chance.random() < (0.35 if slow else 0.5):
            return Operation("read", 0.0, names), None
        key = name if chance.random() < 0.4 else None
        if chance.random() < (0.4 if self.mood == "network" else 0.15):
            gone = names[0]
            matched = {gone: seen[gone]} if seen.get(gone) is not None and chance.random() < 0.5 else {}
            return Operation("delete", 0.0, (), {gone: None}, matched), key
        writes: dict[str, int | None] = {each: next(self.values) for each in names}
        match = {each: seen.get(each) for each in names} if chance.random() < 0.8 else {}
        durable = not (self.volatile and key is None and chance.random() < 0.5)
        return Operation("write", 0.0, (), writes, match, durable), key


def _mend(server: Server | Member) -> None:
    server.process.cut = server.process.blind = False
