"""Small programs that are graphs over HTTP: values and gradients as PyTorch and JAX have them, to 10⁻⁷."""

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

#: of the largest element of an array
WITHIN: Final = 1e-7

#: values, the loss being the first, and its gradients by leaf
Answer = tuple[list[np.ndarray], dict[str, np.ndarray]]


@pytest.fixture(autouse=True)
def _doubles() -> Iterator[None]:
    """Both libraries compute in float64."""
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
    had = [name for name in leaves if name not in lacking(program, "torch")]
    gradients = torch.autograd.grad(results[0], [leaves[name] for name in had])
    return [each.resolve_conj().numpy(force=True) for each in results], dict(
        zip(had, (each.resolve_conj().numpy() for each in gradients), strict=True)
    )


def by_jax(program: type[Program]) -> Answer:
    """A complex gradient of JAX is the conjugate of the direction of steepest ascent."""

    def loss(leaves: Any) -> Any:
        results = program.by_jax(**leaves)
        return results[0], results

    gradients, results = jax.grad(loss, has_aux=True)(
        {name: jax.numpy.asarray(x) for name, x in program.leaves.items()}
    )
    had = [name for name in program.leaves if name not in lacking(program, "jax")]
    return [np.asarray(each) for each in results], {name: np.conj(np.asarray(gradients[name])) for name in had}


def lacking(program: type[Program], library: str) -> frozenset[str]:
    return program.lacking.get(library, frozenset())


def compared(name: str, found: np.ndarray, expected: np.ndarray) -> None:
    """Numbers of the same shape and dtype, not all of which are 0."""
    assert (found.shape, found.dtype) == (expected.shape, expected.dtype), name
    assert np.isfinite(expected).all(), name
    scale = np.abs(expected).max()
    assert scale > 1e-6, name
    assert np.abs(found - expected).max() <= WITHIN * scale, name


LIBRARIES: Final = {"torch": by_torch, "jax": by_jax}
COMPARED: Final = [
    (name, library)
    for name, program in PROGRAMS.items()
    for library in LIBRARIES
    if lacking(program, library) != {*program.leaves}
]


@pytest.mark.parametrize(("name", "library"), COMPARED)
def test_a_program_agrees_with_a_library(client: gs.Client, name: str, library: str) -> None:
    program = PROGRAMS[name]
    values, gradients = by_server(client, program)
    expected, slopes = LIBRARIES[library](program)
    assert {*slopes} == {*program.leaves} - lacking(program, library)
    for i, (found, other) in enumerate(zip(values, expected, strict=True)):
        compared(f"result {i}", found, other)
    for leaf, other in slopes.items():
        compared(f"gradient by {leaf}", gradients[leaf], other)


LACKED: Final = [
    (name, leaf) for name, program in PROGRAMS.items() for leaf in sorted(frozenset().union(*program.lacking.values()))
]


@pytest.mark.parametrize(("name", "leaf"), LACKED)
def test_a_gradient_that_a_library_lacks_agrees_with_mpmath(client: gs.Client, name: str, leaf: str) -> None:
    program = PROGRAMS[name]
    values, gradients = by_server(client, program)
    with mpmath.workdps(40):
        compared("loss", values[0], np.array(float(program.by_mpmath(**digits(program.leaves)))))
        expected = np.array([float(slope(program, leaf, i)) for i in range(program.leaves[leaf].size)])
    compared(f"gradient by {leaf}", gradients[leaf], expected.reshape(program.leaves[leaf].shape))


def digits(leaves: Arrays) -> dict[str, Any]:
    """Numbers of mpmath, in a list where an array has an axis."""
    return {
        name: [mpmath.mpf(float(x)) for x in each] if each.ndim else mpmath.mpf(float(each))
        for name, each in leaves.items()
    }


def slope(program: type[Program], leaf: str, place: int) -> Any:
    """The derivative of the loss by one element of a leaf."""

    def loss(x: Any) -> Any:
        leaves = digits(program.leaves)
        if isinstance(leaves[leaf], list):
            leaves[leaf][place] = x
        else:
            leaves[leaf] = x
        return program.by_mpmath(**leaves)

    return mpmath.diff(loss, mpmath.mpf(float(program.leaves[leaf].reshape(-1)[place])))


def test_there_are_as_many_as_are_promised() -> None:
    assert len(PROGRAMS) >= 15
