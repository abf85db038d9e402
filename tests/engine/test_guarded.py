"""Accessing memory outside a guarded array kills the process; accessing the array does not."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.engine.guarded import guarded

ROOT = Path(__file__).parents[2]
READ = """
import ctypes
import numpy as np
from tests.engine.guarded import guarded
x = guarded(np.arange(5.0), {at_end})
ctypes.string_at(x.ctypes.data + {offset}, 1)
"""


@pytest.mark.parametrize(
    ("at_end", "offset", "dies"), [(True, 39, False), (True, 40, True), (False, 0, False), (False, -1, True)]
)
def test_access_outside_the_array_is_fatal(at_end: bool, offset: int, dies: bool) -> None:
    text = READ.format(at_end=at_end, offset=offset)
    done = subprocess.run([sys.executable, "-c", text], cwd=ROOT, check=False, capture_output=True)
    assert done.returncode == (-signal.SIGSEGV if dies else 0)


@pytest.mark.parametrize("at_end", [True, False])
@pytest.mark.parametrize("shape", [(), (0, 3), (2, 3), (600, 7)])
def test_copy_equals_the_array(shape: tuple[int, ...], at_end: bool) -> None:
    x = np.random.default_rng(0).normal(size=shape).astype("float32")
    copy = guarded(x, at_end)
    assert (copy.shape, copy.dtype) == (x.shape, x.dtype)
    np.testing.assert_array_equal(copy, x)


def test_bytes_start_as_zero() -> None:
    assert guarded(13).tobytes() == bytes(13)
