"""An S3 of moto's in a process of its own, each request behind a lock: `python -m benchmarks.cluster.store`."""

from __future__ import annotations

import sys
from threading import Thread
from typing import Final

import boto3

from tests.service.store.moto_server import REGION, moto_server

BUCKET: Final = "benchmarks"


def main() -> None:
    """Serve until a signal."""
    server = moto_server()
    url = f"http://127.0.0.1:{server.server_port}"
    Thread(target=server.serve_forever).start()
    boto3.client(
        "s3", endpoint_url=url, region_name=REGION, aws_access_key_id="anyone", aws_secret_access_key="anything"
    ).create_bucket(Bucket=BUCKET)
    sys.stdout.write(f"listening on {url}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
