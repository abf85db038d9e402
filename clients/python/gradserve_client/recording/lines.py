"""The line of the user's program that an op comes from."""

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
    """Return the innermost line that belongs neither to this package nor to an installed library.

    For example, an op inside a SciPy function points at the line that calls SciPy. If all code is installed, it is the
    innermost line outside of this package.
    """
    frame: FrameType | None = sys._getframe(1)  # noqa: SLF001 - the documented way to the caller's line
    innermost = frame
    while frame is not None:
        if frame.f_globals.get("__name__", "").partition(".")[0] != _PACKAGE:
            innermost = innermost if innermost and not _is_in_package(innermost) else frame
            if not frame.f_code.co_filename.startswith((*_INSTALLED, "<frozen")):
                return _line(frame)
        frame = frame.f_back
    assert innermost is not None, "something calls this"
    return _line(innermost)


def _is_in_package(frame: FrameType) -> bool:
    return str(frame.f_globals.get("__name__", "")).partition(".")[0] == _PACKAGE


def _line(frame: FrameType) -> Line:
    return Line(frame.f_code.co_filename, frame.f_lineno)


class RecordingError(InputError):
    """An operation that cannot be recorded. The message names the function, the user's line, and an alternative."""

    #: the message without function and line, if a function of the namespace raised it
    reason: str | None = None


def locates_errors(function: Callable[P, T]) -> Callable[P, T]:
    """Decorate a function of the namespace: its errors name the function and the user's line."""

    @functools.wraps(function)
    def wrapper(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return function(*args, **kwargs)
        except RecordingError as error:
            # Functions may call one another: the outermost one, which the user called, is named.
            if error.reason is None:
                raise
            raise _located_error(function.__name__, error.reason) from None
        except (ValueError, OverflowError) as error:
            raise _located_error(function.__name__, str(error)) from None

    return wrapper


def _located_error(name: str, reason: str) -> RecordingError:
    error = RecordingError(f"{name} ({users_line()}): {reason}")
    error.reason = reason
    return error
