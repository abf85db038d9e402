"""The bridge to SciPy: recorded functions as what its optimisers and integrators take."""

from __future__ import annotations

import operator
from typing import Any, NamedTuple

import numpy as np

from gradserve_client.recording.function import Function
from gradserve_client.tensors import Array


class Objective:
    """A function of a vector that gives one float, for `scipy.optimize.minimize`:

        objective = Objective(gs.function(rosen, client=client))
        minimize(objective.fun, x0, jac=objective.jac, hess=objective.hess, method="trust-exact")

    What `f` takes beside the vector, `minimize` is given as `args`. A value comes with its gradient, in one call, and
    `jac` gives that at the same point. Where no gradient is wanted, `f` itself is the `fun`.
    """

    def __init__(self, f: Function) -> None:
        self._f = f
        self._latest: Evaluation | None = None

    def fun(self, x: Array, *args: Any) -> float:
        """The value."""
        value, gradient = self._f.value_and_grad(x, *args)
        self._latest = Evaluation(x.copy(), args, gradient)
        return float(value)

    def jac(self, x: Array, *args: Any) -> Array:
        """The gradient."""
        if self._latest is not None and self._latest.is_at(x, args):
            return self._latest.gradient
        gradient: Array = self._f.grad(x, *args)
        return gradient

    def hess(self, x: Array, *args: Any) -> Array:
        """The Hessian."""
        hessian: Array = self._f.hessian(x, *args)
        return hessian

    def hessp(self, x: Array, p: Array, *args: Any) -> Array:
        """The Hessian times a vector, without the Hessian."""
        product: Array = self._f.hvp(x, *args, vectors=p)
        return product


class Evaluation(NamedTuple):
    """The gradient that came with a value, and where that was."""

    x: Array
    args: tuple[Any, ...]
    gradient: Array

    def is_at(self, x: Array, args: tuple[Any, ...]) -> bool:
        """Whether it was at this point, with the same arguments, which are compared by identity."""
        same = len(args) == len(self.args) and all(map(operator.is_, args, self.args))
        return same and np.array_equal(x, self.x)


class Residuals:
    """A function of a vector that gives a vector, for `scipy.optimize.least_squares`:

    residuals = Residuals(gs.function(misfit, client=client))
    least_squares(residuals.fun, x0, jac=residuals.jac, args=(t, y))
    """

    def __init__(self, f: Function) -> None:
        self._f = f

    def fun(self, x: Array, *args: Any) -> Array:
        """The values."""
        values: Array = self._f.value(x, *args)
        return values

    def jac(self, x: Array, *args: Any) -> Array:
        """The Jacobian."""
        jacobian: Array = self._f.jacobian(x, *args)
        return jacobian


class System:
    """The right-hand side of ordinary differential equations, f(t, y), for `scipy.integrate.solve_ivp`:

    system = System(gs.function(oregonator, client=client))
    solve_ivp(system.fun, (0.0, 360.0), y0, method="BDF", jac=system.jac)
    """

    def __init__(self, f: Function) -> None:
        self._f = f

    def fun(self, t: float, y: Array, *args: Any) -> Array:
        """The derivatives of y by t."""
        derivatives: Array = self._f.value(float(t), y, *args)
        return derivatives

    def jac(self, t: float, y: Array, *args: Any) -> Array:
        """The Jacobian by y."""
        jacobian: Array = self._f.jacobian(float(t), y, *args, wrt=1)
        return jacobian
