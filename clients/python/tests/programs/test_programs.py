"""Small programs as graphs over HTTP: values and gradients match PyTorch and JAX to 10⁻⁷."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np
import pytest

import gradserve_client as gs

jax = pytest.importorskip("jax", reason="JAX is not installed")
torch = pytest.importorskip("torch", reason="PyTorch is not installed")
mpmath = pytest.importorskip("mpmath", reason="mpmath is not installed")

from clients.python.tests.programs import distributions, masks, matrices, spectra  # noqa: E402, F401 - PROGRAMS is theirs
from clients.python.tests.programs.program import PROGRAMS, Arrays, Program  # noqa: E402

#: tolerance relative to the largest element of an array
TOLERANCE: Final = 1e-7

#: values, the loss first, and its gradients by leaf
Answer = tuple[list[np.ndarray], dict[str, np.ndarray]]


@pytest.fixture(autouse=True)
def _doubles() -> Iterator[None]:
    """Make both libraries compute in float64."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    with jax.enable_x64(True):
        yield
    torch.set_default_dtype(before)


def by_server(client: gs.Client, program: type[Program]) -> Answer:
    graph = gs.Graph()
    leaves = {name: graph.parameter(name=name) for name in program.leaves}
    results = program.graph(graph, **leaves)
    feeds = {leaves[name]: value for name, value in program.leaves.items()}
    answer = client.gradients(graph, feeds, of=results[0], outputs=[*results])
    return [answer.values[each] for each in results], {name: answer.gradients[leaf] for name, leaf in leaves.items()}


def by_torch(program: type[Program]) -> Answer:
    leaves = {name: torch.tensor(value, requires_grad=True) for name, value in program.leaves.items()}
    results = program.by_torch(**leaves)
    available = [name for name in leaves if name not in lacking(program, "torch")]
    gradients = torch.autograd.grad(results[0], [leaves[name] for name in available])
    return [each.resolve_conj().numpy(force=True) for each in results], dict(
        zip(available, (each.resolve_conj().numpy() for each in gradients), strict=True)
    )


def by_jax(program: type[Program]) -> Answer:
    """Compute with JAX, whose complex gradient is the conjugate of the direction of steepest ascent."""

    def loss(leaves: Any) -> Any:
        results = program.by_jax(**leaves)
        return results[0], results

    gradients, results = jax.grad(loss, has_aux=True)(
        {name: jax.numpy.asarray(x) for name, x in program.leaves.items()}
    )
    available = [name for name in program.leaves if name not in lacking(program, "jax")]
    return [np.asarray(each) for each in results], {name: np.conj(np.asarray(gradients[name])) for name in available}


def lacking(program: type[Program], library: str) -> frozenset[str]:
    return program.lacking.get(library, frozenset())


def assert_close(name: str, actual: np.ndarray, expected: np.ndarray) -> None:
    """Check shape, dtype and values; not all values may be 0."""
    assert (actual.shape, actual.dtype) == (expected.shape, expected.dtype), name
    assert np.isfinite(expected).all(), name
    scale = np.abs(expected).max()
    assert scale > 1e-6, name
    assert np.abs(actual - expected).max() <= TOLERANCE * scale, name


LIBRARIES: Final = {"torch": by_torch, "jax": by_jax}
COMPARED: Final = [
    (name, library)
    for name, program in PROGRAMS.items()
    for library in LIBRARIES
    if lacking(program, library) != {*program.leaves}
]


@pytest.mark.parametrize(("name", "library"), COMPARED)
def test_program_agrees_with_library(client: gs.Client, name: str, library: str) -> None:
    program = PROGRAMS[name]
    values, gradients = by_server(client, program)
    expected, slopes = LIBRARIES[library](program)
    assert {*slopes} == {*program.leaves} - lacking(program, library)
    for i, (actual, other) in enumerate(zip(values, expected, strict=True)):
        assert_close(f"result {i}", actual, other)
    for leaf, other in slopes.items():
        assert_close(f"gradient by {leaf}", gradients[leaf], other)


MISSING_GRADIENTS: Final = [
    (name, leaf) for name, program in PROGRAMS.items() for leaf in sorted(frozenset().union(*program.lacking.values()))
]


@pytest.mark.parametrize(("name", "leaf"), MISSING_GRADIENTS)
def test_gradient_missing_in_a_library_agrees_with_mpmath(client: gs.Client, name: str, leaf: str) -> None:
    program = PROGRAMS[name]
    values, gradients = by_server(client, program)
    with mpmath.workdps(40):
        assert_close("loss", values[0], np.array(float(program.by_mpmath(**digits(program.leaves)))))
        expected = np.array([float(slope(program, leaf, i)) for i in range(program.leaves[leaf].size)])
    assert_close(f"gradient by {leaf}", gradients[leaf], expected.reshape(program.leaves[leaf].shape))


def digits(leaves: Arrays) -> dict[str, Any]:
    """The leaves as mpmath numbers, in a list if an array has an axis."""
    return {
        name: [mpmath.mpf(float(x)) for x in each] if each.ndim else mpmath.mpf(float(each))
        for name, each in leaves.items()
    }


def slope(program: type[Program], leaf: str, place: int) -> Any:
    """The derivative of the loss with respect to one element of a leaf."""

    def loss(x: Any) -> Any:
        leaves = digits(program.leaves)
        if isinstance(leaves[leaf], list):
            leaves[leaf][place] = x
        else:
            leaves[leaf] = x
        return program.by_mpmath(**leaves)

    return mpmath.diff(loss, mpmath.mpf(float(program.leaves[leaf].reshape(-1)[place])))


def test_at_least_15_programs() -> None:
    assert len(PROGRAMS) >= 15
