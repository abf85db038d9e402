"""An S3 of moto's in a process of its own, each request behind a lock: `python -m benchmarks.cluster.store`."""

from __future__ import annotations

import sys
from threading import Thread
from typing import Final

import boto3
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import WSGIRequestHandler, make_server

from tests.service.state.conftest import one_at_a_time

BUCKET: Final = "benchmarks"
REGION: Final = "us-east-1"


class _Quiet(WSGIRequestHandler):
    def log_request(self, *_: object) -> None:
        pass


def main() -> None:
    """Serve until a signal."""
    moto = one_at_a_time(DomainDispatcherApplication(create_backend_app))
    server = make_server("127.0.0.1", 0, moto, threaded=True, request_handler=_Quiet)
    url = f"http://127.0.0.1:{server.server_port}"
    Thread(target=server.serve_forever).start()
    boto3.client(
        "s3", endpoint_url=url, region_name=REGION, aws_access_key_id="anyone", aws_secret_access_key="anything"
    ).create_bucket(Bucket=BUCKET)
    sys.stdout.write(f"listening on {url}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
