"""Commits compared with a model that applies changes one by one."""

from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from service.core.errors import Refusal
from service.store.changes import ALWAYS, ANY_VERSION, Condition
from service.store.journal import StateFull
from tests.service.store.commit_model import Bench

NAMES = ("a", "b", "c")


class Serial(RuleBasedStateMachine):
    """Answers, in the order of their arrival, equal those of a server that handles proposals one by one.

    At every moment, the disk has everything acknowledged as durable, and no partial proposals.
    """

    def __init__(self) -> None:
        super().__init__()
        self.bench = Bench()
        self.model: dict[str, str] = {}
        self.history: dict[str, list[str | None]] = {name: [None] for name in NAMES}
        self.together: list[dict[str, str | None]] = []
        self.floor: dict[str, int] = dict.fromkeys(NAMES, 0)
        self.submitted = self.answered = 0

    def propose(self, changed: dict[str, tuple[bool, Condition]], *, durable: bool) -> None:
        self.submitted += 1
        etags = {name: f"{self.submitted:03}{name}" if keeps else None for name, (keeps, _) in changed.items()}
        changes = [self.bench.change(name, etags[name], condition) for name, (_, condition) in changed.items()]
        conditions = {name: condition for name, (_, condition) in changed.items()}

        def done(refusal: Refusal | None) -> None:
            self.answered += 1
            self.judge(etags, conditions, refusal, durable=durable)

        self.bench.submit(*changes, done=done, durable=durable)

    def judge(
        self,
        etags: dict[str, str | None],
        conditions: dict[str, Condition],
        refusal: Refusal | None,
        *,
        durable: bool,
    ) -> None:
        holds = all(condition.holds(self.model.get(name)) for name, condition in conditions.items())
        if refusal is not None:
            assert refusal.code in ("precondition_failed", "store_full", "internal_error")
            assert refusal.code != "precondition_failed" or not holds
            return
        assert holds, "what was kept was kept upon what the model has"
        self.together.append(etags)
        for name, etag in etags.items():
            self.history[name].append(etag)
            if etag is None:
                self.model.pop(name, None)
            else:
                self.model[name] = etag
            if durable:
                self.floor[name] = len(self.history[name]) - 1

    conditions = st.sampled_from(["always", "absent", "there", "current", "stale"])

    def condition(self, name: str, kind: str) -> Condition:
        return {
            "always": ALWAYS,
            "absent": Condition(none_match=(ANY_VERSION,)),
            "there": Condition(match=(ANY_VERSION,)),
            "current": Condition(match=(self.model.get(name, "none"),)),
            "stale": Condition(match=("stale",)),
        }[kind]

    @rule(
        changed=st.dictionaries(
            st.sampled_from(NAMES), st.tuples(st.sampled_from([True, True, False]), conditions), min_size=1
        ),
        durable=st.booleans(),
    )
    def submit(self, changed: dict[str, tuple[bool, str]], *, durable: bool) -> None:
        """Propose to store or to delete tensors."""
        stated = {name: (keeps, self.condition(name, kind)) for name, (keeps, kind) in changed.items()}
        stated = {
            name: (keeps, Condition((*(condition.match or (ANY_VERSION,)),)) if not keeps else condition)
            for name, (keeps, condition) in stated.items()
        }
        self.propose(stated, durable=durable)

    @precondition(lambda self: self.bench.writer.queued)
    @rule(failure=st.sampled_from([None, None, None, StateFull("full"), OSError("broken")]))
    def finish_a_write(self, failure: Exception | None) -> None:
        """Finish a write, successfully or not."""
        self.bench.run_next(failure)

    @precondition(lambda self: self.bench.commits.behind)
    @rule()
    def flush(self) -> None:
        """Flush the deferred writes."""
        self.bench.flush()

    @invariant()
    def visible_tensors_match_the_model(self) -> None:
        """The visible tensors are exactly those of the model."""
        seen = {name: version.etag for (_, name), version in self.bench.tensors}
        assert seen == self.model
        assert {name: version.etag for name, version in self.bench.placed.items()} == self.model

    @invariant()
    def disk_is_consistent_and_recent(self) -> None:
        """Each tensor has a version not older than its last durable write, together with others of its proposal."""
        disk = self.bench.disk.tensors
        positions = {
            name: self.history[name].index(disk[name])
            for name in NAMES
            if name in disk and disk[name] in self.history[name]
        }
        for name, floor in self.floor.items():
            if name in positions:
                assert positions[name] >= floor
            elif name not in disk:
                assert None in self.history[name][floor:], "what was acknowledged is there"
            else:
                pytest.fail("something is on disk that nobody was told of")
        for etags in self.together:
            present = [name for name, etag in etags.items() if etag is not None and disk.get(name) == etag]
            for name, etag in etags.items():
                if present and name in positions and etag is not None:
                    assert positions[name] >= self.history[name].index(etag), "written as one, there as one"

    @invariant()
    def usage_matches_the_tensors(self) -> None:
        """Usage covers the current and the pending tensors exactly."""
        table = self.bench.tensors
        after = {name: table.latest(("", name)) for name in NAMES}
        values = [version for version in after.values() if version is not None]
        assert (table.count, table.nbytes) == (len(values), sum(table._nbytes(version) for version in values))

    def teardown(self) -> None:
        """After an orderly close, everything is on disk and each proposal was answered once."""
        assert self.bench.close()
        assert self.bench.disk.closed
        assert self.answered == self.submitted
        assert self.bench.disk.tensors == self.model
        assert not self.bench.commits.behind


Serial.TestCase.settings = settings(max_examples=100, stateful_step_count=40)
TestSerial = pytest.mark.slow(Serial.TestCase)
