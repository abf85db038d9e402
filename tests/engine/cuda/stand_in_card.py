"""A card that is none, in the place of CuPy and cuBLASLt: what its libraries were asked, and what was launched."""

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
    #: why there is no cuBLASLt, where there is none
    missing: str | None = None

    def library(self, name: str) -> CardLibrary:
        """As `card_library`."""
        assert name == "cublasLt"
        if self.missing is not None:
            return CardLibrary("cublasLt", missing=self.missing)
        return CardLibrary("cublasLt", "/stand-in", "13.1.0", loaded=self.cublaslt)


def _no_assembler() -> CardAssembler:
    """Kernels are those of CUDA C, which a C compiler builds."""
    raise KernelUnavailable("this card has NVRTC alone")


@contextmanager
def card_in_place() -> Iterator[StandInCard]:
    """Have it where CuPy would be."""
    if COMPILER is None:
        pytest.skip("there is no C compiler, which kernels of a card are built with here")
    made = StandInCard()
    with pytest.MonkeyPatch.context() as patch:
        for name, module in cupy_stand_in().items():
            patch.setitem(sys.modules, name, module)
        patch.setattr(cuda_recipes, "card_library", made.library)
        patch.setattr(cuda_compiling, "card_assembler", _no_assembler)
        if not _emptied():
            gc.unfreeze()  # somebody still had an executor when it was frozen
            _emptied()
        gc.freeze()  # what was there before is not gone through: of a process with many tests that takes seconds
        yield made
    CARD.pool.set_limit(0)
    _emptied()


def _emptied() -> bool:
    """Let go of what nobody has any more: executors and their plans refer to one another. Whether that was all."""
    gc.collect()
    CARD.pool.free_all_blocks()
    return CARD.pool.total_bytes() == 0
