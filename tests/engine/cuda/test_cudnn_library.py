"""The cuDNN library, if it is installed: handles per thread, streams, and versions."""

from __future__ import annotations

import logging
import sys
from concurrent.futures import ThreadPoolExecutor
from types import ModuleType

import pytest

from engine.cuda.cudnn_plans import CudnnLibrary, cudnn_library
from tests.engine.cuda.cudnn_standin import Cudnn, NotSupported


def test_each_thread_has_its_own_handle() -> None:
    library = CudnnLibrary(Cudnn(), "sm_90")
    with ThreadPoolExecutor(1) as other:
        handles = [library.handle(), library.handle(), other.submit(library.handle).result(), library.handle()]
    assert handles == ["handle 0", "handle 0", "handle 1", "handle 0"]


def test_stream_is_set_only_if_it_changes() -> None:
    cudnn = Cudnn()
    library = CudnnLibrary(cudnn, "sm_90")
    for stream in (7, 7, 8, 8, 0):
        assert cudnn.streams[library.handle_on(stream)] == stream
    assert cudnn.streams_set == 3


def test_target_has_the_card_and_both_versions() -> None:
    assert CudnnLibrary(Cudnn(version=91100), "sm_90").target == "sm_90 cudnn 91100 frontend 1.28.0"


def test_frontend_exceptions_are_caught() -> None:
    assert NotSupported in CudnnLibrary(Cudnn(), "sm_90").errors


def test_installed_library_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cudnn", Cudnn())
    library = cudnn_library("sm_90")
    assert library is not None
    assert library.is_here


class WithoutLibrary(Cudnn):
    """The frontend without the library."""

    def backend_version(self) -> int:
        raise RuntimeError("Unable to find symbol cudnnGetVersion")


@pytest.mark.parametrize("module", [None, WithoutLibrary(), ModuleType("cudnn")])
def test_incomplete_installation_is_not_used(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, module: object
) -> None:
    monkeypatch.setitem(sys.modules, "cudnn", module)
    with caplog.at_level(logging.INFO, "gradserve.kernels"):
        assert cudnn_library("sm_90") is None
    (record,) = caplog.records
    assert record.message.startswith("cuDNN is not used: ")
