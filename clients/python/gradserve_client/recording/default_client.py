"""The default client of recorded functions."""

from __future__ import annotations

import os
from functools import cache
from typing import Final

from gradserve_client.client import Client

#: environment variable with the server's URL
URL_VARIABLE: Final = "GRADSERVE_URL"
_DEFAULT_URL: Final = "http://127.0.0.1:8000"


@cache
def default_client() -> Client:
    """Return a client, always the same one, of the server at GRADSERVE_URL, by default the one on this machine."""
    return Client(os.environ.get(URL_VARIABLE) or _DEFAULT_URL)
