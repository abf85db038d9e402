"""Recorded answers of opset 1: `python -m tests.spec.recording` rewrites `opset1.json`.

The recording predates opset 2, whose ops, dtypes and functions must not change any of it.
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
from tests.golden.test_messages import FROZEN, OPS, error_lines

RECORDING: Final = Path(__file__).with_name("opset1.json")
#: node by node, and with everything fused into compiled kernels
TIERS: Final = {"interpreted": "none", "compiled": "llvm"}


def digest(*parts: bytes) -> str:
    """Return a short hash of the parts."""
    return sha256(b"|".join(parts)).hexdigest()[:16]


def machine_digest() -> str:
    """Return a hash of the processor, platform and libraries, which the last bits of a result depend on."""
    libraries = (f"{name} {version(name)}" for name in ("numpy", "scipy", "llvmlite"))
    return digest(*(part.encode() for part in (described_processor() or "", sys.platform, *libraries)))


def opset_1_cases() -> list[Case]:
    """Return every sample of the ops of opset 1 that uses opset 1 only."""
    return [case for case in all_cases() if case.op.name in FROZEN["op"] and uses_opset_1_only(case)]


def uses_opset_1_only(case: Case) -> bool:
    """Return whether the sample sets no attribute of a later opset."""
    return all(case.op.attrs[name].since == 1 for name in case.sample.attrs)


def case_key(case: Case) -> str:
    """Return a unique key of a case, because samples of an op may print alike."""
    return f"{case.op.name} {case.number}"


def program_of(case: Case) -> Program:
    """Return the program of a case, followed by a scalar that depends on all float results."""
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


def result_digest(case: Case, tier: str) -> str:
    """Return a hash of all results of a case, and of the gradients if it has a gradient rule."""
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
        return digest(*map(_array_bytes, NumPyExecutor().run(compiled.plan, feeds)))


def _array_bytes(array: np.ndarray[Any, Any]) -> bytes:
    return f"{array.dtype.name}{array.shape}".encode() + np.ascontiguousarray(array).tobytes()


def error_digest(name: str) -> str:
    """Return a hash of the error messages of an op of opset 1, without the dtypes that they list."""
    later_dtypes = tuple(f", {dtype}" for dtype in DTYPES if dtype not in FROZEN["dtypes"])
    text = "\n".join(error_lines(registry().ops[name]))
    for dtype in later_dtypes:
        text = text.replace(dtype, "")
    text = text.replace("“float8”", "“complex64”")  # complex64 was not a dtype at the time of the recording
    return digest(text.encode())


def record_all() -> dict[str, Any]:
    """Return the complete recording."""
    return {
        "machine": machine_digest(),
        "bits": {tier: {case_key(case): result_digest(case, tier) for case in opset_1_cases()} for tier in TIERS},
        "ids": {case_key(case): graph_id(program_of(case)) for case in opset_1_cases()},
        "errors": {op.name: error_digest(op.name) for op in OPS},
    }


if __name__ == "__main__":
    RECORDING.write_text(json.dumps(record_all(), indent=0) + "\n", encoding="utf-8")
