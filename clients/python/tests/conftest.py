"""What the tests of the client take from those of the project: servers, and Hypothesis without clocks."""

from __future__ import annotations

from tests.conftest import server, start_server

__all__ = ["server", "start_server"]
