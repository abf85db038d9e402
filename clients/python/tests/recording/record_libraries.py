"""Record functions of a library, and print the names of those whose values and gradients agree.

SciPy reads SCIPY_ARRAY_API when it is imported, so this is a program of its own.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ["SCIPY_ARRAY_API"] = "1"
sys.path.insert(0, str(Path(__file__).parents[2]))

import numpy as np

import gradserve_client as gs

RNG = np.random.default_rng(0)
X = RNG.standard_normal((5, 3))
POSITIVE = np.abs(X) + 0.1
Cases = dict[str, tuple[Callable[[Any], Any], Any]]


def scipy_cases() -> Cases:
    from scipy import optimize, special, stats

    return {
        "logsumexp": (lambda x: special.logsumexp(x, axis=1), X),
        "softmax": (lambda x: special.softmax(x, axis=0) ** 2, X),
        "log_softmax": (lambda x: special.log_softmax(x, axis=1), X),
        "rel_entr": (lambda x: special.rel_entr(x, 1.0 * x[::-1]), POSITIVE),
        "xlogy": (lambda x: special.xlogy(x, x), POSITIVE),
        "rosen": (optimize.rosen, X[:, 0]),
        "rosen_der": (optimize.rosen_der, X[:, 0]),
        "gmean": (lambda x: stats.gmean(x, axis=0), POSITIVE),
        "hmean": (stats.hmean, POSITIVE),
        "pmean": (lambda x: stats.pmean(x, 3), POSITIVE),
        "moment": (lambda x: stats.moment(x, 3), X),
        "skew": (stats.skew, X),
        "kurtosis": (stats.kurtosis, X),
        "zscore": (lambda x: stats.zscore(x) ** 3, X),
        "zmap": (lambda x: stats.zmap(x, x) ** 3, X),
        "variation": (stats.variation, POSITIVE),
        "sem": (stats.sem, X),
        "entropy": (stats.entropy, POSITIVE),
        "gstd": (stats.gstd, POSITIVE),
        "describe": (lambda x: stats.describe(x).kurtosis, X),
        "kstat": (lambda x: stats.kstat(x[:, 0], 3), X),
        "pearsonr": (lambda x: stats.pearsonr(x[:, 0], x[:, 1]).statistic, X),
        "ttest_1samp": (lambda x: stats.ttest_1samp(x, 0.0).statistic, X),
        "jarque_bera": (lambda x: stats.jarque_bera(x[:, 0]).statistic, X),
        "bartlett": (lambda x: stats.bartlett(x[:, 0], x[:, 1]).statistic, X),
        "directional_stats": (lambda x: stats.directional_stats(x).mean_resultant_length, X),
        "differential_entropy": (lambda x: stats.differential_entropy(x[:, 0]), X),
        "trim_mean": (lambda x: stats.trim_mean(x, 0.2), X),
    }


def array_api_extra_cases() -> Cases:
    import array_api_extra as xpx

    return {
        "cov": (lambda x: xpx.cov(x.T), X),
        "kron": (lambda x: xpx.kron(x, x), X),
        "sinc": (xpx.sinc, X),
        "pad": (lambda x: xpx.pad(x, 1), X),
        "create_diagonal": (lambda x: xpx.create_diagonal(x[:, 0]), X),
    }


def differences(f: Callable[[Any], Any], x: Any) -> Any:
    """The gradient of the sum, by central differences."""
    moves = 1e-6 * np.eye(x.size).reshape(x.size, *x.shape)
    return np.reshape([(np.sum(f(x + move)) - np.sum(f(x - move))) / 2e-6 for move in moves], x.shape)


def agrees(f: Callable[[Any], Any], x: Any, client: gs.Client, values: Any) -> bool:
    def total(x: Any) -> Any:
        return x.__array_namespace__().sum(f(x))

    try:
        value = gs.function(f, client=client, values=values)(x)
        gradient = gs.function(total, client=client, values=values).grad(x)
    except gs.RecordingError:
        return False
    near = np.allclose(gradient, differences(f, x), rtol=2e-4, atol=2e-6)
    return bool(np.allclose(value, f(x), rtol=1e-9)) and near


def main(url: str, library: str, values: str) -> None:
    cases = scipy_cases() if library == "scipy" else array_api_extra_cases()
    warnings.simplefilter("ignore")
    with gs.Client(url) as client:
        sys.stdout.write("\n".join(name for name, (f, x) in cases.items() if agrees(f, x, client, values)))


if __name__ == "__main__":
    main(*sys.argv[1:])
