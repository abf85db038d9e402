"""moto's S3 at an address, each request behind a lock: `python -m tests.cluster_chaos.store ADDRESS PORT`."""

from __future__ import annotations

import sys

from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import WSGIRequestHandler, make_server

from tests.service.state.conftest import one_at_a_time


class _Quiet(WSGIRequestHandler):
    def log_request(self, *_: object) -> None:
        pass


def main() -> None:
    """Serve until killed."""
    address, port = sys.argv[1], int(sys.argv[2])
    moto = one_at_a_time(DomainDispatcherApplication(create_backend_app))
    server = make_server(address, port, moto, threaded=True, request_handler=_Quiet)
    print("listening", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
