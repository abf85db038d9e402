"""Serve moto's S3, one request at a time: `python -m tests.cluster_chaos.store ADDRESS PORT`."""

from __future__ import annotations

import sys

from tests.service.store.moto_server import moto_server


def main() -> None:
    """Serve until killed."""
    server = moto_server(sys.argv[1], int(sys.argv[2]))
    print("listening", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
