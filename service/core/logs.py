"""Logging setup of the server's processes: lines on stderr, as text or as JSON."""

from __future__ import annotations

import logging
import sys
import time
from typing import Final

import orjson

from service.core.keys.caller import mask_keys
from service.core.settings import Settings

_TEXT: Final = "%(asctime)s %(levelname)s %(name)s: %(message)s"


def set_up_logging(settings: Settings) -> None:
    """Set up logging at the level in the settings."""
    logging.basicConfig(level=settings.log_level.upper(), handlers=[_to_stderr(settings)])


def set_up_own_logging(settings: Settings) -> None:
    """Log only our own lines, inside another application. Do nothing if the application has set up logging."""
    logger = logging.getLogger("gradserve")
    if not logger.hasHandlers():
        logger.addHandler(_to_stderr(settings))
        logger.setLevel(settings.log_level.upper())


def _to_stderr(settings: Settings) -> logging.Handler:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines() if settings.log_format == "json" else TextLines(_TEXT))
    return handler


class TextLines(logging.Formatter):
    """Formatter for text lines; a traceback follows below its line."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line without a newline."""
        return mask_keys(super().format(record))


class JsonLines(logging.Formatter):
    """Formatter for one JSON object per line: time, level, logger, message; request id and traceback if present."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line without a newline."""
        fields = {"request_id": vars(record)["request_id"]} if "request_id" in vars(record) else {}
        if record.exc_info:
            fields["traceback"] = _encodable(self.formatException(record.exc_info))
        message = _encodable(record.getMessage())
        return mask_keys(json_line(record.created, record.levelname, record.name, message=message, **fields))


def json_line(seconds: float, level: str, logger: str, **fields: str | float) -> str:
    """Return a log line as JSON, with the Unix time `seconds` in RFC 3339 format to the millisecond."""
    whole_seconds = int(seconds)
    utc = (
        f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(whole_seconds))}.{int(1000 * (seconds - whole_seconds)):03d}Z"
    )
    return orjson.dumps({"time": utc, "level": level, "logger": logger, **fields}).decode()


def _encodable(text: str) -> str:
    """Escape bytes that are not UTF-8: file names in messages may contain them."""
    return text.encode("utf-8", "backslashreplace").decode()
