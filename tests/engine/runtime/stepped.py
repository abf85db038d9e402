"""A queue of what is to be compiled, worked off by hand."""

from __future__ import annotations

from collections.abc import Callable, Hashable

from engine.codegen.native.machine_code import KernelUnavailable
from engine.runtime.tiers import CompileJob


class SteppedCompiler:
    """In the place of a `BackgroundCompiler`: a job is run when `step` is called, in the order in which they came."""

    def __init__(self) -> None:
        self.closing = False
        self.refusing = False
        self.waiting: list[CompileJob] = []
        self._known: set[Hashable] = set()

    def submit(self, key: Hashable, job: CompileJob, on_drop: Callable[[], object] = lambda: None) -> bool:
        """As the real one; not while it is `refusing`, as one whose queue is full."""
        if self.refusing or key in self._known:
            return False
        self._known.add(key)
        self.waiting.append(job)
        return True

    def step(self) -> bool:
        """Run the next job; False where it could not make its kernels."""
        job = self.waiting.pop(0)
        try:
            job()
        except KernelUnavailable:
            return False
        return True

    def settle(self) -> None:
        """Nothing goes on by itself."""

    def close(self, timeout: float | None = None) -> bool:
        """Nothing to wait for."""
        return True
