"""Every op's samples in a confined worker, forward and backward, interpreted and compiled.

Modules that are loaded lazily (parts of SciPy, llvmlite) are loaded during this test: the worker has done nothing
before. Kernels are written into their folder, and a second server's worker reads them there.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pytest

from engine import LATEST, registry
from engine.ir.op import NoGradient
from service.core.settings import Settings
from service.workers.confinement import kernel_support
from service.workers.pool import run_task
from service.workers.process_pool import ProcessPool
from service.workers.task import Reply, Task
from service.workers.worker import Worker
from tests.contract.cases import Case, all_cases
from tests.reference.client import array, tensor

#: a plan is compiled after its second run in a worker, and one of two workers gets two of three runs
RUNS = 3
#: a kernel's sines differ from NumPy's in the last bits
RTOL, ATOL = 1e-9, 1e-11

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        bool(kernel_support().missing), reason=f"this kernel cannot confine: {', '.join(kernel_support().missing)}"
    ),
]


def asked(case: Case) -> tuple[str, bytes]:
    """A call on one op: all its results, and the gradient of the sum of the first differentiable one."""
    operands = case.arrays()
    is_real = [operand.kind == "real" for operand in case.sample.operands]
    nodes: list[dict[str, Any]] = [{"op": "parameter" if real else "input"} for real in is_real]
    attrs = {name: tensor(v) if isinstance(v, np.ndarray) else v for name, v in case.attrs.items()}
    nodes.append({"op": case.op.name, "operands": list(range(len(operands))), "attrs": attrs})
    outputs, types = [len(operands)], case.result_types()
    if case.op.several:
        outputs = [len(nodes) + k for k in range(len(types))]
        nodes += [{"op": "get_output", "operands": [len(operands)], "attrs": {"index": k}} for k in range(len(types))]
    feeds = [{"node": i, "tensor": tensor(operand)} for i, operand in enumerate(operands)]
    body: dict[str, Any] = {"graph": {"opset": LATEST, "nodes": nodes}, "feeds": feeds, "outputs": outputs}
    floats = [output for output, type in zip(outputs, types, strict=True) if type.is_float]
    if not any(is_real) or not floats or isinstance(case.op.vjp, NoGradient):
        return "forward", orjson.dumps(body)
    nodes.append({"op": "sum", "operands": [floats[0]]})
    return "gradients", orjson.dumps(body)


def job(call: str, body: bytes) -> Task:
    return Task(call, body, "id", 60.0, time.monotonic() + 60)


def read_answer(reply: Reply, case: Case) -> dict[str, Any]:
    assert reply.status == 200, (str(case), b"".join(map(bytes, reply.parts)))
    content = orjson.loads(b"".join(map(bytes, reply.parts)))
    reply.release()
    return {key: [array(each["tensor"]) for each in content.get(key, ())] for key in ("values", "gradients")}


async def assert_agrees(pool: ProcessPool, cases: list[Case], runs: int = 1) -> None:
    """Compare the confined workers with NumPy in this process."""
    reference = Worker(Settings(device="cpu", compile="off"))
    for case in cases:
        call, body = asked(case)
        expected = read_answer(reference(job(call, body)), case)
        for _ in range(runs):
            actual = read_answer(await run_task(pool, job(call, body)), case)
            for key, arrays in expected.items():
                for mine, theirs in zip(actual[key], arrays, strict=True):
                    np.testing.assert_allclose(mine, theirs, RTOL, ATOL, err_msg=f"{key} of {case}")


async def serve_cases(cache: Path, cases: list[Case]) -> int:
    """Ask a fresh server; return how many kernels it compiled or loaded."""
    options = {"cache_dir": cache, "max_bytes": "1GiB"}
    pool = ProcessPool(Settings(device="cpu", workers=1, log_level="warning", **options))
    await pool.start()
    try:
        await assert_agrees(pool, cases, RUNS)
        count, before = pool.stats().compiled, -1
        while count != before:  # until the compiler is idle: requests make the workers report their counts
            await asyncio.sleep(1.1)
            await assert_agrees(pool, cases[:1])
            count, before = pool.stats().compiled, count
        await assert_agrees(pool, cases)
        assert pool.stats().restarts == {}
        return count
    finally:
        await pool.close(5)


def test_all_ops(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    cases = [*all_cases()]
    assert {case.op.name for case in cases} == {op.name for op in registry().ops.values() if op.samples}
    assert asyncio.run(serve_cases(tmp_path, cases)) > len(registry().ops)
    stored = files(tmp_path)
    assert len(stored) > len(registry().ops) // 2
    for entry in entries(tmp_path):
        os.utime(entry, (0, 0))
    few = cases[:: len(cases) // 20]
    assert asyncio.run(serve_cases(tmp_path, few)) > 0
    assert stored.items() <= files(tmp_path).items(), "what was there was compiled again"
    assert any(entry.stat().st_mtime for entry in entries(tmp_path)), "nothing was read"
    assert capfd.readouterr().err == "", "something could not be loaded, compiled or kept"


def files(cache: Path) -> dict[str, int]:
    """Inodes of the stored kernels: a kernel that is written again gets another inode."""
    return {entry.name: entry.stat().st_ino for entry in entries(cache)}


def entries(cache: Path) -> Iterator[Path]:
    """Files of the stored kernels."""
    return (cache / "kernels").glob("*.kernel")
