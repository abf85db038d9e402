"""Convolutions by cuDNN: the requested graphs, their results, and geometries without a plan."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest

from engine.codegen.microkernels.convolution import ConvolutionGeometry, Direction, TensorLayout
from engine.codegen.native.machine_code import KernelStore
from engine.cuda.autotuning import Choices
from engine.cuda.card_recipe import CardPlace, CardRecipe, ClearPhase, CudnnPhase
from engine.cuda.cudnn_plans import CudnnLibrary, CudnnPlans
from engine.cuda.cudnn_recipes import CudnnConvolutions, convolution_precision
from engine.ir.run_report import PRECISIONS, Precision
from tests.engine.cuda.convolution_samples import DIRECTIONS, Placing, SampledConvolution, sampled_convolutions
from tests.engine.cuda.cudnn_standin import Cudnn, Engine
from tests.engine.cuda.described_card import described_h100
from tests.engine.cuda.host_clock import HostClock

DTYPES = ("float16", "float32", "float64")
SAMPLES = list(sampled_convolutions())
WORKSPACE = 64 << 20
PLAIN = Engine("plain")
PLACING = Placing((2, 4, 5, 6), (6, 2, 3, 2), (2, 6, 5, 3), 2, (1, 2), (1, 0), (1, 1))

#: fewer windows than fit: rows, columns or padding remain after the last window
FEWER = [
    Placing((1, 2, 8, 7), (2, 2, 2, 2), (1, 2, 3, 3), 1, (1, 2), (0, 0), (3, 1)),
    Placing((1, 1, 10, 9), (1, 1, 2, 2), (1, 1, 3, 3), 1, (2, 1), (2, 2), (4, 6)),
    Placing((1, 1, 4, 9), (1, 1, 4, 2), (1, 1, 1, 2), 1, (3, 1), (1, 0), (1, 5)),
    Placing((1, 1, 5, 5), (1, 1, 2, 2), (1, 1, 7, 9), 1, (1, 1), (4, 4), (3, 3)),
]


def recipe_by(
    cudnn: Cudnn,
    geometry: ConvolutionGeometry,
    direction: Direction,
    *,
    precision: Precision = "float32",
    deterministic: bool = False,
) -> CardRecipe | None:
    """The stand-in's recipe for a geometry."""
    convolutions = CudnnConvolutions(CudnnPlans(CudnnLibrary(cudnn, "sm_90")))
    return convolutions.recipe(
        geometry, direction, precision=precision, deterministic=deterministic, workspace=WORKSPACE
    )


def by_definition(placing: Placing, direction: Direction, first: Any, second: Any) -> Any:
    """Compute the result tap by tap, from the definition; images are zero-padded as far as windows reach."""
    edges = [
        (p, max(p, (n - 1) * s + d * (k - 1) + 1 - p - e))
        for e, k, n, s, p, d in zip(
            placing.wide[2:],
            placing.kernel[2:],
            placing.narrow[2:],
            placing.stride,
            placing.padding,
            placing.dilation,
            strict=True,
        )
    ]
    per_group = placing.kernel[0] // placing.groups
    wide = np.pad(first, [(0, 0), (0, 0), *edges]) if direction != "adjoint" else None
    spread = np.zeros([*placing.wide[:2], *(e + a + b for e, (a, b) in zip(placing.wide[2:], edges, strict=True))])
    narrow, by_kernel = np.zeros(placing.narrow), np.zeros(placing.kernel)
    for tap in itertools.product(*map(range, placing.kernel[2:])):
        window = [
            slice(t * d, t * d + (n - 1) * s + 1, s)
            for t, d, n, s in zip(tap, placing.dilation, placing.narrow[2:], placing.stride, strict=True)
        ]
        for o, c in itertools.product(range(placing.kernel[0]), range(placing.kernel[1])):
            channel = o // per_group * placing.kernel[1] + c
            if direction == "forward":
                narrow[:, o] += wide[:, channel, *window] * second[o, c, *tap]
            elif direction == "adjoint":
                spread[:, channel, *window] += first[:, o] * second[o, c, *tap]
            else:
                by_kernel[o, c, *tap] = np.sum(wide[:, channel, *window] * second[:, o])
    inner = tuple(slice(a, a + e) for e, (a, _) in zip(placing.wide[2:], edges, strict=True))
    return {"forward": narrow, "adjoint": spread[:, :, *inner], "by_kernel": by_kernel}[direction]


def computed(placing: Placing, direction: Direction, first: Any, second: Any) -> Any:
    """Run the recipe on the stand-in, into a result filled with NaN."""
    cudnn = Cudnn(A=[PLAIN], computes=True)
    recipe = recipe_by(cudnn, placing.geometry(direction, "float64"), direction)
    assert recipe is not None
    shape = {"forward": placing.narrow, "adjoint": placing.wide, "by_kernel": placing.kernel}[direction]
    result = np.full(shape, np.nan)
    places = {("operand", 0): first, ("operand", 1): second, ("result", 0): result}
    for phase in recipe.phases:
        if isinstance(phase, ClearPhase):
            assert (phase.place, phase.nbytes) == (CardPlace("result"), result.nbytes)
            result[...] = 0
        else:
            assert isinstance(phase, CudnnPhase)
            addresses = {number: places[place.kind, place.number].ctypes.data for number, place in phase.tensors}
            phase.plan.graph.execute(addresses, 0, handle=cudnn.create_handle())
    return result


def drawn(placing: Placing, direction: Direction) -> tuple[Any, Any]:
    """Random operands, in their order."""
    rng = np.random.default_rng(7)
    shapes = {
        "forward": (placing.wide, placing.kernel),
        "adjoint": (placing.narrow, placing.kernel),
        "by_kernel": (placing.wide, placing.narrow),
    }
    first, second = (rng.integers(-4, 5, shape).astype("float64") for shape in shapes[direction])
    return first, second


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("sampled", SAMPLES, ids=str)
def test_samples_match_the_definition(sampled: SampledConvolution, direction: Direction) -> None:
    operands = drawn(sampled.placing, direction)
    actual = computed(sampled.placing, direction, *operands)
    np.testing.assert_array_equal(actual, by_definition(sampled.placing, direction, *operands))


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("of", FEWER)
def test_input_beyond_the_last_window_has_no_effect(of: Placing, direction: Direction) -> None:
    operands = drawn(of, direction)
    np.testing.assert_array_equal(computed(of, direction, *operands), by_definition(of, direction, *operands))


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("of", [PLACING, *FEWER])
def test_plans_are_timed_in_buffers_of_the_tensor_sizes(of: Placing, direction: Direction) -> None:
    """The stand-in stays within the buffers, which are no larger than the operands."""
    cudnn = Cudnn(A=[Engine("first", milliseconds=2), Engine("quick", milliseconds=1)], computes=True)
    clock = HostClock(lambda: cudnn.launched[-1][0].built.milliseconds)  # type: ignore[union-attr]
    store = KernelStore()
    recipe = CudnnConvolutions(CudnnPlans(CudnnLibrary(cudnn, "sm_90"), store)).recipe(
        of.geometry(direction, "float64"),
        direction,
        precision="float32",
        deterministic=False,
        workspace=WORKSPACE,
        choices=Choices(store, clock),
    )
    assert recipe is not None
    (plan,) = [phase.plan for phase in recipe.phases if isinstance(phase, CudnnPhase)]
    assert plan.graph.built.name == "quick"
    ((wide, kernel, narrow, workspace),) = clock.sizes
    assert (kernel, narrow, workspace) == (8 * math.prod(of.kernel), 8 * math.prod(of.narrow), 0)
    assert wide <= 8 * math.prod(of.wide)
    assert wide == 8 * math.prod(of.wide) or of is not PLACING


def test_unit_axis_is_dropped() -> None:
    placing = Placing((2, 3, 9), (4, 3, 2), (2, 4, 8), 1, (1,), (0,), (1,))
    cudnn = Cudnn(A=[PLAIN])
    recipe_by(cudnn, placing.geometry("forward", "float32"), "forward")
    (graph,) = cudnn.asked
    assert [tensor.dim for tensor in graph.tensors.values()] == [(2, 3, 1, 9), (4, 3, 1, 2)]
    assert [tensor.stride for tensor in graph.tensors.values()] == [(27, 9, 9, 1), (6, 2, 2, 1)]
    assert graph.numbers["stride"] == [1, 1]
    volumes = Placing((1, 1, 2, 4, 4), (1, 1, 2, 2, 2), (1, 1, 1, 3, 3), 1, (1, 1, 1), (0, 0, 0), (1, 1, 1))
    recipe_by(cudnn, volumes.geometry("forward", "float32"), "forward")
    assert len(cudnn.asked[-1].numbers["stride"]) == 3


INEXACT = {"DOWN_CONVERT_INPUTS", "REDUCED_PRECISION_REDUCTION", "WINOGRAD", "FFT"}


@pytest.mark.parametrize("deterministic", [False, True])
@pytest.mark.parametrize(
    ("dtype", "precision", "without"),
    [
        ("float32", "float32", INEXACT | {"TENSOR_CORE"}),
        ("float32", "tf32x3", INEXACT | {"TENSOR_CORE"}),
        ("float32", "tf32", INEXACT),
        ("float32", "bfloat16", INEXACT),
        ("float16", "float32", INEXACT),
        ("float64", "bfloat16", INEXACT),
    ],
)
def test_less_precise_engines_are_excluded(
    dtype: str, precision: Precision, without: set[str], deterministic: bool
) -> None:
    cudnn = Cudnn(A=[PLAIN])
    geometry = PLACING.geometry("forward", dtype)
    assert recipe_by(cudnn, geometry, "forward", precision=precision, deterministic=deterministic)
    (graph,) = cudnn.asked
    assert {*graph.without} == without | ({"NONDETERMINISTIC"} if deterministic else set())


def test_unsupported_precision_becomes_the_next_more_exact_one() -> None:
    precisions = {requested: convolution_precision(requested) for requested in PRECISIONS}
    assert precisions == {"float32": "float32", "tf32x3": "float32", "tf32": "tf32", "bfloat16": "tf32"}


@pytest.mark.parametrize(
    ("dtype", "element", "summed"),
    [("float16", "HALF", "FLOAT"), ("float32", "FLOAT", "FLOAT"), ("float64", "DOUBLE", "DOUBLE")],
)
def test_float16_accumulates_in_float32(dtype: str, element: str, summed: str) -> None:
    cudnn = Cudnn(A=[PLAIN])
    recipe_by(cudnn, PLACING.geometry("adjoint", dtype), "adjoint")
    (graph,) = cudnn.asked
    assert (graph.given["io_data_type"], graph.given["compute_data_type"]) == (element, summed)
    assert {tensor.data_type for tensor in (*graph.tensors.values(), *graph.results)} == {element}


def test_recipe_declares_the_workspace_of_the_plan() -> None:
    recipe = recipe_by(Cudnn(A=[Engine("wide", workspace=4096)]), PLACING.geometry("forward", "float32"), "forward")
    assert recipe is not None
    assert (recipe.workspace, recipe.text) == (4096, "")


def test_plans_differ_by_precision_and_determinism() -> None:
    cudnn = Cudnn(A=[Engine("tensor cores", ("TENSOR_CORE",)), Engine("atomics", ("NONDETERMINISTIC",)), PLAIN])
    convolutions = CudnnConvolutions(CudnnPlans(CudnnLibrary(cudnn, "sm_90")))
    names = []
    for precision, deterministic in (("tf32", False), ("float32", False), ("float32", True), ("tf32", False)):
        recipe = convolutions.recipe(
            PLACING.geometry("forward", "float32"),
            "forward",
            precision=precision,  # type: ignore[arg-type]
            deterministic=deterministic,
            workspace=0,
        )
        assert recipe is not None
        names.append(recipe.phases[0].plan.graph.built.name)  # type: ignore[union-attr]
    assert names == ["tensor cores", "atomics", "plain", "tensor cores"]


def with_steps(*steps: int) -> ConvolutionGeometry:
    """The geometry with other strides of x."""
    geometry = PLACING.geometry("forward", "float32")
    return geometry._replace(x=TensorLayout(geometry.x.shape, (480, 120, 0, *steps)))


@pytest.mark.parametrize(
    "of",
    [
        pytest.param(
            PLACING._replace(wide=(0, 4, 5, 6), narrow=(0, 6, 5, 3)).geometry("forward", "float32"), id="none"
        ),
        pytest.param(PLACING.geometry("forward", "float64")._replace(dtype="int64"), id="integers"),
        pytest.param(with_steps(24, -4), id="backward"),
        pytest.param(with_steps(0, 4), id="one row for all"),
        pytest.param(with_steps(26, 4), id="no whole elements"),
    ],
)
def test_unsupported_geometry_is_not_requested(of: ConvolutionGeometry) -> None:
    cudnn = Cudnn(A=[PLAIN])
    assert recipe_by(cudnn, of, "forward") is None
    assert not cudnn.asked


def test_rows_may_be_strided() -> None:
    cudnn = Cudnn(A=[PLAIN])
    assert recipe_by(cudnn, with_steps(32, 4), "forward")
    assert cudnn.asked[0].tensors[1].stride == (120, 30, 8, 1)


@pytest.mark.card_tests
@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("sampled", SAMPLES, ids=str)
def test_h100_has_a_plan_for_every_sample(sampled: SampledConvolution, direction: Direction) -> None:
    """Every dtype, precision and determinism has one within 64 MiB."""
    convolutions = CudnnConvolutions(CudnnPlans(described_h100()))
    for dtype, precision, deterministic in itertools.product(DTYPES, PRECISIONS, (False, True)):
        recipe = convolutions.recipe(
            sampled.placing.geometry(direction, dtype),
            direction,
            precision=precision,
            deterministic=deterministic,
            workspace=WORKSPACE,
        )
        assert recipe is not None, (dtype, precision, deterministic)
        assert recipe.workspace <= WORKSPACE


@pytest.mark.card_tests
@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("of", FEWER)
def test_h100_has_a_plan_for_fewer_windows_than_fit(of: Placing, direction: Direction) -> None:
    convolutions = CudnnConvolutions(CudnnPlans(described_h100()))
    for dtype in DTYPES:
        geometry = of.geometry(direction, dtype)
        assert convolutions.recipe(geometry, direction, precision="float32", deterministic=True, workspace=WORKSPACE)


@pytest.mark.card_tests
def test_h100_uses_tf32_only_if_allowed() -> None:
    """The engines that the notes exclude are those that cuDNN would try first."""
    library = described_h100()
    placing = Placing((32, 64, 56, 56), (64, 64, 3, 3), (32, 64, 56, 56), 1, (1, 1), (1, 1), (1, 1))
    plans = CudnnConvolutions(CudnnPlans(library))
    exact, coarse = (
        plans.recipe(
            placing.geometry("forward", "float32"), "forward", precision=p, deterministic=True, workspace=WORKSPACE
        )
        for p in ("float32", "tf32")
    )
    assert exact is not None
    assert coarse is not None
    # TF32 needs channels last, so it copies the tensors.
    assert exact.workspace == 0
    assert coarse.workspace > placing.wide[0] * placing.wide[1] * 56 * 56
