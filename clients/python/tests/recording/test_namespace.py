"""Every function of the namespace: NumPy's values from a real server, with the predicted shape and dtype."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import gradserve_client as gs
from clients.python.tests.recording import fft_cases
from clients.python.tests.recording import namespace_cases as cases
from clients.python.tests.recording import test_triangles as triangles
from clients.python.tests.recording.namespace_cases import Case, X
from gradserve_client.recording import fft, linalg, missing, namespace
from gradserve_client.recording.recorder import Traced
from tests.sampling import together

#: names of the standard's main namespace that are not functions of arrays
NO_FUNCTIONS = {
    "e",
    "inf",
    "nan",
    "newaxis",
    "pi",
    "fft",
    "special",
    "linalg",
    "__array_api_version__",
    "__array_namespace_info__",
}
REAL = {"bool", "int8", "uint8", "int16", "int32", "uint32", "int64", "float16", "float32", "float64"}
DTYPES = REAL | {"complex64", "complex128"}
#: functions of `linalg` that NumPy lacks, and SciPy's names for them
NOT_IN_NUMPY: dict[str, tuple[Any, Any]] = {
    "matrix_exp": (linalg.matrix_exp, "expm"),
    "symmetric_function": (lambda x: linalg.symmetric_function(x, "sqrt"), "sqrtm"),
}
#: functions with tests of their own, which the standard and NumPy lack or define differently
OWN_FUNCTIONS = {"compress", "cumlogsumexp", "cummax", "cummin", "nonzero"}
ABOUT_DTYPES = {"can_cast", "finfo", "iinfo", "isdtype", "result_type"}
TOLERANCE = {
    np.dtype("float32"): 2e-6,
    np.dtype("float64"): 1e-12,
    np.dtype("complex64"): 2e-6,
    np.dtype("complex128"): 1e-12,
}


def as_list(result: Any) -> list[Any]:
    return [*result] if isinstance(result, list | tuple) else [result]


def compare(client: gs.Client, case: Case, recorded_by: Any, reference: Any) -> None:
    predicted: list[Any] = []

    def call(arrays: list[Any]) -> list[Any]:
        predicted[:] = as_list(case.call(recorded_by, *arrays))
        return predicted

    computed = gs.function(call, client=client)([*case.arrays])
    with np.errstate(all="ignore"):
        expected = as_list(case.call(reference, *case.arrays))
    assert len(computed) == len(expected)
    for ours, theirs, array in zip(computed, map(np.asarray, expected), predicted, strict=True):
        assert (ours.shape, ours.dtype) == (array.shape, array.dtype)
        assert (ours.shape, ours.dtype) == (theirs.shape, theirs.dtype)
        tolerance = TOLERANCE.get(ours.dtype, 0)
        np.testing.assert_allclose(ours, theirs, rtol=tolerance, atol=tolerance)
        zeros = theirs == 0
        if theirs.dtype.kind == "f" and case.name in ("trunc", "copysign", "positive"):
            assert (np.signbit(ours[zeros]) == np.signbit(theirs[zeros])).all()


def names(chosen: list[Case]) -> list[str]:
    return [f"{case.name}-{i}" for i, case in enumerate(chosen)]


@together
@pytest.mark.slow
@pytest.mark.parametrize("case", cases.MAIN, ids=names(cases.MAIN))
def test_main_namespace_matches_numpy(client: gs.Client, case: Case) -> None:
    compare(client, case, namespace, np)


@pytest.mark.parametrize("case", cases.LINALG, ids=names(cases.LINALG))
def test_linalg_matches_numpy(client: gs.Client, case: Case) -> None:
    compare(client, case, linalg, np.linalg)


@pytest.mark.parametrize(("call", "name"), NOT_IN_NUMPY.values(), ids=NOT_IN_NUMPY)
def test_linalg_functions_match_scipy(client: gs.Client, call: Any, name: str) -> None:
    reference = getattr(pytest.importorskip("scipy.linalg", reason="SciPy is not installed"), name)
    x = cases.SQUARE / 4
    np.testing.assert_allclose(gs.function(call, client=client)(x), reference(x), rtol=1e-12)
    assert gs.function(lambda x: namespace.sum(namespace.sin(call(x))), client=client).check(x).passed


def test_lstsq_of_dependent_columns_is_the_shortest(client: gs.Client) -> None:
    a = X @ np.array([[1.0, 0.0, 1.0], [0.0, 1.0, 1.0], [1.0, 1.0, 2.0]])
    ours, theirs = gs.function(linalg.lstsq, client=client)(a, cases.Y), np.linalg.lstsq(a, cases.Y)
    assert ours.rank == theirs[2] == 2
    np.testing.assert_allclose(ours.x, theirs[0], rtol=1e-12)
    np.testing.assert_allclose(ours.residuals, ((a @ theirs[0] - cases.Y) ** 2).sum(0), rtol=1e-12)
    assert theirs[1].size == 0


def test_degenerate_option_of_eigh(client: gs.Client) -> None:
    """A projector onto two equal eigenvalues has a gradient with `whole`, and NaN with `nan`."""

    def projected(x: Any, degenerate: str) -> Any:
        v = linalg.eigh(x, degenerate=degenerate).eigenvectors[:, 1:]
        return namespace.sum(v @ v.mT * np.array([[0.0, 5, 3], [5, 0, 4], [3, 4, 0]]))

    recorded = gs.function(projected, client=client)
    x = np.diag([2.0, 2.0, 1.0])
    np.testing.assert_allclose(recorded.grad(x, "whole"), [[0, 0, 3], [0, 0, 4], [3, 4, 0]], atol=1e-12)
    assert np.isnan(recorded.grad(x, "nan")).any()


def test_every_function_has_a_case() -> None:
    assert {case.name for case in cases.MAIN} | OWN_FUNCTIONS | NO_FUNCTIONS | DTYPES | ABOUT_DTYPES == {
        *namespace.__all__
    }
    assert {case.name for case in cases.LINALG} | {*NOT_IN_NUMPY, *triangles.SCIPY_NAMES} == {*linalg.__all__}
    assert {case.name for case in fft_cases.CASES} == {*fft.__all__}


def test_every_standard_function_exists_or_is_listed() -> None:
    """The lists of array-api-strict are those of the standard."""
    strict = pytest.importorskip("array_api_strict", reason="array-api-strict is not installed")
    ours = {*namespace.__all__, *missing.MAIN}
    next_version = {"broadcast_shapes", "isin"}
    standard = {name for name in strict.__all__ if name.islower() and "flags" not in name and not name.startswith("_")}
    assert not standard - ours - next_version
    assert not {*strict.fft.__all__} - {*fft.__all__}
    assert not {*strict.linalg.__all__} - {*linalg.__all__, *missing.LINALG}


def test_descending_sort_is_stable(client: gs.Client) -> None:
    def order(x: Any) -> Any:
        xp = x.__array_namespace__()
        return xp.argsort(x, descending=True), xp.sort(x, descending=True)

    places, ordered = gs.function(order, client=client)(cases.TIES)
    assert places.tolist() == [[0, 2, 1, 3], [3, 0, 1, 2]]
    assert ordered.tolist() == [[2, 2, 1, 1], [5, 0, 0, -1]]


def test_lists_of_recorded_arrays_become_arrays(client: gs.Client) -> None:
    recorded = gs.function(lambda x: namespace.asarray([[x[0], 1], [2.5, x[1]]]), client=client)
    assert recorded(np.array([3.0, 4.0], np.float32)).tolist() == [[3, 1], [2.5, 4]]
    assert recorded(np.array([3.0, 4.0], np.float32)).dtype == np.float32


def test_numpy_arrays_become_constants(client: gs.Client) -> None:
    def f(x: Any) -> Any:
        total = namespace.sum(X) + namespace.max(namespace.exp(X)) + namespace.linalg.vector_norm(X)
        return namespace.concat([namespace.reshape(X, (12,)), x]) * total

    computed = gs.function(f, client=client)(np.ones(1))
    expected = np.append(X.ravel(), 1) * (X.sum() + np.exp(X).max() + np.linalg.norm(X))
    assert np.allclose(computed, expected)


def test_ends_of_linspace_may_be_recorded(client: gs.Client) -> None:
    recorded = gs.function(lambda a, b: namespace.sum(namespace.linspace(a, b, 5) ** 2), client=client)
    assert np.allclose(recorded(1.0, 2.0), (np.linspace(1, 2, 5) ** 2).sum())
    assert np.allclose(
        recorded.grad(1.0, 2.0, wrt=("a", "b"))[1], (2 * np.linspace(1, 2, 5) * np.linspace(0, 1, 5)).sum()
    )


@pytest.mark.parametrize("name", sorted(missing.MAIN))
def test_missing_function_suggests_a_replacement(name: str) -> None:
    with pytest.raises(gs.RecordingError, match=rf"{name} \(test_namespace.py:\d+\): \w+"):
        getattr(namespace, name)
    assert not hasattr(namespace, name)


@pytest.mark.parametrize("name", sorted(missing.LINALG))
def test_missing_linalg_function_is_explained(name: str) -> None:
    with pytest.raises(gs.RecordingError, match=rf"linalg.{name} \(test_namespace.py:\d+\): no op"):
        getattr(linalg, name)


def test_namespace_info() -> None:
    info = namespace.__array_namespace_info__()
    assert info.capabilities() == {"boolean indexing": False, "data-dependent shapes": False, "max dimensions": 32}
    assert info.devices() == [info.default_device()]
    assert info.default_dtypes()["real floating"] == np.float64
    assert {*info.dtypes()} == DTYPES
    assert info.default_dtypes()["complex floating"] == np.complex128
    assert {*info.dtypes(kind="complex floating")} == {"complex64", "complex128"}
    assert {*info.dtypes(kind="integral")} == {"int8", "uint8", "int16", "int32", "uint32", "int64"}
    assert {*info.dtypes(kind="unsigned integer")} == {"uint8", "uint32"}
    assert {*info.dtypes(kind=("bool", "real floating"))} == {"bool", "float16", "float32", "float64"}
    assert {"unique_values", "linalg.eig"} <= {*info.missing()}
    assert namespace.__array_api_version__ == "2024.12"
    with pytest.raises(gs.InputError):
        info.dtypes(kind="imaginary")
    with pytest.raises(AttributeError, match="no such_thing"):
        namespace.such_thing  # noqa: B018 - must raise


def test_arrays_are_created_only_while_recording() -> None:
    with pytest.raises(gs.RecordingError, match=r"zeros \(test_namespace.py:\d+\).*while a function is recorded"):
        namespace.zeros(3)


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda xp, x: xp.sum(x, axis=2), "sum.*axis 2 is out of range"),
        (lambda xp, x: xp.reshape(x, (5,)), "reshape.*12 elements"),
        (lambda xp, x: xp.matmul(x, x), "matmul.*last axis"),
        (lambda xp, x: x + np.ones(5), "add.*do not broadcast"),
        (lambda xp, x: xp.permute_dims(x, (0, 0)), "permute_dims.*twice"),
        (lambda xp, x: xp.bitwise_and(xp.astype(x, xp.int64), 1), "bitwise_and.*powers of 2"),
        (lambda xp, x: xp.logical_and(x, x), "logical_and.*compare it with 0"),
        (lambda xp, x: xp.abs(x > 0), "abs.*expected numbers, got bool"),
        (lambda xp, x: xp.astype(x, np.uint16), "astype.*uint16"),
        (lambda xp, x: xp.linalg.matrix_norm(x, ord=3), "matrix_norm.*3 is not a valid matrix norm"),
        (lambda xp, x: xp.linalg.inv(x), "inv.*square"),
        (lambda xp, x: xp.linalg.svd(x), "svd.*full_matrices=False"),
        (lambda xp, x: xp.linalg.qr(x, mode="complete"), 'qr.*mode="reduced"'),
        (lambda xp, x: xp.linalg.qr(x, mode="raw"), "qr.*not 'raw'"),
        (lambda xp, x: xp.nonzero(x), r"nonzero.*depends on data.*nonzero\(x, k\)"),
        (lambda xp, x: xp.linalg.eigh(x), "eigh.*square"),
        (lambda xp, x: xp.linalg.pinv(x, rtol=xp.ones(2)), "pinv.*one number"),
        (lambda xp, x: xp.linalg.lstsq(x, x[:2, 0]), "lstsq.*right-hand side"),
        (lambda xp, x: xp.linalg.norm(x, "fro", axis=0), "norm.*over 1 axes"),
        (lambda xp, x: xp.linalg.symmetric_function(x[:3] * 1j, "exp"), r"symmetric_function.*conj\(v.mT\)"),
        (lambda xp, x: xp.repeat(x, xp.argmax(x)), "repeat.*pass numbers"),
        (lambda xp, x: xp.cumulative_sum(x), "cumulative_sum.*only for arrays with one axis"),
        (lambda xp, x: xp.concat([x, x[:, :2]], axis=0), "concat.*cannot be joined"),
        (lambda xp, x: xp.stack([x, x[0, :]]), "stack.*different shapes"),
        (lambda xp, x: xp.squeeze(x, axis=0), "squeeze.*extent 1"),
        (lambda xp, x: xp.take(x, xp.asarray([9]), axis=0), "take.*out of range for an axis of extent 4"),
        (lambda xp, x: xp.asarray([[1, 2], [3]]), "asarray.*cannot convert the value to an array"),
    ],
)
def test_refusals_name_function_and_line(client: gs.Client, call: Any, told: str) -> None:
    with pytest.raises(gs.RecordingError, match=told) as caught:
        gs.function(lambda x: call(x.__array_namespace__(), x), client=client)(X)
    assert "(test_namespace.py:" in str(caught.value)


def test_constants_and_limits() -> None:
    assert (namespace.e, namespace.pi, namespace.inf, namespace.newaxis) == (math.e, math.pi, math.inf, None)
    assert math.isnan(namespace.nan)
    assert namespace.finfo(namespace.float32).eps == np.finfo(np.float32).eps
    assert namespace.iinfo(namespace.int8).max == 127
    assert namespace.can_cast(namespace.float32, namespace.float64)
    assert not namespace.can_cast(namespace.float64, namespace.float32)
    assert namespace.isdtype(namespace.int8, ("bool", "integral"))
    assert issubclass(gs.recording.array.RecordedArray, Traced)
