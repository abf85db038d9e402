"""The cuBLASLt binding: constants and signatures match the header, if installed; refusals become errors."""

from __future__ import annotations

import ctypes
import gc
import importlib.util
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from engine.codegen.native.machine_code import KernelUnavailable
from engine.cuda import cublaslt as lt
from engine.cuda.cublaslt import CublasLt, CublasLtError, Matmul, MatmulTerms, StoredMatrix
from engine.cuda.libraries import card_library
from tests.engine.cuda.cublaslt_stand_in import CublasLtStandIn


def include_folder() -> Path | None:
    """The folder where a wheel has installed cublasLt.h."""
    spec = importlib.util.find_spec("nvidia")
    folders = [] if spec is None or spec.submodule_search_locations is None else spec.submodule_search_locations
    return next((header.parent for folder in folders for header in Path(folder).glob("*/include/cublasLt.h")), None)


INCLUDE = include_folder()
needs_header = pytest.mark.skipif(INCLUDE is None, reason="the wheel nvidia-cublas is not installed")
SQUARE = StoredMatrix(4, 4, 4)
TERMS = MatmulTerms("float32", lt.COMPUTE_32F, SQUARE, SQUARE, SQUARE)


def text_of(*names: str) -> str:
    """The text of headers, without comments."""
    assert INCLUDE is not None
    text = "".join((INCLUDE / name).read_text(encoding="utf-8") for name in names)
    return re.sub(r"/\*.*?\*/|//[^\n]*", "", text, flags=re.DOTALL)


def enumerated(text: str) -> dict[str, int]:
    """The enumerators of a text, by name."""
    values: dict[str, int] = {}
    for name, number in re.findall(r"\b(CUBLAS\w+)\s*=\s*(0x[0-9a-fA-F]+|\d+)\s*[,}\n]", text):
        values[name] = int(number, 0)
    return values


#: our name → the header's name
NUMBERS: Mapping[str, str] = {
    "SUCCESS": "CUBLAS_STATUS_SUCCESS",
    **{name: f"CUBLAS_{name}" for name in vars(lt) if name.startswith(("COMPUTE_", "OP_"))},
    **{name: f"CUBLASLT_MATMUL_{name}" for name in vars(lt) if name.startswith(("DESC_", "PREF_"))},
    **{name: f"CUBLASLT_MATRIX_{name}" for name in vars(lt) if name.startswith("LAYOUT_")},
    **{name: f"CUBLASLT_{name}" for name in vars(lt) if name.startswith(("EPILOGUE_", "BATCH_MODE_", "REDUCTION_"))},
}
#: C types → ctypes; all other pointers are opaque
TYPES: Mapping[str, Any] = {
    "cublasStatus_t": ctypes.c_int,
    "cublasComputeType_t": ctypes.c_int,
    "cudaDataType": ctypes.c_int,
    "cudaDataType_t": ctypes.c_int,
    "cublasLtMatmulDescAttributes_t": ctypes.c_int,
    "cublasLtMatrixLayoutAttribute_t": ctypes.c_int,
    "cublasLtMatmulPreferenceAttributes_t": ctypes.c_int,
    "int": ctypes.c_int,
    "size_t": ctypes.c_size_t,
    "uint64_t": ctypes.c_uint64,
    "int64_t": ctypes.c_int64,
    "const char*": ctypes.c_char_p,
    "int*": ctypes.POINTER(ctypes.c_int),
    "cublasLtMatmulHeuristicResult_t*": ctypes.POINTER(lt.HeuristicResult),
    "const cublasLtMatmulAlgo_t*": ctypes.POINTER(lt.MatmulAlgo),
    "cublasLtHandle_t*": ctypes.POINTER(ctypes.c_void_p),
    "cublasLtMatmulDesc_t*": ctypes.POINTER(ctypes.c_void_p),
    "cublasLtMatrixLayout_t*": ctypes.POINTER(ctypes.c_void_p),
    "cublasLtMatmulPreference_t*": ctypes.POINTER(ctypes.c_void_p),
    "const void*": ctypes.c_void_p,
    "void*": ctypes.c_void_p,
    "cublasLtHandle_t": ctypes.c_void_p,
    "cublasLtMatmulDesc_t": ctypes.c_void_p,
    "cublasLtMatrixLayout_t": ctypes.c_void_p,
    "cublasLtMatmulPreference_t": ctypes.c_void_p,
    "cudaStream_t": ctypes.c_void_p,
}


def declared(text: str, function: str) -> list[Any]:
    """The result and argument types of a function, as ctypes."""
    match = re.search(rf"([\w ]+\*?)\s+CUBLASWINAPI\s+{function}\(([^)]*)\)", text)
    assert match, function
    result, arguments = match.groups()
    parameters = [] if arguments.strip() in ("", "void") else arguments.split(",")
    named = [re.sub(r"\s*\b\w+(\[\])?\s*$", r"\1", " ".join(argument.split())) for argument in parameters]
    spelled = [name.replace("[]", "*").replace(" *", "*").strip() for name in (result.strip(), *named)]
    return [TYPES[name] for name in spelled]


@pytest.mark.card_tests
@needs_header
@pytest.mark.parametrize("name", sorted(NUMBERS))
def test_constants_match_the_header(name: str) -> None:
    assert getattr(lt, name) == enumerated(text_of("cublas_api.h", "cublasLt.h"))[NUMBERS[name]]


@pytest.mark.card_tests
@needs_header
@pytest.mark.parametrize("function", sorted(lt.SIGNATURES))
def test_signatures_match_the_header(function: str) -> None:
    assert list(lt.SIGNATURES[function]) == declared(text_of("cublasLt.h"), function)


@pytest.mark.card_tests
@needs_header
def test_structures_match_the_header() -> None:
    text = " ".join(text_of("cublasLt.h").split())
    assert "typedef struct { uint64_t data[8]; } cublasLtMatmulAlgo_t;" in text
    fields = "cublasLtMatmulAlgo_t algo; size_t workspaceSize; cublasStatus_t state; float wavesCount; int reserved[4];"
    assert f"typedef struct {{ {fields} }} cublasLtMatmulHeuristicResult_t;" in text
    assert (ctypes.sizeof(lt.MatmulAlgo), ctypes.sizeof(lt.HeuristicResult)) == (64, 96)


@pytest.fixture
def library() -> Any:
    """The library with typed functions, as far as it works without a card."""
    card_library.cache_clear()
    loaded = card_library("cublasLt").loaded
    if loaded is None:
        pytest.skip("there is no cuBLASLt")
    for name, (result, *arguments) in lt.SIGNATURES.items():
        function = getattr(loaded, name)
        function.restype, function.argtypes = result, arguments
    return loaded


@pytest.mark.card_tests
@pytest.mark.parametrize(
    ("kind", "create", "attributes"),
    [
        (
            "MatmulDesc",
            (lt.COMPUTE_32F, lt.DATA_TYPES["float32"]),
            {lt.DESC_TRANSA: 4, lt.DESC_TRANSB: 4, lt.DESC_EPILOGUE: 4, lt.DESC_BIAS_POINTER: 8},
        ),
        (
            "MatrixLayout",
            (lt.DATA_TYPES["float16"], 4, 4, 4),
            {lt.LAYOUT_BATCH_COUNT: 4, lt.LAYOUT_STRIDED_BATCH_OFFSET: 8, lt.LAYOUT_BATCH_MODE: 4},
        ),
        (
            "MatmulPreference",
            (),
            {lt.PREF_MAX_WORKSPACE_BYTES: 8}
            | dict.fromkeys([lt.PREF_REDUCTION_SCHEME_MASK, *range(lt.PREF_MIN_ALIGNMENT_A_BYTES, 9)], 4),
        ),
    ],
)
def test_attributes_have_exact_sizes(
    library: Any, kind: str, create: tuple[int, ...], attributes: dict[int, int]
) -> None:
    handle, value = ctypes.c_void_p(), ctypes.create_string_buffer(b"\1".ljust(16, b"\0"))
    assert getattr(library, f"cublasLt{kind}Create")(ctypes.byref(handle), *create) == lt.SUCCESS
    set_attribute = getattr(library, f"cublasLt{kind}SetAttribute")
    for attribute, size in attributes.items():
        assert set_attribute(handle, attribute, ctypes.byref(value), size) == lt.SUCCESS
        assert set_attribute(handle, attribute, ctypes.byref(value), size + 4) != lt.SUCCESS
    assert getattr(library, f"cublasLt{kind}Destroy")(handle) == lt.SUCCESS


@pytest.mark.card_tests
def test_library_is_unavailable_without_a_card(library: Any) -> None:
    if importlib.util.find_spec("cupy") is not None:
        pytest.skip("there may be a card")
    with pytest.raises(KernelUnavailable, match="cublasLtCreate: "):
        CublasLt(library)


def test_library_without_a_function_is_unavailable() -> None:
    library = CublasLtStandIn()
    del library.cublasLtMatmul
    with pytest.raises(KernelUnavailable, match="has no cublasLtMatmul"):
        CublasLt(library)


def test_product_without_an_algorithm_is_unavailable() -> None:
    library = CublasLt(CublasLtStandIn(wants=1024))
    with pytest.raises(KernelUnavailable, match="the value is invalid"):
        Matmul(library, TERMS._replace(workspace=1023))


def test_refused_launch_raises() -> None:
    matmul = Matmul(CublasLt(CublasLtStandIn()), TERMS)
    with pytest.raises(CublasLtError, match="cublasLtMatmul: the value is invalid"):
        matmul.launch(4, 4, 4, 0, 0)  # less aligned than declared


@pytest.mark.slow
def test_handles_are_destroyed_with_their_owner() -> None:
    functions = CublasLtStandIn()
    library = CublasLt(functions)
    matmul = Matmul(library, TERMS)
    assert len(functions.objects) == 5  # the handle, an operation, three layouts; the preference is destroyed
    del matmul
    gc.collect()
    assert len(functions.objects) == 1
