"""The runner's LLVM IR, generated from its C source and independent of the machine."""

from __future__ import annotations

import pytest

from engine.codegen.native.native_call import runner_text
from scripts.runner_ir import VERSION, compiled, compiler, digest


def test_ir_digest_matches_source_and_layout() -> None:
    """Work without a compiler. `python -m scripts.runner_ir` regenerates the file."""
    assert runner_text().splitlines()[0].split()[-1] == digest()


@pytest.mark.slow
def test_rebuilt_ir_is_identical() -> None:
    clang = compiler()
    if clang is None:
        pytest.skip(f"clang {VERSION} is not installed")
    assert compiled(clang) == runner_text()


def test_ir_is_target_independent() -> None:
    assert not {"target", "source_filename"} & {line.split(" ")[0] for line in runner_text().splitlines()}
    assert '"' not in runner_text()
