"""Public bug reports of other autodiff systems as requests, with expected numbers in closed form.

`reports.json` has the source of each case, the request, and what is expected of it. `OPEN` lists those that are not
right yet, or cannot be, with the reason.
"""

from __future__ import annotations

import json
from base64 import b64decode
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.conftest import Client

CASES = {case["id"]: case for case in json.loads((Path(__file__).parent / "reports.json").read_text("utf-8"))}
OPEN = {
    "jax-40382": "2ˣ is written as exp(x ln 2), and that overflows before its derivative does",
    "optax-1267-0.5-float64": "1 − sigmoid(x) is 0 at 100, so its logarithm is lost",
    "jax-777": "1 + exp(−x) is infinite in float32",
    "pytorch-43211-rec-zero": "a root of a power is not the norm",
    "numpyro-2224": "the logarithm of a weight of 0 is −∞, and its sum with others hides the weight",
    "jax-25681": "the direction of an infinite complex number is NaN",
    "jax-4646-nan": "eigenvectors that are not read take part in the gradient of one that is",
    "pytorch-41508": "a query without keys makes the gradients of all values NaN",
    "pytorch-101967": "a NaN in a masked key reaches the gradients of all queries",
    "tf-123578-second": "the density of the gamma distribution is written with a logarithm, which is −∞ at 0",
}


def numbers(tensor: dict[str, Any]) -> Any:
    """Return the elements of a tensor; a complex number is two of them."""
    if "data" in tensor:
        elements = np.ravel(np.array(tensor["data"], dtype=object))
        return np.array([np.nan if x is None else float(x) for x in elements])
    data = np.frombuffer(b64decode(tensor["data_b64"]), tensor["dtype"])
    return data.view(data.real.dtype)


@pytest.mark.parametrize("case", CASES)
def test_report_is_answered_right(client: Client, case: str) -> None:
    request, expected = CASES[case]["request"], CASES[case]["expect"]
    answer = client.request(request["method"], request["path"], json=request["body"])
    assert answer.status_code == 200, answer.text
    is_right = True
    for field, entries in expected.items():
        by_node = {entry["node"]: entry["tensor"] for entry in answer.json()[field]}
        for entry in entries:
            actual, expected_numbers = numbers(by_node[entry["node"]]), numbers(entry)
            is_right &= np.allclose(actual, expected_numbers, entry["rtol"], entry["atol"], equal_nan=True)
    assert is_right == (case not in OPEN), answer.text
