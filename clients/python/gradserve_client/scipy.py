"""The bridge to SciPy: recorded functions in the form that its optimisers and integrators expect."""

from __future__ import annotations

import operator
from typing import Any, NamedTuple

import numpy as np

from gradserve_client.recording.function import Function
from gradserve_client.tensors import Array


class Objective:
    """A function of a vector that returns one float, for `scipy.optimize.minimize`:

        objective = Objective(gs.function(rosen, client=client))
        minimize(objective.fun, x0, jac=objective.jac, hess=objective.hess, method="trust-exact")

    `f` takes the vector, of shape (n,), then the `args` of `minimize`. `fun` computes value and gradient in one call,
    and `jac` returns that gradient if it is asked for the same point. For a method that uses no gradient, pass `f`
    itself as `fun`.
    """

    def __init__(self, f: Function) -> None:
        self._f = f
        self._latest: Evaluation | None = None

    def fun(self, x: Array, *args: Any) -> float:
        """Return the value at x."""
        value, gradient = self._f.value_and_grad(x, *args)
        self._latest = Evaluation(x.copy(), args, gradient)
        return float(value)

    def jac(self, x: Array, *args: Any) -> Array:
        """Return the gradient at x, of shape (n,)."""
        if self._latest is not None and self._latest.is_at(x, args):
            return self._latest.gradient
        gradient: Array = self._f.grad(x, *args)
        return gradient

    def hess(self, x: Array, *args: Any) -> Array:
        """Return the Hessian at x, of shape (n, n)."""
        hessian: Array = self._f.hessian(x, *args)
        return hessian

    def hessp(self, x: Array, p: Array, *args: Any) -> Array:
        """Return the product of the Hessian at x and the vector p, of shape (n,), without computing the Hessian."""
        product: Array = self._f.hvp(x, *args, vectors=p)
        return product


class Evaluation(NamedTuple):
    """A point, the remaining arguments, and the gradient there."""

    x: Array
    args: tuple[Any, ...]
    gradient: Array

    def is_at(self, x: Array, args: tuple[Any, ...]) -> bool:
        """Return whether it belongs to this point and these arguments. Arguments are compared by identity."""
        same_args = len(args) == len(self.args) and all(map(operator.is_, args, self.args))
        return same_args and np.array_equal(x, self.x)


class Residuals:
    """A function of a vector that returns a vector, for `scipy.optimize.least_squares`:

    residuals = Residuals(gs.function(misfit, client=client))
    least_squares(residuals.fun, x0, jac=residuals.jac, args=(t, y))
    """

    def __init__(self, f: Function) -> None:
        self._f = f

    def fun(self, x: Array, *args: Any) -> Array:
        """Return the residuals at x, of shape (m,)."""
        values: Array = self._f.value(x, *args)
        return values

    def jac(self, x: Array, *args: Any) -> Array:
        """Return the Jacobian at x, of shape (m, n)."""
        jacobian: Array = self._f.jacobian(x, *args)
        return jacobian


class System:
    """The right-hand side f(t, y) of a system of ordinary differential equations, for `scipy.integrate.solve_ivp`:

    system = System(gs.function(oregonator, client=client))
    solve_ivp(system.fun, (0.0, 360.0), y0, method="BDF", jac=system.jac)
    """

    def __init__(self, f: Function) -> None:
        self._f = f

    def fun(self, t: float, y: Array, *args: Any) -> Array:
        """Return the derivative of y with respect to t, of shape (n,)."""
        derivatives: Array = self._f.value(float(t), y, *args)
        return derivatives

    def jac(self, t: float, y: Array, *args: Any) -> Array:
        """Return the Jacobian with respect to y, of shape (n, n)."""
        jacobian: Array = self._f.jacobian(float(t), y, *args, wrt=1)
        return jacobian
