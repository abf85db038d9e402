"""The S3 server of the tests of state, which servers share here."""

from __future__ import annotations

from tests.service.state.conftest import s3_place, s3_server

__all__ = ["s3_place", "s3_server"]
