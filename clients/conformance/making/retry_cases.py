"""Cases of retries, waits, deadlines and idempotency keys."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from clients.conformance.bits import Json
from clients.conformance.cases import Case
from clients.conformance.making.exchange_parts import (
    CALL,
    CREATED,
    DONE,
    DONE_STORED,
    ETAG,
    OK,
    OK_STORED,
    ON_REGISTERED,
    RETURNED,
    SEEN,
    SEEN_REGISTERED,
    SEEN_REGISTERING,
    SEEN_STORING,
    STORING,
    WAITS,
    exchange,
    floats,
    raised,
    refused,
    wire,
)

_BUSY: Final = refused("queue_full")
_OVERLOAD: Final = raised("overload", 503, "queue_full")
_BEFORE: Final[Json] = {"close": "before"}
_MIDDLE: Final[Json] = OK | {"close": "middle"}
_LOST: Final = raised("transport")
_PAGE: Final[Json] = {"headers": {"Content-Type": "text/html"}, "text": "<h1>Try again later</h1>"}
_OFF: Final[Json] = {"idempotency": False}


def retry_cases() -> Iterator[Case]:
    """Yield all cases."""
    yield from _tries()
    yield from _retry_after()
    yield from _conflicts()
    yield from _connections()
    yield from _deadlines()
    yield from _keys()
    yield from _without_keys()


def _tried(name: str, answers: Sequence[Json], result: Json, waits: Sequence[int], **more: Any) -> Case:
    """Return a case of one call that is sent once per answer."""
    return exchange(name, answers, [SEEN] * len(answers), [result], waits=waits, **more)


def _tries() -> Iterator[Case]:
    yield _tried("answered-at-once", [OK], DONE, [])
    for code in ("request_timeout", "rate_limited", "queue_full", "shutting_down", "not_ready", "worker_died"):
        yield _tried(f"once-more-after-{code.replace('_', '-')}", [refused(code), OK], DONE, [375])
    yield _tried("once-more-after-unconfirmed", [refused("unconfirmed", "1"), OK], DONE, [1000])
    yield _tried("answered-at-the-third-try", [_BUSY, _BUSY, OK], DONE, [375, 750])
    yield _tried("given-up-after-three-tries", [_BUSY] * 3, _OVERLOAD, [375, 750])
    yield _tried("the-last-error-is-raised", [_BUSY, _BEFORE, refused("not_ready")], _not_ready(), [375, 750])
    yield _tried("no-retries", [_BUSY], _OVERLOAD, [], client={"retries": 0})
    yield _tried("one-retry", [_BUSY, _BUSY], _OVERLOAD, [375], client={"retries": 1})
    yield _tried("waits-grow-to-a-bound", [*[_BUSY] * 6, OK], DONE, WAITS, client={"retries": 6})
    died = refused("worker_died")
    many = {"client": {"retries": 6}}
    yield _tried("worker-died-twice", [died, died], _died(), [375], **many)
    yield _tried("worker-died-twice-with-another-between", [died, _BUSY, died], _died(), [375, 750], **many)
    proxy = _PAGE | {"status": 503}
    yield _tried("once-more-after-a-page-of-a-proxy", [proxy, OK], DONE, [375])
    yield _tried("given-up-on-a-page-of-a-proxy", [proxy] * 3, raised("overload", 503), [375, 750])
    yield _tried("a-page-of-a-proxy-502", [_PAGE | {"status": 502}], raised("server", 502), [])
    yield _tried("unknown-code-of-503", [_unknown(503), OK], DONE, [375])
    answers, two = [_BUSY, OK, _BUSY, _BUSY, OK], [CALL, CALL]
    yield exchange("two-calls-count-apart", answers, [SEEN] * 5, [DONE, DONE], calls=two, waits=[375, 375, 750])


def _not_ready() -> Json:
    return raised("overload", 503, "not_ready")


def _died() -> Json:
    return raised("overload", 503, "worker_died")


def _unknown(status: int, **headers: str) -> Json:
    members = {"type": "/docs", "title": "New", "status": status, "detail": "New.", "code": "brand_new"}
    return {"status": status, "json": members | {"request_id": "r"}, "headers": headers}


def _retry_after() -> Iterator[Case]:
    stated = {
        "longer": ("2", 2000),
        "much-longer": ("120", 120_000),
        "nothing": ("0", 375),
        "a-date": ("Wed, 21 Oct 2065 07:28:00 GMT", 375),
        "no-number": ("soon", 375),
        "negative": ("-5", 375),
        "a-fraction": ("1.5", 375),
        "empty": ("", 375),
    }
    for name, (value, wait) in stated.items():
        yield _tried(f"retry-after-{name}", [refused("queue_full", value), OK], DONE, [wait])
    limited = refused("rate_limited", "1")
    yield _tried("retry-after-at-429", [limited, limited, OK], DONE, [1000, 1000])
    yield _tried(
        "retry-after-shorter-than-the-wait", [_BUSY, _BUSY, limited, OK], DONE, [375, 750, 1500], client={"retries": 3}
    )
    proxy = _PAGE | {"status": 429, "headers": {"Content-Type": "text/html", "Retry-After": "3"}}
    yield _tried("retry-after-of-a-proxy", [proxy, OK], DONE, [3000])
    overlong, client = refused("queue_full", "9" * 40), {"timeout_ms": 60_000}
    yield exchange("retry-after-beyond-64-bits", [overlong], [_timed(SEEN, 60_000)], [_OVERLOAD], client=client)
    yield _tried("retry-after-at-500", [refused("internal_error", "1")], raised("server", 500, "internal_error"), [])


def _conflicts() -> Iterator[Case]:
    conflict = raised("condition", 409, "conflict")
    yield _tried("conflict-with-retry-after", [refused("conflict", "1"), OK], DONE, [1000])
    yield _tried("conflict-without-retry-after", [refused("conflict")], conflict, [])
    unknown = _unknown(409, **{"Retry-After": "1"})
    yield _tried("unknown-code-of-409", [unknown], raised("condition", 409, "brand_new"), [])
    for after in (None, "1"):
        name = "deadline-exceeded" if after is None else "deadline-exceeded-with-retry-after"
        yield _tried(name, [refused("deadline_exceeded", after)], raised("deadline", 504, "deadline_exceeded"), [])
    yield _tried("busy-and-then-504", [_BUSY, refused("deadline_exceeded")], raised("deadline", 504), [375])
    yield _tried("unknown-code-of-504", [_unknown(504)], raised("deadline", 504, "brand_new"), [])


def _connections() -> Iterator[Case]:
    chunked = _MIDDLE | {"chunked": True}
    for name, lost in (("before", _BEFORE), ("within", _MIDDLE), ("within-chunks-of", chunked)):
        yield _tried(f"closed-{name}-the-answer", [lost, OK], DONE, [375])
        yield _tried(f"closed-{name}-every-answer", [lost] * 3, _LOST, [375, 750])
    yield _tried("closed-within-a-file", [_file() | {"close": "middle"}, _file()], DONE, [375])
    yield _tried("closed-within-a-refusal", [_BUSY | {"close": "middle"}, OK], DONE, [375])
    yield _tried("closed-and-no-retries", [_BEFORE], _LOST, [], client={"retries": 0})
    yield _tried("closed-with-a-key", [_BEFORE] * 3, _LOST, [375, 750], client={"api_key": "gs_of_the_case"})


def _file() -> Json:
    names = {"values": "values.1", "gradients": "gradients.0"}
    tensors = {name: RETURNED[part][0]["tensor"] for part, name in names.items()}
    return {"file": {"response": {"values": [{"node": 1}], "gradients": [{"node": 0}]}, "tensors": tensors}}


def _timed(seen: Json, remaining_ms: int) -> Json:
    return seen | {"query": {"timeout_ms": str(remaining_ms)}}


def _deadlines() -> Iterator[Case]:
    def case(name: str, ms: int, answers: Sequence[Json], result: Json, waits: Sequence[int], **more: Any) -> Case:
        remaining = [ms - sum(waits[:i]) for i in range(len(answers))]
        saw = [_timed(SEEN, each) for each in remaining]
        return exchange(f"deadline-{name}", answers, saw, [result], waits=waits, client={"timeout_ms": ms}, **more)

    yield case("travels", 60_000, [OK], DONE, [])
    yield case("shrinks-over-tries", 60_000, [_BUSY, _BUSY, OK], DONE, [375, 750])
    yield case("shrinks-by-retry-after", 10_000, [refused("queue_full", "7"), OK], DONE, [7000])
    yield case("shrinks-over-lost-answers", 2000, [_BEFORE, _MIDDLE, OK], DONE, [375, 750])
    yield case("is-too-near", 300, [_BUSY], _OVERLOAD, [])
    yield case("is-as-long-as-the-wait", 375, [_BUSY], _OVERLOAD, [])
    yield case("is-one-more-than-the-wait", 376, [_BUSY, OK], DONE, [375])
    yield case("passes-within-the-second-wait", 1000, [_BUSY, _BUSY], _OVERLOAD, [375])
    yield case("passes-before-retry-after", 4000, [refused("rate_limited", "5")], raised("rate", 429), [])
    yield case("is-too-near-for-a-lost-answer", 300, [_BEFORE], _LOST, [])
    client = {"timeout_ms": 5000}
    more: Json = {"waits": [375], "client": client}
    saw = [_timed(SEEN, 5000), _timed(SEEN, 4625), _timed(SEEN, 5000)]
    two = [CALL, CALL]
    yield exchange("deadline-of-each-call-begins-anew", [_BUSY, OK, OK], saw, [DONE, DONE], calls=two, **more)
    saw = [_timed(SEEN_REGISTERING, 5000), _timed(SEEN_REGISTERING, 4625), _timed(SEEN_REGISTERED, 4625)]
    one, answers = [ON_REGISTERED], [_BUSY, CREATED, OK]
    yield exchange("deadline-covers-the-registration", answers, saw, [DONE], calls=one, **more)
    yield from _deadlines_of_state(client)


def _deadlines_of_state(client: Json) -> Iterator[Case]:
    """Yield requests of every kind: all of them send `timeout_ms`."""
    tensor = floats(1.0)
    summary = {"tensor_id": "w", "dtype": "float64", "shape": [1], "bytes": 8, "etag": ETAG, "durable": True}
    calls: list[tuple[Json, Json, Json]] = [
        (
            {"do": "put", "name": "w", "tensor": tensor},
            {"method": "PUT", "path": "/v1/tensors/w"},
            summary,
        ),
        (
            {"do": "get", "name": "w"},
            {"method": "GET", "path": "/v1/tensors/w"},
            {"tensor_id": "w", "etag": ETAG, "tensor": wire(tensor)},
        ),
        (
            {"do": "delete", "name": "w"},
            {"method": "DELETE", "path": "/v1/tensors/w", "idempotency_key": "case-1"},
            summary,
        ),
        ({"do": "list_tensors"}, {"method": "GET", "path": "/v1/tensors"}, {"tensors": [summary]}),
        ({"do": "list_graphs"}, {"method": "GET", "path": "/v1/graphs"}, {"graphs": []}),
        ({"do": "ops"}, {"method": "GET", "path": "/v1/ops"}, {"opset": 1, "ops": []}),
    ]
    for call, saw, answer in calls:
        name = f"deadline-of-{call['do'].replace('_', '-')}"
        yield exchange(name, [{"json": answer}], [_timed(saw, 5000)], [{"returned": {}}], calls=[call], client=client)


def _keys() -> Iterator[Case]:
    def case(name: str, answers: Sequence[Json], result: Json, waits: Sequence[int], **more: Any) -> Case:
        saw = [SEEN_STORING] * len(answers)
        return exchange(f"key-{name}", answers, saw, [result], waits=waits, calls=[STORING], **more)

    yield case("of-a-store", [OK_STORED], DONE_STORED, [])
    yield case("stays-over-tries", [_BUSY, refused("rate_limited"), OK_STORED], DONE_STORED, [375, 750])
    yield case("stays-over-lost-answers", [_BEFORE, _MIDDLE, OK_STORED], DONE_STORED, [375, 750])
    replayed = OK_STORED | {"headers": {"Idempotency-Replayed": "true"}}
    under_way = refused("conflict", "1")
    yield case("of-a-call-under-way", [_MIDDLE, under_way, replayed], DONE_STORED, [375, 1000])
    unconfirmed = refused("unconfirmed", "2")
    yield case("of-a-write-in-doubt", [unconfirmed, under_way, replayed], DONE_STORED, [2000, 1000])
    too_long = refused(
        "over_budget", detail="the response to a request with an Idempotency-Key may have at most 1048576 bytes"
    )
    yield case(
        "and-an-answer-too-long-to-keep", [too_long], raised("graph", 413, "over_budget", mentions=["idempotency"]), []
    )
    second = SEEN_STORING | {"idempotency_key": "case-2"}
    calls = [STORING, CALL, STORING]
    answers = [_BUSY, OK_STORED, OK, OK_STORED]
    saw = [SEEN_STORING, SEEN_STORING, SEEN, second]
    yield exchange(
        "key-of-each-call-that-needs-one", answers, saw, [DONE_STORED, DONE, DONE_STORED], calls=calls, waits=[375]
    )
    saw, limited = (
        [_timed(SEEN_STORING, remaining_ms) for remaining_ms in (5000, 4625)],
        {"client": {"timeout_ms": 5000}},
    )
    more: Json = {"calls": [STORING], "waits": [375]} | limited
    yield exchange("key-with-a-deadline", [_BUSY, OK_STORED], saw, [DONE_STORED], **more)
    yield from _keys_of_state()


def _keys_of_state() -> Iterator[Case]:
    """Yield deletions and conditional writes, which send a key, and other writes, which send none."""
    summary = {"tensor_id": "w", "dtype": "float64", "shape": [1], "bytes": 8, "etag": ETAG, "durable": True}
    ok: Json = {"json": summary}
    deleted: Json = {"method": "DELETE", "path": "/v1/tensors/w", "idempotency_key": "case-1"}
    put: Json = {"method": "PUT", "path": "/v1/tensors/w", "body": floats(1.0)}
    conditional = put | {"idempotency_key": "case-1", "headers": {"if-match": f'"{ETAG}"'}}
    if_absent = put | {"idempotency_key": "case-1", "headers": {"if-none-match": "*"}}
    putting: Json = {"do": "put", "name": "w", "tensor": floats(1.0)}
    calls: dict[str, tuple[Json, Json]] = {
        "delete": ({"do": "delete", "name": "w"}, deleted),
        "put-if-match": (putting | {"if_match": ETAG}, conditional),
        "put-if-none-match": (putting | {"if_none_match": "*"}, if_absent),
        "put-alone": (putting, put),
        "register": ({"do": "register", "steps": ON_REGISTERED["graph"]["steps"]}, SEEN_REGISTERING),
    }
    for name, (call, seen) in calls.items():
        answers = [_BUSY, _BEFORE, CREATED if name == "register" else ok]
        returned = {"graph_id": CREATED["json"]["graph_id"]} if name == "register" else summary
        more: Json = {"calls": [call], "waits": [375, 750]}
        yield exchange(f"key-or-none-of-{name}", answers, [seen] * 3, [{"returned": returned}], **more)


def _without_keys() -> Iterator[Case]:
    """Yield calls that store, which are sent only once if keys are off, and other calls, which are still retried."""
    once = {name: value for name, value in SEEN_STORING.items() if name != "idempotency_key"}
    outcomes: dict[str, tuple[Json, Json]] = {
        "answered": (OK_STORED, DONE_STORED),
        "busy": (_BUSY, _OVERLOAD),
        "rate-limited": (refused("rate_limited", "1"), raised("rate", 429, "rate_limited")),
        "lost": (_BEFORE, _LOST),
        "lost-within-the-answer": (_MIDDLE, _LOST),
        "in-doubt": (refused("unconfirmed", "1"), raised("overload", 503, "unconfirmed")),
        "under-way": (refused("conflict", "1"), raised("condition", 409, "conflict")),
    }
    for name, (answer, result) in outcomes.items():
        yield exchange(f"without-keys-{name}", [answer], [once], [result], calls=[STORING], client=_OFF)
    yield _tried("without-keys-nothing-kept", [_BUSY, _BEFORE, OK], DONE, [375, 750], client=_OFF)
    deleted = {"method": "DELETE", "path": "/v1/tensors/w"}
    yield exchange(
        "without-keys-delete", [_BUSY], [deleted], [_OVERLOAD], calls=[{"do": "delete", "name": "w"}], client=_OFF
    )
    putting: Json = {"do": "put", "name": "w", "tensor": floats(1.0)}
    seen = {"method": "PUT", "path": "/v1/tensors/w", "body": floats(1.0)}
    conditional = seen | {"headers": {"if-none-match": "*"}}
    on_none = [putting | {"if_none_match": "*"}]
    yield exchange("without-keys-put-if-none-match", [_BEFORE], [conditional], [_LOST], calls=on_none, client=_OFF)
    stored: Json = {
        "json": {"tensor_id": "w", "dtype": "float64", "shape": [1], "bytes": 8, "etag": ETAG, "durable": True}
    }
    results = [{"returned": {"etag": ETAG}}]
    more: Json = {"calls": [putting], "waits": [375], "client": _OFF}
    yield exchange("without-keys-put-alone", [_BEFORE, stored], [seen] * 2, results, **more)
