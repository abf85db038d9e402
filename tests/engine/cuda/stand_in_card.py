"""The stand-in card, in place of CuPy and cuBLASLt: it records library calls and launches."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import pytest

from engine.codegen.native.machine_code import KernelUnavailable
from engine.cuda import binding as cuda_recipes
from engine.cuda import compilers as cuda_compiling
from engine.cuda.compilers import CardAssembler
from engine.cuda.libraries import CardLibrary
from tests.engine.codegen.kernels.c_compiler import COMPILER
from tests.engine.cuda.card_memory import CARD
from tests.engine.cuda.cublaslt_stand_in import CublasLtStandIn
from tests.engine.cuda.cupy_stand_in import cupy_stand_in


@dataclass
class StandInCard:
    """The stand-ins of a test."""

    cublaslt: CublasLtStandIn = field(default_factory=CublasLtStandIn)
    #: the reason why cuBLASLt is missing, if it is
    missing: str | None = None

    def library(self, name: str) -> CardLibrary:
        """Load a library like `card_library`."""
        assert name == "cublasLt"
        if self.missing is not None:
            return CardLibrary("cublasLt", missing=self.missing)
        return CardLibrary("cublasLt", "/stand-in", "13.1.0", loaded=self.cublaslt)


def _no_assembler() -> CardAssembler:
    """Refuse, so that kernels are CUDA C, which a C compiler builds."""
    raise KernelUnavailable("this card has NVRTC alone")


@contextmanager
def card_in_place() -> Iterator[StandInCard]:
    """Put the stand-in in place of CuPy."""
    if COMPILER is None:
        pytest.skip("there is no C compiler, which kernels of a card are built with here")
    card = StandInCard()
    with pytest.MonkeyPatch.context() as patch:
        for name, module in cupy_stand_in().items():
            patch.setitem(sys.modules, name, module)
        patch.setattr(cuda_recipes, "card_library", card.library)
        patch.setattr(cuda_compiling, "card_assembler", _no_assembler)
        if not _empty_pool():
            gc.unfreeze()  # an executor was still referenced when it was frozen
            _empty_pool()
        gc.freeze()  # older objects are not scanned, which takes seconds in a process with many tests
        yield card
    CARD.pool.set_limit(0)
    _empty_pool()


def _empty_pool() -> bool:
    """Free unreferenced memory: executors and their plans form cycles. Whether the pool is empty."""
    gc.collect()
    CARD.pool.free_all_blocks()
    return CARD.pool.total_bytes() == 0
