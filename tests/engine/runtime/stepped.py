"""A compile queue that tests run step by step."""

from __future__ import annotations

from collections.abc import Callable, Hashable

from engine.codegen.native.machine_code import KernelUnavailable
from engine.runtime.tiers import CompileJob


class SteppedCompiler:
    """Replaces a `BackgroundCompiler`: jobs run in order, one for each call of `step`."""

    def __init__(self) -> None:
        self.closing = False
        self.refusing = False
        self.waiting: list[CompileJob] = []
        self._submitted: set[Hashable] = set()

    def submit(self, key: Hashable, job: CompileJob, on_drop: Callable[[], object] = lambda: None) -> bool:
        """Queue a job like the real compiler; refuse it if `refusing`, like a full queue."""
        if self.refusing or key in self._submitted:
            return False
        self._submitted.add(key)
        self.waiting.append(job)
        return True

    def step(self) -> bool:
        """Run the next job; return False if it could not build its kernels."""
        job = self.waiting.pop(0)
        try:
            job()
        except KernelUnavailable:
            return False
        return True

    def settle(self) -> None:
        """Do nothing: no job runs by itself."""

    def close(self, timeout: float | None = None) -> bool:
        """Do nothing: no job runs by itself."""
        return True
