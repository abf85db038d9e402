"""cuDNN, where it is installed: graphs for one card, a handle for each thread, and what calls raise."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from threading import local
from types import MappingProxyType
from typing import Any, Final

import numpy as np

_logger = logging.getLogger("gradserve.kernels")

#: floats by their width: what it calls them, and what it adds them up in
_FLOATS: Final = MappingProxyType({2: ("HALF", "FLOAT"), 4: ("FLOAT", "FLOAT"), 8: ("DOUBLE", "DOUBLE")})


class CudnnLibrary:
    """cuDNN by its frontend, the module `cudnn`, for one kind of card. Threads may share it.

    `card` is what tells its plans from those for other cards. A card that is not here is `described`: arguments of
    the frontend's graphs, which are then planned and not run.
    """

    def __init__(self, cudnn: Any, card: str, described: Mapping[str, Any] | None = None) -> None:
        self._cudnn, self._described = cudnn, described
        self._of_thread = local()
        #: what its plans depend on beside what they compute: the card, and the versions
        self.target = f"{card} cudnn {cudnn.backend_version()} frontend {cudnn.__version__}"
        #: what its calls raise where they cannot do something; what is not theirs passes through
        self.errors: tuple[type[Exception], ...] = (
            cudnn.cudnnGraphNotSupportedError,
            AttributeError,
            LookupError,
            MemoryError,
            RuntimeError,
            TypeError,
            ValueError,
        )

    def graph(self, dtype: str) -> Any:
        """An empty graph of tensors of `dtype`, which is a float's; sums are of float32 at least."""
        kinds, (element, summed) = self._cudnn.data_type, _FLOATS[np.dtype(dtype).itemsize]
        given = self._described or {"handle": self.handle()}
        return self._cudnn.pygraph(
            io_data_type=getattr(kinds, element),
            intermediate_data_type=getattr(kinds, summed),
            compute_data_type=getattr(kinds, summed),
            **given,
        )

    @property
    def is_here(self) -> bool:
        """Whether the card is, so that plans can be loaded and run."""
        return self._described is None

    def loaded(self, code: bytes) -> Any:
        """A graph with its plan, of what `serialize` gave, on a card that is here. Raises one of `errors`."""
        graph = self._cudnn.pygraph(handle=self.handle())
        # Its list of numbers, and nothing else, is what every version takes.
        graph.deserialize(self.handle(), list(code))
        return graph

    def modes(self) -> tuple[Any, ...]:
        """Its heuristics, in the order in which they are asked."""
        of = self._cudnn.heur_mode
        return of.A, of.B, of.FALLBACK

    def notes(self, *names: str) -> list[Any]:
        """Numerical notes, by name."""
        return [getattr(self._cudnn.numerical_note, name) for name in names]

    def element(self, dtype: str) -> Any:
        """What it calls the dtype of floats."""
        return getattr(self._cudnn.data_type, _FLOATS[np.dtype(dtype).itemsize][0])

    def handle(self) -> Any:
        """The handle of this thread, on the card that is current when it is first asked for."""
        of = self._of_thread
        if not hasattr(of, "handle"):
            of.handle, of.stream = self._cudnn.create_handle(), None
        return of.handle

    def handle_on(self, stream: int) -> Any:
        """The handle of this thread, which launches on `stream` from now on. To say so costs some microseconds."""
        handle, of = self.handle(), self._of_thread
        if of.stream != stream:
            self._cudnn.set_stream(handle=handle, stream=stream)
            of.stream = stream
        return handle


def cudnn_library(card: str) -> CudnnLibrary | None:
    """cuDNN for the current card, which is of the kind `card`; None, and a line of the log, where it is not usable."""
    try:
        import cudnn  # noqa: PLC0415 - optional

        return CudnnLibrary(cudnn, card)
    except (ImportError, OSError, RuntimeError, AttributeError) as error:
        _logger.info("cuDNN is not used: %s", error)
        return None
