"""cuDNN for an H100 that is described but absent: its heuristics and engines need neither a card nor a driver."""

from __future__ import annotations

import ctypes
import json
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path

import pytest

from engine.cuda.cudnn_plans import CudnnLibrary

#: device properties as cuDNN serializes them
H100 = {
    "busId": 0,
    "cudaDeviceId": 0,
    "deviceName": "NVIDIA H100 80GB HBM3",
    "deviceVer": 900,
    "driverVer": 13000,
    "isTccDriver": 0,
    "l2CacheSize": 52428800,
    "maxBlockSize": [1024, 1024, 64],
    "maxCtasPerSM": 32,
    "maxGridSize": [2147483647, 65535, 65535],
    "maxRegistersPerSM": 65536,
    "maxSharedMemoryPerBlock": 49152,
    "maxSharedMemoryPerBlockOptin": 232448,
    "maxThreadsPerBlock": 1024,
    "maxThreadsPerSM": 2048,
    "memClockRateKHz": 2619000,
    "memoryBusWidth": 5120,
    "multiProcessorCount": 132,
    "oversizedSharedMemoryPerBlock": 0,
    "pciDeviceId": 9008,
    "regsPerBlock": 65536,
    "reservedSharedMemoryPerBlock": 1024,
    "smClockRateKHz": 1980000,
    "smCountOrigin": 0,
    "supportCoopLaunch": 1,
    "totalGlobalMem": 85045018624,
    "warpSize": 32,
}
_STUBS = Path(__file__).with_name("libcuda_stubs.c")


@cache
def described_h100() -> CudnnLibrary:
    """cuDNN for the H100; skips the test if cuDNN is not installed."""
    cudnn = pytest.importorskip("cudnn", reason="part of the extra card-tests")
    try:
        cudnn.backend_version()
    except RuntimeError as error:
        pytest.skip(f"cuDNN's frontend is installed, and not cuDNN: {error}")
    _ensure_driver()
    described = {"device_property": cudnn.create_device_properties(json.dumps(H100)), "sm_version": 90, "sm_count": 132}
    return CudnnLibrary(cudnn, "sm_90", described)


def _ensure_driver() -> None:
    """Load a libcuda that refuses everything, unless there is a real one: later loads by name find it."""
    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError:
        compiler = shutil.which("cc")
        if compiler is None:
            pytest.skip("there is neither a driver nor a C compiler")
        with tempfile.TemporaryDirectory() as folder:
            library = str(Path(folder) / "libcuda.so.1")
            subprocess.run(
                [compiler, "-shared", "-fPIC", "-Wl,-soname,libcuda.so.1", str(_STUBS), "-o", library], check=True
            )
            ctypes.CDLL(library, mode=ctypes.RTLD_GLOBAL)
