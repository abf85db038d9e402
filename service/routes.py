"""The paths. A route takes raw bytes and hands them on; nothing here parses or computes."""

from __future__ import annotations

from difflib import get_close_matches
from typing import Final

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from service.errors import Refusal, printable
from service.media import SAFETENSORS
from service.query import timeout_of
from service.responses import answer, from_reply
from service.state import State
from service.uploads import whole_body
from service.worker import Job

router: Final = APIRouter()


def _state(request: Request) -> State:
    state: State = request.app.state.service
    return state


async def _compute(call: str, request: Request) -> Response:
    state = _state(request)
    timeout = timeout_of(request.scope["query_string"], state.settings.timeout_ms)
    expires = request.state.arrived + timeout
    sent, accepted = request.state.sent, request.state.accepted
    body = await (whole_body(request) if sent == SAFETENSORS else request.body())
    job = Job(call, body, request.state.request_id, timeout, expires, sent, accepted)
    return from_reply(await state.pool.run(job))


@router.post("/v1/gradients", operation_id="gradients", tags=["compute"])
async def gradients(request: Request) -> Response:
    """Values and gradients.

    Runs the graph forward, and backward from `of` to every node in `wrt`. The answer has the values of `outputs`
    and the gradients, by node id, in the order of the request.
    """
    return await _compute("gradients", request)


@router.post("/v1/forward", operation_id="forward", tags=["compute"])
async def forward(request: Request) -> Response:
    """Values.

    Runs the graph forward. The answer has the values of `outputs`, by node id, in the order of the request.
    """
    return await _compute("forward", request)


@router.post("/v1/vjp", operation_id="vjp", tags=["compute"])
async def vjp(request: Request) -> Response:
    """Cotangents times the Jacobian.

    The gradients of the sum of every output times its cotangent; with `batched`, for K cotangents at once.
    """
    return await _compute("vjp", request)


@router.post("/v1/jvp", operation_id="jvp", tags=["compute"])
async def jvp(request: Request) -> Response:
    """The Jacobian times tangents.

    How the outputs move when the leaves move along their tangents; exact, by forward mode.
    """
    return await _compute("jvp", request)


@router.post("/v1/jacobian", operation_id="jacobian", tags=["compute"])
async def jacobian(request: Request) -> Response:
    """Whole Jacobians.

    A block for each output and each node in `wrt`. All rows, or all columns where these are fewer, in one execution.
    """
    return await _compute("jacobian", request)


@router.post("/v1/hvp", operation_id="hvp", tags=["compute"])
async def hvp(request: Request) -> Response:
    """The Hessian times vectors.

    The derivative of the gradients of `of` along `vectors`; exact, never by differences.
    """
    return await _compute("hvp", request)


@router.post("/v1/hessian", operation_id="hessian", tags=["compute"])
async def hessian(request: Request) -> Response:
    """Whole Hessians.

    The second derivatives of `of` by every pair of nodes in `wrt`; exact, never by differences.
    """
    return await _compute("hessian", request)


@router.post("/v1/batch", operation_id="batch", tags=["compute"])
async def batch(request: Request) -> Response:
    """One graph on many examples.

    The graph is written for one example; the feeds of the leaves in `mapped` have a leading axis N. The values and the
    gradients of each example by itself, in one execution.
    """
    return await _compute("batch", request)


@router.post("/v1/plan", operation_id="plan", tags=["analysis"])
async def plan(request: Request) -> Response:
    """What a request would take.

    Shapes, FLOPs and peak bytes of the values and gradients of a graph, from the types of its leaves. Runs nothing.
    """
    return await _compute("plan", request)


@router.post("/v1/check", operation_id="check", tags=["analysis"])
async def check(request: Request) -> Response:
    """A certificate for gradients.

    Compares them with central differences, in float64, along random directions; and says which nodes could not be
    compared, and why.
    """
    return await _compute("check", request)


@router.post("/v1/differentiate", operation_id="differentiate", tags=["analysis"])
async def differentiate(request: Request) -> Response:
    """The gradient as a graph.

    The graph that was sent, under the same node ids, and behind it the nodes of its gradients: to be sent to
    `/v1/forward`, or to be differentiated again. Runs nothing.
    """
    return await _compute("differentiate", request)


@router.get("/v1/ops", operation_id="listOps", tags=["catalogue"])
async def list_ops(request: Request) -> Response:
    """All ops.

    Operands, attributes, dtypes, the gradient as a formula, and how other systems spell the op.
    """
    return answer(_state(request).catalogue)


@router.get("/v1/ops/{name}", operation_id="getOp", tags=["catalogue"])
async def get_op(request: Request) -> Response:
    """One op, by its name or by any alias, ignoring case."""
    name = request.path_params["name"]
    op = _state(request).op(name)
    if op is None:
        raise _no_such_op(name, [row["name"] for row in _state(request).catalogue["ops"]])
    return answer(op)


def _no_such_op(name: str, known: list[str]) -> Refusal:
    shown = printable(name)
    near = get_close_matches(shown.lower(), known, n=1)
    hint = f"did you mean {near[0]}?" if near else "GET /v1/ops lists all ops"
    return Refusal("not_found", f"there is no op called “{shown}”; {hint}", expected="an op", got=shown)


@router.get("/health/live", operation_id="live", tags=["health"])
async def live() -> Response:
    """Whether the process answers at all.

    Says nothing of whether it takes work; restart a server that fails this.
    """
    return answer({"status": "live"})


@router.get("/health/ready", operation_id="ready", tags=["health"])
async def ready(request: Request) -> Response:
    """Whether the server takes work.

    The device is open and the ops are loaded. 503 while the server stops.
    """
    pool = _state(request).pool
    if not pool.ready:
        raise Refusal("shutting_down", "the server is stopping and takes no new work", retry_after=5)
    return answer({"status": "ready", "device": pool.device})


@router.get("/openapi.json", include_in_schema=False)
async def openapi(request: Request) -> Response:
    """The document that clients are generated from."""
    return Response(_state(request).document, media_type="application/json")


@router.get("/openapi-3.0.json", include_in_schema=False)
async def openapi30(request: Request) -> Response:
    """The same document in the version that some generators still need."""
    return Response(_state(request).document30, media_type="application/json")
