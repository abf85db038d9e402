"""Programs with incomplete gamma and beta functions."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import torch

from clients.python.tests.programs.program import Arrays, Lacking, Program

_FAILED = np.array([0.4, 1.3, 0.8, 2.1, 0.2])
_CENSORED = np.array([2.5, 3.0, 1.7])
_BEFORE = np.array([0.5, 1.1])


class Survival(Program):
    """The negative log likelihood of lifetimes with a gamma distribution: observed, right-censored and left-censored.

    PyTorch has no gradient of the incomplete gamma functions with respect to their shape.
    """

    leaves: ClassVar[Arrays] = {"shape": np.array(1.7), "rate": np.array(0.9)}
    lacking: ClassVar[Lacking] = {"torch": frozenset({"shape"})}

    @staticmethod
    def graph(g: Any, shape: Any, rate: Any) -> tuple[Any, ...]:
        failed, censored, before = (g.constant(each) for each in (_FAILED, _CENSORED, _BEFORE))
        density = shape * rate.log() - shape.lgamma() + (shape - 1.0) * failed.log() - rate * failed
        longer, shorter = shape.igammac(rate * censored), shape.igamma(rate * before)
        return -density.sum() - longer.log().sum() - shorter.log().sum(), longer, shorter

    @staticmethod
    def by_torch(shape: Any, rate: Any) -> tuple[Any, ...]:
        failed, censored, before = (torch.from_numpy(each) for each in (_FAILED, _CENSORED, _BEFORE))
        density = shape * rate.log() - torch.lgamma(shape) + (shape - 1) * failed.log() - rate * failed
        fixed = shape.detach()
        longer, shorter = torch.special.gammaincc(fixed, rate * censored), torch.special.gammainc(fixed, rate * before)
        return -density.sum() - longer.log().sum() - shorter.log().sum(), longer, shorter

    @staticmethod
    def by_jax(shape: Any, rate: Any) -> tuple[Any, ...]:
        density = shape * jnp.log(rate) - jax.lax.lgamma(shape) + (shape - 1) * np.log(_FAILED) - rate * _FAILED
        longer = jax.scipy.special.gammaincc(shape, rate * _CENSORED)
        shorter = jax.scipy.special.gammainc(shape, rate * _BEFORE)
        return -density.sum() - jnp.log(longer).sum() - jnp.log(shorter).sum(), longer, shorter

    @staticmethod
    def by_mpmath(shape: Any, rate: Any) -> Any:
        total = mpmath.mpf(0)
        for t in map(mpmath.mpf, _FAILED):
            total += shape * mpmath.log(rate) - mpmath.loggamma(shape) + (shape - 1) * mpmath.log(t) - rate * t
        for t in map(mpmath.mpf, _CENSORED):
            total += mpmath.log(mpmath.gammainc(shape, rate * t, mpmath.inf, regularized=True))
        for t in map(mpmath.mpf, _BEFORE):
            total += mpmath.log(mpmath.gammainc(shape, 0, rate * t, regularized=True))
        return -total


_BINS = np.array([4.0, 9.0, 6.0, 2.0])


class BetaBins(Program):
    """The negative log likelihood of counts in bins of a beta distribution with learned edges.

    JAX has no gradient of the incomplete beta function with respect to its shapes, and PyTorch lacks the function.
    """

    leaves: ClassVar[Arrays] = {"a": np.array(1.6), "b": np.array(2.3), "edges": np.array([0.2, 0.45, 0.7])}
    lacking: ClassVar[Lacking] = {"jax": frozenset({"a", "b"}), "torch": frozenset({"a", "b", "edges"})}

    @staticmethod
    def graph(g: Any, a: Any, b: Any, edges: Any) -> tuple[Any, ...]:
        below = g.cat(g.constant(np.zeros(1)), a.betainc(b, edges), g.constant(np.ones(1)), axis=0)
        inside = below.slice(starts=[1]) - below.slice(stops=[4])
        return -(g.constant(_BINS) * inside.log()).sum(), inside

    @staticmethod
    def by_jax(a: Any, b: Any, edges: Any) -> tuple[Any, ...]:
        below = jax.scipy.special.betainc(jax.lax.stop_gradient(a), jax.lax.stop_gradient(b), edges)
        inside = jnp.diff(jnp.concatenate([jnp.zeros(1), below, jnp.ones(1)]))
        return -(_BINS * jnp.log(inside)).sum(), inside

    @staticmethod
    def by_mpmath(a: Any, b: Any, edges: Any) -> Any:
        below = [mpmath.mpf(0), *(mpmath.betainc(a, b, 0, x, regularized=True) for x in edges), mpmath.mpf(1)]
        inside = [after - before for before, after in pairwise(below)]
        return -sum(count * mpmath.log(each) for count, each in zip(_BINS, inside, strict=True))
