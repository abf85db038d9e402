"""What opset 1 answers, as numbers to compare: `python -m tests.spec.recording` writes `opset1.json` anew.

It was written before there was an opset 2, whose ops, dtypes and functions must leave all of it as it is.
"""

from __future__ import annotations

import json
import sys
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

import numpy as np

from engine import DTYPES, Compiler, Limits, Program, Statement, TensorType, graph_id, registry
from engine.codegen.native.machine_code import described_processor
from engine.runtime.numpy_backend import NumPyExecutor
from tests.contract.cases import Case, all_cases, has_rule
from tests.engine.printers import printing
from tests.golden.test_messages import FROZEN, OPS, lines

RECORDED: Final = Path(__file__).with_name("opset1.json")
#: run node by node, and with all of it fused into loops that are machine code
TIERS: Final = {"interpreted": "none", "compiled": "llvm"}


def digest(*parts: bytes) -> str:
    """A few digits that tell these apart from others."""
    return sha256(b"|".join(parts)).hexdigest()[:16]


def machine() -> str:
    """Whatever the last bits of a result depend on, beside the request."""
    libraries = (f"{name} {version(name)}" for name in ("numpy", "scipy", "llvmlite"))
    return digest(*(part.encode() for part in (described_processor() or "", sys.platform, *libraries)))


def cases() -> list[Case]:
    """Every sample of the ops of opset 1 that there are, and that a graph of it may have."""
    return [case for case in all_cases() if case.op.name in FROZEN["op"] and is_first(case)]


def is_first(case: Case) -> bool:
    """Whether it states no attribute of a later opset."""
    return all(case.op.attrs[name].since == 1 for name in case.sample.attrs)


def key(case: Case) -> str:
    """What a case is known by: samples of an op may be printed alike."""
    return f"{case.op.name} {case.number}"


def program_of(case: Case) -> Program:
    """The program of a case, and behind it one number that depends on all of its results that are floats."""
    program, ops = case.program(), registry().ops
    statements, count = list(program.statements), len(case.sample.operands)
    first = count + 1 if case.op.several else count
    floats = [first + i for i, type in enumerate(case.result_types()) if type.is_differentiable]
    sums = []
    for output in floats:
        statements += [Statement(ops["sin"], (output,)), Statement(ops["sum"], (len(statements),))]
        sums.append(len(statements) - 1)
    for each in sums[1:]:
        statements.append(Statement(ops["add"], (each, len(statements) - 1)))
    return Program(registry(), statements)


def bits(case: Case, tier: str) -> str:
    """A digest of all results of a case, and of their gradients where it has a rule of these."""
    arrays, program = case.arrays(), program_of(case)
    feeds, compiler = dict(enumerate(arrays)), Compiler(Limits(), kernel_threads=1)
    types = {i: TensorType.of(array) for i, array in feeds.items()}
    read = [i for i in range(len(arrays), len(program.statements)) if not program.statements[i].op.several]
    if has_rule(case):
        wrt = [i for i, type in types.items() if type.is_differentiable]
        compiled = compiler.gradients(program, types, read[-1], wrt, read)
    else:
        compiled = compiler.forward(program, types, read)
    with printing(TIERS[tier]):
        return digest(*map(_told, NumPyExecutor().run(compiled.plan, feeds)))


def _told(array: np.ndarray[Any, Any]) -> bytes:
    return f"{array.dtype.name}{array.shape}".encode() + np.ascontiguousarray(array).tobytes()


def errors(name: str) -> str:
    """A digest of the sentences that an op of opset 1 answers wrong uses with, but for the dtypes they list."""
    later = tuple(f", {dtype}" for dtype in DTYPES if dtype not in FROZEN["dtypes"])
    said = "\n".join(lines(registry().ops[name]))
    for dtype in later:
        said = said.replace(dtype, "")
    said = said.replace("“float8”", "“complex64”")  # which was none, when this was recorded
    return digest(said.encode())


def recorded() -> dict[str, Any]:
    """All of it."""
    return {
        "machine": machine(),
        "bits": {tier: {key(case): bits(case, tier) for case in cases()} for tier in TIERS},
        "ids": {key(case): graph_id(program_of(case)) for case in cases()},
        "errors": {op.name: errors(op.name) for op in OPS},
    }


if __name__ == "__main__":
    RECORDED.write_text(json.dumps(recorded(), indent=0) + "\n", encoding="utf-8")
