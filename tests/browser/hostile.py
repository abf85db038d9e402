"""A page from another origin that tries to reach a server on this machine, and reports the outcomes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

#: requests that a page can send to another origin, each a promise of what it sees of the answer; BODY is JSON
ATTEMPTS = {
    "a POST without a type": "fetch(URL, {method: 'POST', mode: 'no-cors', body: new Blob([BODY])})",
    "bytes without a type": "fetch(URL, {method: 'POST', mode: 'no-cors', body: new TextEncoder().encode(BODY)})",
    "a POST as text": "fetch(URL, {method: 'POST', mode: 'no-cors', body: BODY})",
    "a POST of another kind": "fetch(URL, {method: 'POST', mode: 'no-cors', "
    "body: new Blob([BODY], {type: 'text/plain'})})",
    "a POST of JSON": "fetch(URL, {method: 'POST', body: BODY, headers: {'Content-Type': 'application/json'}})",
    "a POST with credentials": "fetch(URL, {method: 'POST', body: new Blob([BODY]), credentials: 'include'})",
    "a beacon": "Promise.resolve(navigator.sendBeacon(URL, new Blob([BODY])))",
    "a PUT": "fetch(TENSOR, {method: 'PUT', body: new Blob(['{}'])})",
    "a DELETE": "fetch(TENSOR, {method: 'DELETE'})",
    "a GET": "fetch(OPS)",
    "a GET whose answer is not read": "fetch(OPS, {mode: 'no-cors'})",
    "an image": "new Promise((yes, no) => { const i = new Image(); i.onload = yes; i.onerror = no; i.src = OPS })",
    "a script": "new Promise((yes, no) => { const s = document.createElement('script'); "
    "s.onload = yes; s.onerror = no; s.src = OPS; document.body.append(s) })",
    "a form": "new Promise(yes => { const f = document.createElement('form'); f.method = 'POST'; f.action = URL; "
    "f.enctype = 'text/plain'; f.target = 'frame'; const i = document.createElement('input'); i.name = BODY; "
    "f.append(i); document.body.append(f); document.getElementsByName('frame')[0].onload = yes; f.submit() })",
}

_PAGE = """<!doctype html><title>hostile</title><body><iframe name="frame"></iframe><script>
const tried = {};
async function attempt(name, promise) {
  try { const r = await promise; tried[name] = r && r.text ? r.type + ' ' + r.status + ' ' + await r.text() : 'sent' }
  catch (error) { tried[name] = 'failed' }
}
</script></body>"""


@contextmanager
def hostile_server() -> Iterator[int]:
    """Serve the page from this machine under any name and path; yield the port."""

    class Page(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            content = _PAGE.encode()
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Page) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_port
        server.shutdown()
