"""Log of a server's processes: lines on stderr, as text or as JSON."""

from __future__ import annotations

import logging
import sys
import time
from typing import Final

import orjson

from service.core.keys.caller import mask_keys
from service.core.settings import Settings

_TEXT: Final = "%(asctime)s %(levelname)s %(name)s: %(message)s"


def begin_log(settings: Settings) -> None:
    """Begin to log, from the level in the settings on."""
    logging.basicConfig(level=settings.log_level.upper(), handlers=[_to_stderr(settings)])


def begin_log_of_ours(settings: Settings) -> None:
    """Log our own lines alone, in another application's process; nothing if that process has a log itself."""
    logger = logging.getLogger("gradserve")
    if not logger.hasHandlers():
        logger.addHandler(_to_stderr(settings))
        logger.setLevel(settings.log_level.upper())


def _to_stderr(settings: Settings) -> logging.Handler:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines() if settings.log_format == "json" else TextLines(_TEXT))
    return handler


class TextLines(logging.Formatter):
    """Formatter for lines of text, with a traceback below."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line, without its end."""
        return mask_keys(super().format(record))


class JsonLines(logging.Formatter):
    """Formatter for one object a line: time, level, logger, message; the request's id and the traceback, if any."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line, without its end."""
        more = {"request_id": vars(record)["request_id"]} if "request_id" in vars(record) else {}
        if record.exc_info:
            more["traceback"] = _encodable(self.formatException(record.exc_info))
        message = _encodable(record.getMessage())
        return mask_keys(json_line(record.created, record.levelname, record.name, message=message, **more))


def json_line(at: float, level: str, logger: str, **more: str | float) -> str:
    """Write a line of the log, with its time, in Unix seconds, by RFC 3339 to the millisecond."""
    whole = int(at)
    utc = f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(whole))}.{int(1000 * (at - whole)):03d}Z"
    return orjson.dumps({"time": utc, "level": level, "logger": logger, **more}).decode()


def _encodable(text: str) -> str:
    """Escape bytes that are not UTF-8: names of files in messages may have them."""
    return text.encode("utf-8", "backslashreplace").decode()
