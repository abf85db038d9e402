"""Programs with matrix factors and matrix functions."""

from __future__ import annotations

from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
import torch
from jax.scipy.linalg import expm, lu_factor, lu_solve, solve_triangular

from clients.python.tests.programs.program import Arrays, Program, normal, uniform


class PrincipalComponents(Program):
    """The loss of scaled data in two principal components of five, and the spread of the variances."""

    leaves: ClassVar[Arrays] = {"data": normal(1, 12, 5), "scale": uniform(2, 0.5, 2.0, 5)}

    @staticmethod
    def graph(_: Any, data: Any, scale: Any) -> tuple[Any, ...]:
        x = data * scale
        x = x - x.mean(axes=[0], keepdims=True)
        parts = (x.transpose() @ x / len(PrincipalComponents.leaves["data"])).eigh()
        variances, directions = parts.get_output(0), parts.get_output(1)
        top = directions.slice(starts=[0, 3])
        lost = (x - x @ top @ top.transpose()).square().sum()
        spread = variances.select(4).log() - variances.select(0).log()
        return lost + 0.1 * spread, variances

    @staticmethod
    def by_torch(data: Any, scale: Any) -> tuple[Any, ...]:
        x = data * scale
        x = x - x.mean(0, keepdim=True)
        variances, directions = torch.linalg.eigh(x.T @ x / len(x))
        top = directions[:, -2:]
        lost = (x - x @ top @ top.T).square().sum()
        return lost + 0.1 * (variances[-1] / variances[0]).log(), variances

    @staticmethod
    def by_jax(data: Any, scale: Any) -> tuple[Any, ...]:
        x = data * scale
        x = x - x.mean(0, keepdims=True)
        variances, directions = jnp.linalg.eigh(x.T @ x / len(x))
        top = directions[:, -2:]
        lost = jnp.square(x - x @ top @ top.T).sum()
        return lost + 0.1 * jnp.log(variances[-1] / variances[0]), variances


_SEEN = uniform(3, 0, 1, 7, 5) < 0.6
_RATINGS = normal(4, 7, 5)
_LEAST = 0.8


class NuclearNorm(Program):
    """Matrix completion: the nuclear norm, and the error of known entries after singular values are shrunk."""

    leaves: ClassVar[Arrays] = {"matrix": normal(5, 7, 5)}

    @staticmethod
    def graph(g: Any, matrix: Any) -> tuple[Any, ...]:
        parts = matrix.svd()
        u, s, vh = (parts.get_output(i) for i in range(3))
        shrunk = (u * (s - _LEAST).relu().unsqueeze(axes=[0])) @ vh
        off = g.constant(_SEEN).where(shrunk - g.constant(_RATINGS), g.constant(0.0))
        return 0.5 * off.square().sum() + 0.3 * s.sum(), shrunk, s

    @staticmethod
    def by_torch(matrix: Any) -> tuple[Any, ...]:
        u, s, vh = torch.linalg.svd(matrix, full_matrices=False)
        shrunk = (u * torch.relu(s - _LEAST)) @ vh
        off = (shrunk - torch.from_numpy(_RATINGS))[torch.from_numpy(_SEEN)]
        return 0.5 * off.square().sum() + 0.3 * s.sum(), shrunk, s

    @staticmethod
    def by_jax(matrix: Any) -> tuple[Any, ...]:
        u, s, vh = jnp.linalg.svd(matrix, full_matrices=False)
        shrunk = (u * jax.nn.relu(s - _LEAST)) @ vh
        off = (shrunk - _RATINGS)[_SEEN]
        return 0.5 * jnp.square(off).sum() + 0.3 * s.sum(), shrunk, s


_TIMES = np.linspace(0, 3, 20)


class ExponentialFit(Program):
    """Least squares by QR: decays whose sizes are optimal for their rates; the loss is the residual."""

    leaves: ClassVar[Arrays] = {"rates": np.array([0.4, 1.3, 3.1]), "seen": np.exp(-_TIMES) + 0.1 * normal(6, 20)}

    @staticmethod
    def graph(g: Any, rates: Any, seen: Any) -> tuple[Any, ...]:
        decays = (g.constant(-_TIMES[:, None]) * rates).exp()
        parts = decays.qr()
        q, r = parts.get_output(0), parts.get_output(1)
        sizes = r.triangular_solve(q.transpose() @ seen, lower=False)
        return 0.5 * (seen - decays @ sizes).square().sum(), sizes

    @staticmethod
    def by_torch(rates: Any, seen: Any) -> tuple[Any, ...]:
        decays = torch.exp(torch.from_numpy(-_TIMES[:, None]) * rates)
        q, r = torch.linalg.qr(decays)
        sizes = torch.linalg.solve_triangular(r, (q.T @ seen)[:, None], upper=True)[:, 0]
        return 0.5 * (seen - decays @ sizes).square().sum(), sizes

    @staticmethod
    def by_jax(rates: Any, seen: Any) -> tuple[Any, ...]:
        decays = jnp.exp(-_TIMES[:, None] * rates)
        q, r = jnp.linalg.qr(decays)
        sizes = solve_triangular(r, q.T @ seen)
        return 0.5 * jnp.square(seen - decays @ sizes).sum(), sizes


class Regression(Program):
    """Weighted least squares, and leave-one-out errors from the diagonal of x x⁺."""

    leaves: ClassVar[Arrays] = {"x": normal(7, 10, 3), "y": normal(8, 10), "logits": 0.3 * normal(9, 10)}

    @staticmethod
    def graph(_: Any, x: Any, y: Any, logits: Any) -> tuple[Any, ...]:
        weights = logits.exp()
        a, b = x * weights.unsqueeze(axes=[1]), y * weights
        fitted = a.lstsq(b)
        leverage = (a * a.pinv().transpose()).sum(axes=[1])
        left_out = (b - a @ fitted) / (1.0 - leverage)
        return left_out.square().mean(), fitted, leverage

    @staticmethod
    def by_torch(x: Any, y: Any, logits: Any) -> tuple[Any, ...]:
        weights = logits.exp()
        a, b = x * weights[:, None], y * weights
        fitted = torch.linalg.lstsq(a, b[:, None]).solution[:, 0]
        leverage = (a * torch.linalg.pinv(a).T).sum(1)
        return ((b - a @ fitted) / (1 - leverage)).square().mean(), fitted, leverage

    @staticmethod
    def by_jax(x: Any, y: Any, logits: Any) -> tuple[Any, ...]:
        weights = jnp.exp(logits)
        a, b = x * weights[:, None], y * weights
        fitted = jnp.linalg.lstsq(a, b)[0]
        leverage = (a * jnp.linalg.pinv(a).T).sum(1)
        return jnp.square((b - a @ fitted) / (1 - leverage)).mean(), fitted, leverage


class GaussianProcess(Program):
    """The negative log likelihood of observations, from the eigendecomposition of the covariance."""

    leaves: ClassVar[Arrays] = {
        "places": uniform(10, 0, 3, 9, 2),
        "seen": normal(11, 9),
        "log_length": np.array(-0.4),
        "log_noise": np.array(-1.1),
    }

    @staticmethod
    def graph(_: Any, places: Any, seen: Any, log_length: Any, log_noise: Any) -> tuple[Any, ...]:
        offsets = (places.unsqueeze(axes=[1]) - places.unsqueeze(axes=[0])) / log_length.exp()
        parts = (-0.5 * offsets.square().sum(axes=[2])).exp().eigh()
        w, v = parts.get_output(0), parts.get_output(1)
        variances = w + (2.0 * log_noise).exp()
        turned = v.transpose() @ seen
        return 0.5 * (turned.square() / variances + variances.log()).sum(), v @ (turned / variances)

    @staticmethod
    def by_torch(places: Any, seen: Any, log_length: Any, log_noise: Any) -> tuple[Any, ...]:
        offsets = (places[:, None] - places[None]) / log_length.exp()
        w, v = torch.linalg.eigh(torch.exp(-0.5 * offsets.square().sum(2)))
        variances = w + torch.exp(2 * log_noise)
        turned = v.T @ seen
        return 0.5 * (turned.square() / variances + variances.log()).sum(), v @ (turned / variances)

    @staticmethod
    def by_jax(places: Any, seen: Any, log_length: Any, log_noise: Any) -> tuple[Any, ...]:
        offsets = (places[:, None] - places[None]) / jnp.exp(log_length)
        w, v = jnp.linalg.eigh(jnp.exp(-0.5 * jnp.square(offsets).sum(2)))
        variances = w + jnp.exp(2 * log_noise)
        turned = v.T @ seen
        return 0.5 * (jnp.square(turned) / variances + jnp.log(variances)).sum(), v @ (turned / variances)


_WAVES = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1], [-1, 1, 0]], float)
_NEAR = 2.0


class SlaterDeterminant(Program):
    """−log|ψ| of ten electrons in a box: a determinant of plane waves with backflow, and one of Gaussians.

    The first determinant is complex and comes as a logarithm; the second is a real number.
    """

    leaves: ClassVar[Arrays] = {
        "up": uniform(12, 0, 6, 5, 3),
        "down": uniform(13, 0, 3, 5, 3),
        "backflow": np.array(0.15),
        "centres": uniform(13, 0, 3, 5, 3) + 0.5 * normal(14, 5, 3),
    }

    @staticmethod
    def graph(g: Any, up: Any, down: Any, backflow: Any, centres: Any) -> tuple[Any, ...]:
        offsets = up.unsqueeze(axes=[1]) - up.unsqueeze(axes=[0])
        pushed = up + backflow * (offsets * (-offsets.square().sum(axes=[2], keepdims=True) / _NEAR).exp()).sum(
            axes=[1]
        )
        angle = pushed @ g.constant(_WAVES.T)
        waves = g.constant(np.zeros((5, 5))).make_complex(angle).exp()
        volume = waves.slogdet().get_output(1)
        squares = (down.unsqueeze(axes=[1]) - centres.unsqueeze(axes=[0])).square().sum(axes=[2])
        bound = (-0.5 * squares).exp().det()
        return -volume - bound.abs().log(), waves, bound

    @staticmethod
    def by_torch(up: Any, down: Any, backflow: Any, centres: Any) -> tuple[Any, ...]:
        offsets = up[:, None] - up[None]
        pushed = up + backflow * (offsets * torch.exp(-offsets.square().sum(2, keepdim=True) / _NEAR)).sum(1)
        waves = torch.exp(1j * (pushed @ torch.from_numpy(_WAVES.T)))
        volume = torch.linalg.slogdet(waves).logabsdet
        bound = torch.linalg.det(torch.exp(-0.5 * (down[:, None] - centres[None]).square().sum(2)))
        return -volume - bound.abs().log(), waves, bound

    @staticmethod
    def by_jax(up: Any, down: Any, backflow: Any, centres: Any) -> tuple[Any, ...]:
        offsets = up[:, None] - up[None]
        pushed = up + backflow * (offsets * jnp.exp(-jnp.square(offsets).sum(2, keepdims=True) / _NEAR)).sum(1)
        waves = jnp.exp(1j * (pushed @ _WAVES.T))
        volume = jnp.linalg.slogdet(waves).logabsdet
        bound = jnp.linalg.det(jnp.exp(-0.5 * jnp.square(down[:, None] - centres[None]).sum(2)))
        return -volume - jnp.log(jnp.abs(bound)), waves, bound


_COUNTS = np.random.default_rng(15).integers(1, 9, (3, 4, 4)).astype(float)
_OTHERS = 1.0 - np.eye(4)


class MarkovGenerator(Program):
    """The likelihood of state changes that were counted after three times, from the exponential of the rates."""

    leaves: ClassVar[Arrays] = {"logits": normal(16, 4, 4), "times": np.array([0.3, 1.0, 2.5])}

    @staticmethod
    def graph(g: Any, logits: Any, times: Any) -> tuple[Any, ...]:
        rates = logits.exp() * g.constant(_OTHERS)
        generator = rates - rates.sum(axes=[1], keepdims=True) * g.constant(np.eye(4))
        changes = (times.reshape(shape=[3, 1, 1]) * generator).matrix_exp()
        return -(g.constant(_COUNTS) * changes.log()).sum(), changes

    @staticmethod
    def by_torch(logits: Any, times: Any) -> tuple[Any, ...]:
        rates = logits.exp() * torch.from_numpy(_OTHERS)
        generator = rates - torch.diag(rates.sum(1))
        changes = torch.linalg.matrix_exp(times[:, None, None] * generator)
        return -(torch.from_numpy(_COUNTS) * changes.log()).sum(), changes

    @staticmethod
    def by_jax(logits: Any, times: Any) -> tuple[Any, ...]:
        rates = jnp.exp(logits) * _OTHERS
        generator = rates - jnp.diag(rates.sum(1))
        changes = expm(times[:, None, None] * generator)
        return -(_COUNTS * jnp.log(changes)).sum(), changes


class ImplicitSteps(Program):
    """Three implicit steps of a linear system, each solved with the same pivoted LU factors."""

    leaves: ClassVar[Arrays] = {
        "matrix": normal(17, 6, 6) + 0.2 * np.eye(6),
        "start": normal(18, 6),
        "force": normal(19, 6),
    }

    @staticmethod
    def graph(g: Any, matrix: Any, start: Any, force: Any) -> tuple[Any, ...]:
        parts = matrix.lu()
        permutation, lower, upper = (parts.get_output(i) for i in range(3))
        states = [start]
        for _ in range(3):
            moved = (states[-1] + force).gather(permutation)
            states.append(upper.triangular_solve(lower.triangular_solve(moved), lower=False))
        path = g.stack(*states[1:], axis=0)
        return path.square().sum().log(), path

    @staticmethod
    def by_torch(matrix: Any, start: Any, force: Any) -> tuple[Any, ...]:
        factors, pivots = torch.linalg.lu_factor(matrix)
        states = [start]
        for _ in range(3):
            states.append(torch.linalg.lu_solve(factors, pivots, (states[-1] + force)[:, None])[:, 0])
        path = torch.stack(states[1:])
        return path.square().sum().log(), path

    @staticmethod
    def by_jax(matrix: Any, start: Any, force: Any) -> tuple[Any, ...]:
        factors = lu_factor(matrix)
        states = [start]
        for _ in range(3):
            states.append(lu_solve(factors, states[-1] + force))
        path = jnp.stack(states[1:])
        return jnp.log(jnp.square(path).sum()), path
