"""The draws of `jax.random` equal the recorded ones, if JAX is installed.

`python -m tests.reference.test_draws` rewrites jax_draws.json, with which other tests compare the engine.
"""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

RECORDED = Path(__file__).with_name("jax_draws.json")
#: keys, and shapes with an odd and a large number of elements
KEYS = ([0, 42], [0, 0], [2**32 - 1, 2**32 - 1], [1832780943, 270669613])
SHAPES = ([], [3], [2, 5], [0, 2])
FLOATS = ("float32", "float64")
#: allowed units in the last place of functions that round, because XLA computes them in its own way
UNITS = {"random_uniform": 0, "random_normal": 32, "random_exponential": 64, "random_gumbel": 8}

pytestmark = [
    pytest.mark.reference,
    pytest.mark.skipif(importlib.util.find_spec("jax") is None, reason="JAX is not installed"),
]


def case(op: str, key: Any, drawn: Any, units: int = 0, numbers: Any = (), **attrs: Any) -> dict[str, Any]:
    bits = np.ascontiguousarray(drawn).tobytes().hex()
    return {"op": op, "key": key, "numbers": list(numbers), "attrs": attrs, "units": units, "bits": bits}


def cases(jax: Any) -> Iterator[dict[str, Any]]:
    random = jax.random
    for words in KEYS:
        key = random.wrap_key_data(np.array(words, "uint32"))
        yield case("random_split", words, random.key_data(random.split(key, 5)), k=5)
        for number in (0, 1, 2**31):
            yield case("random_fold_in", words, random.key_data(random.fold_in(key, number)), numbers=[number])
        for shape in SHAPES:
            yield case("random_bits", words, random.bits(key, tuple(shape), "uint32"), shape=shape)
            for dtype in FLOATS:
                for op, units in UNITS.items():
                    draw = getattr(random, op.removeprefix("random_"))
                    yield case(op, words, draw(key, tuple(shape), dtype), units, shape=shape, dtype=dtype)


@pytest.fixture(scope="module")
def jax() -> Any:
    import jax

    jax.config.update("jax_enable_x64", True)
    return jax


def test_jax_draws_match_the_recorded_ones(jax: Any) -> None:
    recorded = json.loads(RECORDED.read_text(encoding="utf-8"))
    exact = [each for each in cases(jax) if not each["units"]]
    assert exact == [each for each in recorded if not each["units"]]


if __name__ == "__main__":
    import jax

    jax.config.update("jax_enable_x64", True)
    RECORDED.write_text(json.dumps([*cases(jax)], indent=0) + "\n", encoding="utf-8")
