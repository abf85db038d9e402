"""The TypeScript client in a browser, in a page whose origin is not the server's."""

from __future__ import annotations

import functools
import threading
from collections.abc import Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from selenium.webdriver import Chrome

from examples.server import running_server
from tests.browser.chromium import browser
from tests.clients.building import built

pytestmark = pytest.mark.slow

SCRIPT = """
const [url, done] = arguments;
const program = async ({ Client, Graph, RefusalError }) => {
  const graph = new Graph();
  const x = graph.input("x");
  const w = graph.parameter("w");
  const loss = graph.sum(graph.tanh(graph.mul(x, w)));
  const client = new Client(url);
  %s
};
import("/src/index.js").then(program).then(done, (error) => done(`${error.stack}`));
"""


@pytest.fixture(scope="module")
def origin() -> Iterator[str]:
    """The origin that serves a page with the client."""
    files = functools.partial(Quiet, directory=str(built("typescript").folder / "build"))
    with ThreadingHTTPServer(("127.0.0.1", 0), files) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


class Quiet(SimpleHTTPRequestHandler):
    """File server without a request log."""

    def log_message(self, *_: object) -> None:
        """Log nothing."""


@pytest.fixture(scope="module")
def page(origin: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Chrome, str]]:
    """A page at that origin, and the address of a server that allows the origin."""
    with (
        running_server("--device", "cpu", "--workers", "1", "--cors-origins", origin) as url,
        browser(tmp_path_factory.mktemp("profile")) as opened,
    ):
        opened.get(origin + "/src/")
        yield opened, url


def run(page: tuple[Chrome, str], body: str) -> Any:
    """Run a program in the page and return its result."""
    opened, url = page
    return opened.execute_async_script(SCRIPT % body, url)


def test_gradient(page: tuple[Chrome, str]) -> None:
    program = """
      const answer = await client.gradients(graph, { x: [1, 2], w: [0.5, 0.5] }, { of: loss });
      return Array.from(answer.gradients.get(w).data);
    """
    assert run(page, program) == pytest.approx([0.7864477329659274, 0.8399486832280523], rel=1e-12)


def test_refusal_has_kind_code_and_node(page: tuple[Chrome, str]) -> None:
    program = """
      const wrong = client.gradients(graph, { x: [1, 2], w: [1, 2, 3] }, { of: loss });
      return wrong.catch((error) => [error.kind, error.code, error.node]);
    """
    assert run(page, program) == ["graph", "shape_mismatch", 2]


def test_large_tensor_is_stored_on_the_server(page: tuple[Chrome, str]) -> None:
    program = """
      const kept = await client.register(graph);
      const numbers = Float64Array.from({ length: 4000 }, (_, i) => i / 4000);
      const weights = await client.put("w", numbers);
      const feeds = [["x", numbers], [w, weights]];
      await kept.forward(feeds, { outputs: [loss], store: [[x, "x"]] });
      const got = await client.get("x");
      await client.delete(weights);
      const again = await client.get("w").catch((error) => error.kind);
      return [got.tensor.data.every((value, i) => value === numbers[i]), got.handle.etag.length > 0, again];
    """
    assert run(page, program) == [True, True, "not_found"]


def test_abort_signal_cancels_a_call(page: tuple[Chrome, str]) -> None:
    program = """
      const gone = AbortSignal.abort(new Error("never mind"));
      return client.forward(graph, { x: 1, w: 1 }, { signal: gone }).catch((error) => error.message);
    """
    assert run(page, program) == "never mind"
