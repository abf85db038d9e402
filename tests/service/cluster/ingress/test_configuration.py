"""Configuration of HAProxy: every generated one is accepted, and it follows the documented decisions."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.cluster.ingress.configuration import (
    ANSWERED,
    UNANSWERED,
    IngressLayout,
    configuration,
    files,
    quoted,
    raw_response,
)
from tests.service.cluster.ingress.support import PROGRAM, needs_haproxy

PORTS = st.integers(1, 65_535)
HOSTS = st.one_of(st.ip_addresses(v=4).map(str), st.ip_addresses(v=6).map("[{}]".format), st.just("localhost"))
PLACES = st.builds("{}:{}".format, HOSTS, PORTS)
NUMERIC = st.builds("{}:{}".format, st.ip_addresses(v=4), PORTS)
#: names of folders with any character that a path may contain
FOLDERS = st.text(st.characters(codec="utf-8", exclude_characters="/\0\n\r", exclude_categories=["Cs"]), min_size=1)
LAYOUTS = st.builds(
    IngressLayout,
    listen=st.one_of(NUMERIC, PORTS.map("[::1]:{}".format)),
    nodes=st.lists(PLACES, max_size=4).map(tuple),
    dns=st.none() | st.builds("{}:{}".format, st.sampled_from(["nodes", "gradserve-nodes.default.svc"]), PORTS),
    nameservers=st.lists(NUMERIC, min_size=1, max_size=2).map(tuple),
    slots=st.integers(4, 64),
    folder=FOLDERS,
    socket=st.none() | st.just("runtime"),
    metrics=st.none() | NUMERIC,
    timeout_ms=st.integers(1, 86_400_000),
    grace_seconds=st.integers(1, 86_400),
    threads=st.integers(1, 4),
    connections=st.integers(1, 2000),
    connections_to_each=st.integers(1, 10_000),
)


@pytest.mark.smoke
@pytest.mark.slow
@needs_haproxy
@settings(max_examples=15)
@given(LAYOUTS)
def test_haproxy_accepts_every_configuration(layout: IngressLayout) -> None:
    assert said_of(layout) == ""


@needs_haproxy
@pytest.mark.parametrize("word", ["tune.bufsize", "hash-balance-factor", "retry-on", "http-error", "disable-l7-retry"])
def test_misspelt_keyword_is_refused(word: str) -> None:
    wrong = word[:-1] + ("x" if word[-1] != "x" else "y")
    assert wrong in said_of(IngressLayout(listen="127.0.0.1:1"), word, wrong)


def said_of(layout: IngressLayout, *replaced: str) -> str:
    """The errors and warnings of HAProxy about a configuration."""
    assert PROGRAM is not None
    with TemporaryDirectory() as name:
        folder = Path(name) / layout.folder[:60].strip("./") / "x" if layout.folder[0] != "/" else Path(name)
        folder.mkdir(parents=True, exist_ok=True)
        placed = replace(layout, folder=str(folder), socket=layout.socket and f"{name}/runtime")
        for each, content in files(placed).items():
            (folder / each).write_bytes(content)
        file = folder / "haproxy.cfg"
        if replaced:
            file.write_text(file.read_text(encoding="utf-8").replace(*replaced, 1), encoding="utf-8")
        done = subprocess.run(
            [PROGRAM.path, "-c", "-f", file], env=dict(PROGRAM.environment), capture_output=True, text=True, check=False
        )
        lines = [line for line in done.stderr.splitlines() if line.startswith(("[ALERT]", "[WARNING]"))]
        return "\n".join(lines) or ("" if done.returncode == 0 else done.stderr)


def test_configuration_depends_only_on_the_layout() -> None:
    layout = IngressLayout(listen="127.0.0.1:8000", nodes=("10.0.0.7:8000",))
    assert configuration(layout) == configuration(replace(layout))
    assert "server gs1 10.0.0.7:8000\n  server-template gs 2-32 127.0.0.1:1 disabled" in configuration(layout)


def test_dns_name_is_resolved_by_haproxy() -> None:
    text = configuration(IngressLayout(listen="127.0.0.1:8000", dns="nodes.example:8000", slots=4))
    assert "server-template gs 1-4 nodes.example:8000 resolvers names" in text
    assert "parse-resolv-conf" in text
    with_nameserver = configuration(IngressLayout(listen=":1", dns="nodes.example:8000", nameservers=("10.0.0.10:53",)))
    assert "nameserver n1 10.0.0.10:53" in with_nameserver
    assert "parse-resolv-conf" not in with_nameserver


def test_server_timeout_exceeds_the_request_timeout() -> None:
    assert "timeout server 35000ms" in configuration(IngressLayout(listen=":1"))
    assert "timeout server 65000ms" in configuration(IngressLayout(listen=":1", timeout_ms=60_000))


def test_ingress_uses_only_statuses_of_servers() -> None:
    assert {refusal.status for refusal in (*ANSWERED.values(), *UNANSWERED.values())} == {400, 408, 413, 503, 504}
    for refusal in ANSWERED.values():
        assert (refusal.retry_after is not None) == (refusal.status == 503)


def test_error_file_is_a_complete_response() -> None:
    head, _, body = raw_response(UNANSWERED[500]).partition(b"\n\n")
    lines = head.decode().split("\n")
    assert lines[0] == "HTTP/1.1 503 Service Unavailable"
    assert {
        "x-content-type-options: nosniff",
        "retry-after: 1",
        "x-request-id: ingress",
        f"content-length: {len(body)}",
    } <= set(lines)
    assert body == UNANSWERED[500].body("ingress")


@pytest.mark.parametrize(("text", "word"), [("a b", "'a b'"), ("it's", "'it'\\''s'"), ('"\\$x', "'\"\\$x'")])
def test_words_are_quoted(text: str, word: str) -> None:
    assert quoted(text) == word
