"""The log of the processes of a server: lines on stderr, as text or as JSON, each in one form."""

from __future__ import annotations

import logging
import sys
import time
from typing import Final

import orjson

from service.core.keys.caller import mask_keys
from service.core.settings import Settings

_OURS: Final = "gradserve"
_TEXT: Final = "%(asctime)s %(levelname)s %(name)s: %(message)s"


def begin_log(settings: Settings) -> None:
    """Write what is logged from now on, from the level on that is set."""
    logging.basicConfig(level=settings.log_level.upper(), handlers=[_to_stderr(settings)])


def begin_log_of_ours(settings: Settings) -> None:
    """Write our own lines alone, in a process of somebody else's; nothing if that process writes a log itself."""
    logger = logging.getLogger(_OURS)
    if not logger.hasHandlers():
        logger.addHandler(_to_stderr(settings))
        logger.setLevel(settings.log_level.upper())


def _to_stderr(settings: Settings) -> logging.Handler:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines() if settings.log_format == "json" else TextLines(_TEXT))
    return handler


class TextLines(logging.Formatter):
    """One line of text, with the traceback below it, where there is one."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line, without its end."""
        return mask_keys(super().format(record))


class JsonLines(logging.Formatter):
    """One object a line: time, level, logger, message; the request's id and the traceback, where there are any."""

    def format(self, record: logging.LogRecord) -> str:
        """The line, without its end."""
        more = {"request_id": vars(record)["request_id"]} if "request_id" in vars(record) else {}
        if record.exc_info:
            more["traceback"] = _encodable(self.formatException(record.exc_info))
        message = _encodable(record.getMessage())
        return mask_keys(json_line(record.created, record.levelname, record.name, message=message, **more))


def json_line(at: float, level: str, logger: str, **more: str | float) -> str:
    """An object as every line of the log begins, of a time in Unix seconds; and what this line says."""
    return orjson.dumps({"time": _utc(at), "level": level, "logger": logger, **more}).decode()


def _utc(seconds: float) -> str:
    """The time by RFC 3339, to the millisecond."""
    whole = int(seconds)
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(whole))}.{int(1000 * (seconds - whole)):03d}Z"


def _encodable(text: str) -> str:
    """Names of files may hold what is no UTF-8, and stand in messages."""
    return text.encode("utf-8", "backslashreplace").decode()
