"""Health check of the image: exits with 0 if the server takes work, with 1 if not. Uses the standard library only.

It finds the server where its flags or its environment put it: `docker run gradserve:cpu --port 9000 --tls-cert …`.
"""

from __future__ import annotations

import os
import ssl
import sys
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from pathlib import Path

#: command line of the container's first process: the server, or an init process that has the server's as arguments
COMMAND = "/proc/1/cmdline"


def setting(name: str, words: list[str], default: str) -> str:
    """Return a setting: the last flag of the server's command line, else the environment variable, else `default`."""
    value = os.environ.get(f"GRADSERVE_{name.upper().replace('-', '_')}", default)
    for i, word in enumerate(words):
        flag, separator, after = word.partition("=")
        if flag == f"--{name}":
            value = after if separator else words[i + 1] if i + 1 < len(words) else value
    return value


def ready(words: list[str], seconds: float = 3.0) -> bool:
    """Return whether /health/ready answers with 200; it is asked directly, whatever proxy the environment names."""
    port = int(setting("port", words, "8000"))
    connection: HTTPConnection
    if setting("tls-cert", words, "") in ("", "none"):
        connection = HTTPConnection("127.0.0.1", port, timeout=seconds)
    else:
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE  # the certificate is for another name
        connection = HTTPSConnection("127.0.0.1", port, timeout=seconds, context=context)
    try:
        connection.request("GET", "/health/ready")
        return connection.getresponse().status == 200
    except (OSError, HTTPException):
        return False
    finally:
        connection.close()


if __name__ == "__main__":
    command = Path(sys.argv[1] if len(sys.argv) > 1 else COMMAND)
    sys.exit(not ready(command.read_bytes().decode(errors="replace").split("\0")))
