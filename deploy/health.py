"""The image's health check: exit status 0 where the server takes work, 1 where not. The standard library only."""

from __future__ import annotations

import os
import sys
from http.client import HTTPConnection, HTTPException


def ready(port: int, seconds: float = 3.0) -> bool:
    """Whether /health/ready answers 200. Straight to this host, whatever proxy the environment names."""
    connection = HTTPConnection("127.0.0.1", port, timeout=seconds)
    try:
        connection.request("GET", "/health/ready")
        return connection.getresponse().status == 200
    except (OSError, HTTPException):
        return False
    finally:
        connection.close()


if __name__ == "__main__":
    sys.exit(not ready(int(os.environ.get("GRADSERVE_PORT", "8000"))))
