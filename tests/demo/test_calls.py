"""The examples of the calls, each run as a user does and compared with values computed without gradserve."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from math import exp, factorial, sin
from pathlib import Path
from types import ModuleType

import httpx
import numpy as np
import pytest

from examples.server import running_server
from tests.docs.marked import ROOT, blocks

pytestmark = pytest.mark.slow

NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e[+-]\d+)?")


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with running_server("--device", "cpu") as address:
        yield address


class Output:
    """The output of an example."""

    def __init__(self, name: str, url: str, *options: str) -> None:
        command = [sys.executable, ROOT / "examples" / f"{name}.py", "--url", url, *options]
        run = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
        assert run.returncode == 0, run.stderr
        self.lines = run.stdout.splitlines()

    def text(self, label: str) -> str:
        """The rest of the line that starts with `label`."""
        (line,) = [line for line in self.lines if line.startswith(label)]
        return line.removeprefix(label)

    def numbers(self, label: str) -> list[float]:
        """The numbers in that line."""
        return [float(number) for number in NUMBER.findall(self.text(label))]


def test_examples_draw_the_pictures_of_the_guide(posterior: Output, epidemic: Output) -> None:
    """Words and scales are the same; the lines may differ in a last digit."""
    for printed in (posterior, epidemic):
        path = Path(printed.text("picture: "))
        drawn, shown = (words(file) for file in (path, ROOT / "docs/guide/calls" / path.name))
        assert drawn == shown
        assert len(drawn) > 10


def words(picture: Path) -> list[str]:
    """The text in a picture."""
    return re.findall(r"<text[^>]*>([^<]+)</text>", picture.read_text(encoding="utf-8"))


def test_example_starts_its_own_server() -> None:
    run = subprocess.run(
        [sys.executable, ROOT / "examples/pendulum.py"], capture_output=True, text=True, timeout=300, check=False
    )
    assert run.returncode == 0, run.stderr
    assert "the clock loses" in run.stdout


def test_registered_finds_keplers_law(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    registered = module("registered", monkeypatch)
    b, a = np.polyfit(np.log(registered.DISTANCE), np.log(registered.PERIOD), 1)
    printed = Output("registered", url)
    assert printed.numbers("T = ") == pytest.approx([exp(a), b], abs=1e-4)
    assert b == pytest.approx(1.5, abs=1e-3), "Kepler's third law"
    graph, step = printed.numbers("bytes of ")
    assert graph > 100 * step
    assert httpx.get(url + "/v1/graphs").json() == {"graphs": []}


def test_hvp_newton_finds_the_minimum(url: str) -> None:
    from scipy.optimize import minimize
    from sklearn.datasets import load_breast_cancer

    x, y = load_breast_cancer(return_X_y=True)
    x = np.column_stack([(x - x.mean(axis=0)) / x.std(axis=0), np.ones(len(x))])

    def loss(w: np.ndarray) -> float:
        z = x @ w
        return float(np.mean(np.logaddexp(0, z) - y * z) + 0.005 * np.sum(w[:-1] ** 2))

    def slope(w: np.ndarray) -> np.ndarray:
        return x.T @ (1 / (1 + np.exp(-x @ w)) - y) / len(y) + 0.01 * np.append(w[:-1], 0)

    least = minimize(loss, np.zeros(31), jac=slope, method="BFGS", options={"gtol": 1e-9})
    printed = Output("newton", url, "--steps", "20")
    assert printed.numbers("loss: ") == [pytest.approx(least.fun, rel=1e-10)]
    assert printed.numbers("right: ")[0] == pytest.approx(np.mean((x @ least.x > 0) == y), abs=1e-4)
    steps, length = printed.numbers("Newton-CG: ")
    slow, left = printed.numbers("gradient descent: ")
    assert length < 1e-9
    assert steps < slow
    assert left > 1e-3, "descent is not there yet"


def module(name: str, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """Import an example as a module; the examples that it imports are beside it."""
    monkeypatch.syspath_prepend(str(ROOT / "examples"))
    return import_module(name)


@pytest.fixture(scope="module")
def posterior(url: str) -> Output:
    return Output("laplace", url)


class TestLaplace:
    """The posterior of the enzyme."""

    CONCENTRATION = np.repeat([0.02, 0.06, 0.11, 0.22, 0.56, 1.10], 2)
    RATE = np.array([76, 47, 97, 107, 123, 139, 159, 152, 191, 201, 207, 200.0])

    def test_mode_matches_the_published_fit(self, posterior: Output) -> None:
        """Bates and Watts (1988), section 2.2: 212.7 and 0.06412; σ² here is the likelihood's, divided by 12."""
        v, k, log_sigma = (posterior.numbers(f"{name}: ")[0] for name in ("V", "K", "log σ"))
        assert v == pytest.approx(212.7, abs=0.05)
        assert k == pytest.approx(0.06412, abs=5e-6)
        assert np.exp(log_sigma) == pytest.approx(10.93 * np.sqrt(10 / 12), abs=0.005)

    def test_covariance_is_the_inverse_hessian(self, posterior: Output) -> None:
        v, k, log_sigma = (posterior.numbers(f"{name}: ")[0] for name in ("V", "K", "log σ"))
        covariance = np.linalg.inv(self.hessian(v, k, np.exp(log_sigma)))
        deviations = [posterior.numbers(f"{name}: ")[1] for name in ("V", "K", "log σ")]
        assert deviations == pytest.approx(np.sqrt(np.diag(covariance)), rel=2e-3)
        row = np.array([0.4 / (k + 0.4), -v * 0.4 / (k + 0.4) ** 2, 0])
        assert posterior.numbers("rate at 0.4: ") == pytest.approx(
            [v * 0.4 / (k + 0.4), np.sqrt(row @ covariance @ row)], rel=1e-4
        )

    def hessian(self, v: float, k: float, sigma: float) -> np.ndarray:
        """Hessian of Σ r²/(2σ²) + 12 log σ, r = rate − V c/(K + c)."""
        c, r = self.CONCENTRATION, self.RATE - v * self.CONCENTRATION / (k + self.CONCENTRATION)
        first = np.stack([c / (k + c), -v * c / (k + c) ** 2])
        second = np.array([[0 * c, -c / (k + c) ** 2], [-c / (k + c) ** 2, 2 * v * c / (k + c) ** 3]])
        h = np.zeros((3, 3))
        h[:2, :2] = (first @ first.T - second @ r) / sigma**2
        h[:2, 2] = h[2, :2] = 2 * (first @ r) / sigma**2
        h[2, 2] = 2 * (r @ r) / sigma**2
        return h


@pytest.fixture(scope="module")
def epidemic(url: str) -> Output:
    return Output("epidemic", url, "--steps", "8")


class TestEpidemic:
    """The infection curve, compared with SciPy's integration of the equation and its sensitivities."""

    ILL = np.array([3, 8, 26, 76, 225, 298, 258, 233, 189, 128, 68, 29, 14, 4.0])

    def solved(self, beta: float, gamma: float) -> np.ndarray:
        """i, ∂i/∂β and ∂i/∂γ on each day, [3, 14], in boys."""
        from scipy.integrate import solve_ivp

        def slope(_: float, state: np.ndarray) -> np.ndarray:
            s, i, s_b, i_b, s_g, i_g = state
            d_b, d_g = beta * (s_b * i + s * i_b), beta * (s_g * i + s * i_g)
            new = beta * s * i
            return np.array(
                [-new, new - gamma * i, -s * i - d_b, s * i + d_b - gamma * i_b, -d_g, d_g - gamma * i_g - i]
            )

        start = [1 - 3 / 763, 3 / 763, 0, 0, 0, 0]
        run = solve_ivp(slope, (0, 13), start, t_eval=range(14), rtol=1e-11, atol=1e-13, method="DOP853")
        return 763 * run.y[[1, 3, 5]]

    def test_sensitivities(self, epidemic: Output) -> None:
        """The method is of fourth order: at 4 steps a day the errors are 14 times as large."""
        day, beta, gamma, *sensitivities = epidemic.numbers("day ")
        assert (day, beta, gamma) == (7, 1.8, 0.5)
        assert sensitivities == pytest.approx(self.solved(beta, gamma)[:, 7], rel=2e-5)

    def test_fit(self, epidemic: Output) -> None:
        from scipy.optimize import least_squares

        best = least_squares(lambda rates: self.solved(*rates)[0] - self.ILL, [1.8, 0.5], xtol=1e-12)
        fitted, errors = zip(*(epidemic.numbers(f"{name}: ") for name in "βγ"), strict=True)
        assert fitted == pytest.approx(best.x, rel=5e-6)
        covariance = np.linalg.inv(best.jac.T @ best.jac) * 2 * best.cost / 12
        assert errors == pytest.approx(np.sqrt(np.diag(covariance)), abs=1e-4)


def test_batch_samples_the_posterior(url: str) -> None:
    """Means of μ and τ, within the error of 64 chains; the truth by quadrature over τ, all else exact."""
    y, sigma = np.array([28, 8, -3, 7, -1, 1, 18, 12.0]), np.array([15, 10, 16, 11, 9, 11, 10, 18.0])
    tau = np.linspace(0, 200, 100_001)
    marginal = sigma**2 + tau[:, None] ** 2
    precision = (1 / marginal).sum(axis=1) + 1 / 25
    mu = (y / marginal).sum(axis=1) / precision
    log = -np.log(marginal).sum(axis=1) - np.log(precision) - (y**2 / marginal).sum(axis=1) + precision * mu**2
    weights = np.exp((log - log.max()) / 2) / (1 + (tau / 5) ** 2)
    truth = (weights @ mu / weights.sum(), weights @ tau / weights.sum())

    printed = Output("schools", url, "--count", "100")
    for name, right in zip("μτ", truth, strict=True):
        mean, error, r_hat = printed.numbers(f"{name}: ")
        assert error < 0.1
        assert abs(mean - right) < 5 * error
        assert r_hat < 1.05


def test_gradients_fit_a_gaussian_process(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Likelihood, maximum and prediction, compared with scikit-learn at the printed hyperparameters."""
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

    example = module("gaussian_process", monkeypatch)
    times, y = example.YEARS[:, None], example.FLOW
    printed = Output("gaussian_process", url)
    a, length, noise = (printed.numbers(f"{name}: ")[0] for name in ("amplitude", "length", "noise"))
    kernel = ConstantKernel(a**2) * RBF(length) + WhiteKernel(noise**2)
    peer = GaussianProcessRegressor(kernel, optimizer=None).fit(times, y - y.mean())
    likelihood, slope = peer.log_marginal_likelihood(peer.kernel_.theta, eval_gradient=True)
    assert printed.numbers("log-likelihood: ")[0] == pytest.approx(likelihood, rel=1e-8)
    assert np.abs(slope).max() < 1e-3, "not at the maximum"
    peer.kernel_.k2.noise_level = 1e-10  # the function, not a measurement of it
    mean, deviation = peer.predict(np.array([[1971.0]]), return_std=True)
    _, flow, flow_deviation = printed.numbers("flow in ")
    assert [flow, flow_deviation] == pytest.approx([y.mean() + mean[0], deviation[0]], abs=2e-3)


def test_grad_nodes_solve_the_heat_equation(url: str) -> None:
    assert Output("heat", url).numbers("largest error: ")[0] < 2e-2


def test_vjp_gives_the_adjoint(url: str) -> None:
    """Rows K⁻ᵀ e; with respect to a bond's conductivity: −(difference of the adjoint)(difference of T)."""
    n = 60
    d = (n + 1) * np.diff(np.eye(n + 2), axis=0)[:, 1:-1]
    k = d.T @ (np.where(np.arange(n + 1) < n // 2, 1.0, 4.0)[:, None] * d)
    t = np.linalg.solve(k, 10 * np.sin(np.pi * np.arange(1, n + 1) / (n + 1)))
    printed = Output("adjoint", url)
    for cell in (10, 30, 45):
        adjoint = np.linalg.solve(k.T, np.eye(n)[cell])
        truth = [t[cell], -np.sum((d @ adjoint) * (d @ t)), adjoint.sum()]
        assert printed.numbers(f"cell {cell}: ") == pytest.approx(truth, rel=1e-8)


def test_jvp_gives_the_change_of_the_period(url: str) -> None:
    """T = 4 √(l/g) K(m), m = sin²(a/2), with the complete elliptic integral and its derivative in closed form."""
    from scipy.special import ellipe, ellipk

    length, g, a = 0.994, 9.81, np.radians(4)
    m, root = np.sin(a / 2) ** 2, 4 * np.sqrt(length / g)
    slope = (ellipe(m) - (1 - m) * ellipk(m)) / (2 * m * (1 - m)) * np.sin(a) / 2
    change = root * (ellipk(m) * 10 * 19e-6 / 2 + slope * np.radians(0.1))
    printed = Output("pendulum", url)
    assert printed.numbers("period: ") == pytest.approx([root * ellipk(m)], rel=1e-11)
    assert printed.numbers("change: ") == pytest.approx([change], rel=1e-8)
    assert printed.numbers("the clock ") == [pytest.approx(86_400 * change / (root * ellipk(m)), abs=0.005)]


def test_plan_predicts_the_peak(url: str) -> None:
    printed = Output("planning", url)
    rows, predicted, measured = printed.numbers("peak of ")
    assert (rows, predicted) == (1024, measured)
    assert measured > 4 * 1024 * 64, "less than one layer of it"
    accepted = [NUMBER.findall(line) for line in printed.lines if line.endswith("FLOPs") and "refused" not in line]
    (refused,) = [NUMBER.findall(line) for line in printed.lines if "refused" in line]
    last, most = [int(n) for n in accepted[-1]], [int(n) for n in refused]
    assert last[1] <= most[1]
    assert last[2] <= most[2]
    assert 4 * last[1] > 0.9 * most[1] or 4 * last[2] > 0.9 * most[2], "the next would be over a limit"


def test_check_finds_the_mistake(url: str) -> None:
    printed = Output("certify", url)
    assert printed.text("Process: ").startswith("passed")
    assert printed.text("Mistaken: ").startswith("failed")
    assert printed.text("  node ").startswith("4: stop_gradient: ")


def test_differentiate_gives_a_series(url: str) -> None:
    """exp(sin x) = 1 + x + x²/2 − x⁴/8 − x⁵/15 − x⁶/240 + x⁷/90 + 31 x⁸/5760 + …; times k!, each is a whole number."""
    printed = Output("taylor", url)
    whole = [c * factorial(k) for k, c in enumerate(printed.numbers("coefficients: "))]
    assert whole == pytest.approx([1, 1, 1, 0, -3, -8, -3, 56, 217], abs=1e-7)
    series, exact = printed.numbers("series at 1/2: ")[-2:]
    assert exact == pytest.approx(exp(sin(0.5)), abs=1e-6)
    assert series == pytest.approx(exact, abs=1e-5)


def test_binary_carries_the_same_bits_in_fewer_bytes(url: str) -> None:
    printed = Output("binary", url, "--kilobytes", "256")
    assert printed.text("the same bits: ") == "True"
    numbers, base64, binary = (printed.numbers(f"{name}: ")[0] for name in ("JSON numbers", "base64", "safetensors"))
    assert binary < base64 < numbers
    data = 2 * 256 * 1024
    assert data < binary < data + 2000, "the tensors, and little more"
    array = np.random.default_rng(0).normal(size=256 * 256).astype(np.float32)
    assert printed.numbers("largest gradient: ") == [pytest.approx(2 * array.max() / array.size, rel=1e-6)]


def test_hundred_line_client_follows_the_first_page(url: str) -> None:
    run = subprocess.run(
        [sys.executable, ROOT / "examples/client.py", url], capture_output=True, text=True, timeout=300, check=False
    )
    assert run.stdout == blocks("docs/guide/first-gradient.md", "output")[0], run.stderr


def test_hundred_line_client_has_every_call(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The client sends tensors of several nodes, receives blocks of two nodes, and raises the server's message."""
    plain = module("client", monkeypatch)
    g = plain.Graph()
    x, w = g.input(), g.parameter()
    y = g.op("mul", x, g.op("square", w))
    loss = g.op("sum", y)
    feeds = {x: np.array([1.0, 2.0]), w: np.array(3.0)}
    with plain.Client(url) as client:
        hessian = client.compute("hessian", g, feeds, of=loss)["hessian"]
        rows = client.compute("vjp", g, feeds, outputs=[y], cotangents={y: np.array([1.0, 10.0])})["gradients"]
        with pytest.raises(RuntimeError, match=r"^missing_feed: "):
            client.compute("gradients", g, {})
    assert {key: block.tolist() for key, block in hessian.items()} == {(w, w): 6.0}
    assert {key: row.tolist() for key, row in rows.items()} == {w: 126.0}
