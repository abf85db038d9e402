"""From a client's program and the types of its feeds to a plan, and the bounded memory of plans made before."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from threading import Lock

from engine.errors import EngineError, NonScalarOutput, NotDifferentiable
from engine.ir import COTANGENT, Builder, Value
from engine.limits import NO_DEADLINE, Deadline, Limits
from engine.passes.pipeline import optimise
from engine.plan import Plan, make_plan
from engine.program import Program
from engine.request import Request, forward_request, gradients_request
from engine.tensor_type import TensorType, require_type, show_shape
from engine.transforms.expand_grad import expand_grad
from engine.transforms.vjp import vjp

Types = Mapping[int, TensorType]


@dataclass(frozen=True, slots=True)
class Compiled:
    """A plan and what its results are: the values of `outputs`, then the gradients of `wrt`."""

    plan: Plan
    outputs: tuple[int, ...]
    wrt: tuple[int, ...]
    disconnected: tuple[int, ...]
    cached: bool = False


class Compiler:
    """Makes plans and keeps the most recently used: at most `capacity`, of at most `bytes` in all.

    May be shared by threads.
    """

    def __init__(self, limits: Limits, capacity: int = 256, bytes: int = 256 << 20) -> None:
        self.limits = limits
        self.capacity = capacity
        self.bytes = bytes
        self._plans: OrderedDict[Hashable, Compiled] = OrderedDict()
        self._held = 0
        self._lock = Lock()

    def forward(
        self,
        program: Program,
        types: Types,
        outputs: Sequence[int] | None = None,
        deadline: Deadline = NO_DEADLINE,
    ) -> Compiled:
        """The plan for the values of `outputs` (default: the last node). Raises EngineError."""
        return self._compile(program, types, forward_request(program, outputs), deadline)

    def gradients(
        self,
        program: Program,
        types: Types,
        of: int | None = None,
        wrt: Sequence[int] | None = None,
        outputs: Sequence[int] | None = None,
        cotangent: TensorType | None = None,
        deadline: Deadline = NO_DEADLINE,
    ) -> Compiled:
        """The plan for the values of `outputs` and the gradients of `of` with respect to `wrt`.

        Defaults: the last node, all parameters, and the value of `of`. `cotangent` is the type of the array that
        will be fed under COTANGENT. Raises EngineError.
        """
        request = gradients_request(program, of, wrt, outputs, cotangent)
        return self._compile(program, types, request, deadline)

    def _compile(self, program: Program, types: Types, request: Request, deadline: Deadline) -> Compiled:
        name = (program.digest, frozenset(types.items()), request)
        known = self._recall(name)
        if known is not None:
            return known
        made = compile_request(program, types, request, self.limits, deadline)
        self._remember(name, made)
        return made

    def _recall(self, name: Hashable) -> Compiled | None:
        with self._lock:
            known = self._plans.get(name)
            if known is None:
                return None
            self._plans.move_to_end(name)
            return replace(known, cached=True)

    def _remember(self, name: Hashable, made: Compiled) -> None:
        with self._lock:
            if name in self._plans:
                return
            self._plans[name] = made
            self._held += made.plan.nbytes
            while self._plans and (len(self._plans) > self.capacity or self._held > self.bytes):
                _, oldest = self._plans.popitem(last=False)
                self._held -= oldest.plan.nbytes


def compile_request(
    program: Program, types: Types, request: Request, limits: Limits, deadline: Deadline = NO_DEADLINE
) -> Compiled:
    """Build, differentiate, optimise and plan, in this order. Raises EngineError."""
    builder, values = program.build(types, request.roots, deadline, request.wrt)
    typed = builder.graph([values[root] for root in request.roots])
    expanded = expand_grad(typed, limits, deadline)
    writing = Builder(limits, deadline, list(expanded.nodes))
    placed = {root: writing.value(i) for root, i in zip(request.roots, expanded.outputs, strict=True)}
    gradients = _gradients(writing, program, request, placed)
    results = [placed[i] for i in request.outputs]
    results += [placed[x].full_like(0.0) if g is None else g for x, g in gradients.items()]
    plan = make_plan(optimise(writing.graph(results), deadline), limits, deadline)
    return Compiled(plan, request.outputs, request.wrt, tuple(x for x, g in gradients.items() if g is None))


def _gradients(
    builder: Builder, program: Program, request: Request, placed: Mapping[int, Value]
) -> dict[int, Value | None]:
    if request.of is None:
        return {}
    for role, nodes in (("of", (request.of,)), ("wrt", request.wrt)):
        for node in nodes:
            _check_float(program, role, node, placed[node].type)
    seed = _seed(builder, program, request, placed[request.of])
    found = vjp(builder, [(placed[request.of], seed)], [placed[i] for i in request.wrt])
    return dict(zip(request.wrt, found, strict=True))


def _check_float(program: Program, role: str, node: int, type: TensorType) -> None:
    if not type.is_float:
        wrong = NotDifferentiable(
            f"{role} names this node, whose dtype {type.dtype.name} has no derivatives",
            expected="a float dtype",
            got=type.dtype.name,
        )
        raise program.statements[node].located(wrong, node)


def _seed(builder: Builder, program: Program, request: Request, of: Value) -> Value:
    """The cotangent that reverse mode starts from: fed, or one."""
    try:
        _check_seed(request.cotangent, of.type)
    except EngineError as error:
        assert request.of is not None
        raise program.statements[request.of].located(error, request.of) from None
    return of.full_like(1.0) if request.cotangent is None else builder.leaf(request.cotangent, COTANGENT)


def _check_seed(cotangent: TensorType | None, of: TensorType) -> None:
    if cotangent is not None:
        require_type(cotangent, of, "its cotangent")
    elif of.size != 1:
        shape = show_shape(of.shape)
        raise NonScalarOutput(
            f"has shape {shape}: give a cotangent of that shape, or reduce it to one element (sum, mean)",
            expected="one element",
            got=shape,
        )
