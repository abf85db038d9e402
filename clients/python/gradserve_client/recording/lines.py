"""Where in the user's own program an op is written."""

from __future__ import annotations

import functools
import sys
import sysconfig
from collections.abc import Callable
from types import FrameType
from typing import Final, ParamSpec, TypeVar

from gradserve_client.errors import InputError
from gradserve_client.graph import Line

P = ParamSpec("P")
T = TypeVar("T")
_PACKAGE: Final = __name__.partition(".")[0]
_INSTALLED: Final = tuple(sysconfig.get_paths()[scheme] for scheme in ("stdlib", "platstdlib", "purelib", "platlib"))


def users_line() -> Line:
    """The innermost line that belongs neither to this package nor to an installed library.

    So a function of SciPy's is named by the line that calls it. Where all is installed, the innermost one counts.
    """
    frame: FrameType | None = sys._getframe(1)  # noqa: SLF001 - the documented way to the caller's line
    innermost = frame
    while frame is not None:
        if frame.f_globals.get("__name__", "").partition(".")[0] != _PACKAGE:
            innermost = innermost if innermost and not _is_ours(innermost) else frame
            if not frame.f_code.co_filename.startswith((*_INSTALLED, "<frozen")):
                return _line(frame)
        frame = frame.f_back
    assert innermost is not None, "something calls this"
    return _line(innermost)


def _is_ours(frame: FrameType) -> bool:
    return str(frame.f_globals.get("__name__", "")).partition(".")[0] == _PACKAGE


def _line(frame: FrameType) -> Line:
    return Line(frame.f_code.co_filename, frame.f_lineno)


class RecordingError(InputError):
    """What cannot be recorded: the message names the function, the user's line, and what to write instead."""

    #: why, where a function of the namespace refuses
    reason: str | None = None


def pointing(function: Callable[P, T]) -> Callable[P, T]:
    """A function of the namespace whose refusals name it and the user's line."""

    @functools.wraps(function)
    def pointed(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return function(*args, **kwargs)
        except RecordingError as error:
            # One function may be written with others: the one that the user called is named.
            if error.reason is None:
                raise
            raise _refusal(function.__name__, error.reason) from None
        except (ValueError, OverflowError) as error:
            raise _refusal(function.__name__, str(error)) from None

    return pointed


def _refusal(name: str, reason: str) -> RecordingError:
    error = RecordingError(f"{name} ({users_line()}): {reason}")
    error.reason = reason
    return error
