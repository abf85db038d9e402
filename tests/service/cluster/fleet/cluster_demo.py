"""Demonstration: training on two servers, one of which is killed, gives the same weights as on one server.

`python -m tests.service.cluster.fleet.cluster_demo` (make cluster-demo) runs HAProxy and two servers under Ray, with
their state in moto's S3, on this machine, as root on Linux, in its own network and process namespaces. Each step is
two calls: the first computes and stores the gradients of the mean over all digits, in pieces on both servers; the
second updates the weights.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections import Counter
from secrets import token_hex
from threading import Thread
from typing import Any

import httpx
import numpy as np

from tests.service.cluster.serving import PASSING, SECRET

INSIDE = "--inside"
STEPS, RATE, HIDDEN, BLOCK = 16, 0.5, 512, 128
TIMEOUT_MS = 120_000
#: settings of all servers; one worker each, since they share two processors
SETTINGS = {
    "timeout_ms": TIMEOUT_MS, "workers": 1, "device": "cpu", "insecure": "on", "log_level": "error",
    "cache_dir": "none", "compile": "off", "determinism": "bitwise",
}  # fmt: skip
BUCKET, REGION = "demo", "us-east-1"
Arrays = dict[str, np.ndarray[Any, Any]]


def digits() -> tuple[Arrays, Arrays]:
    """Load scikit-learn's digits: a training set, with copies shifted by a pixel, and a test set."""
    from sklearn.datasets import load_digits
    from sklearn.model_selection import train_test_split

    images, labels = load_digits(return_X_y=True)
    x, x_test, y, y_test = train_test_split(images / 16, labels, test_size=0.2, random_state=0, stratify=labels)
    square = x.reshape(-1, 8, 8)
    shifted = [square, *(np.roll(square, offset, axis) for axis in (1, 2) for offset in (-1, 1))]
    many = np.concatenate(shifted).reshape(-1, 64)
    return {"x": many, "y": np.tile(y, 5).astype(np.int64)}, {"x": x_test, "y": y_test}


def initial_weights() -> Arrays:
    """The initial weights: 64 → HIDDEN → 10."""
    rng = np.random.default_rng(0)
    return {
        "w1": rng.normal(0, np.sqrt(2 / 64), (64, HIDDEN)),
        "b1": np.zeros(HIDDEN),
        "w2": rng.normal(0, np.sqrt(2 / HIDDEN), (HIDDEN, 10)),
        "b2": np.zeros(10),
    }


#: the loss of one digit: nodes 0 to 3 are the weights, 4 and 5 image and label
LOSS = [
    *({"op": "parameter"} for _ in range(4)),
    {"op": "input"},
    {"op": "input"},
    {"op": "reshape", "operands": [4], "attrs": {"shape": [1, 64]}},
    {"op": "linear", "operands": [6, 0, 1]},
    {"op": "relu", "operands": [7]},
    {"op": "linear", "operands": [8, 2, 3]},
    {"op": "reshape", "operands": [5], "attrs": {"shape": [1]}},
    {"op": "cross_entropy", "operands": [9, 10]},
]
NAMES = ("w1", "b1", "w2", "b2")
#: w − RATE · gradient, for each of the four
STEP = [
    *({"op": "input"} for _ in range(8)),
    *({"op": "mul_scalar", "operands": [4 + i], "attrs": {"scalar": RATE}} for i in range(4)),
    *({"op": "sub", "operands": [i, 8 + i]} for i in range(4)),
]


class Caller:
    """Training client, which repeats calls with unknown outcomes under their Idempotency-Key."""

    def __init__(self, url: str) -> None:
        self._client = httpx.Client(base_url=url, timeout=TIMEOUT_MS / 1000, trust_env=False)
        self.again: Counter[str] = Counter()

    def asked(self, method: str, path: str, body: Any = None) -> Any:
        key = {"Idempotency-Key": token_hex(8)} if method != "GET" else {}
        while True:
            try:
                answer = self._client.request(method, path, json=body, headers=key)
            except httpx.TransportError as error:
                self.again[type(error).__name__] += 1
                continue
            if answer.status_code < 400:
                return answer.json()
            if answer.json()["code"] not in (*PASSING, "queue_full"):
                raise SystemExit(f"{method} {path}: {answer.text}")
            self.again[answer.json()["code"]] += 1
            time.sleep(0.1)

    def put(self, name: str, array: np.ndarray[Any, Any]) -> None:
        tensor = {"dtype": array.dtype.name, "shape": list(array.shape), "data": array.ravel().tolist()}
        self.asked("PUT", f"/v1/tensors/{name}", tensor)

    def get(self, name: str) -> np.ndarray[Any, Any]:
        tensor = self.asked("GET", f"/v1/tensors/{name}")["tensor"]
        array: np.ndarray[Any, Any] = np.array(tensor["data"], tensor["dtype"]).reshape(tensor["shape"])
        return array

    def step(self, examples: int) -> Any:
        """Make a step, and return the answer to its first call."""
        rows = [{"node": 4 + i, "tensor_id": name, "rows": [0, examples]} for i, name in enumerate("xy")]
        stores = [{"node": i, "gradient": True, "tensor_id": f"{name}.gradient"} for i, name in enumerate(NAMES)]
        named = [{"node": i, "tensor_id": name} for i, name in enumerate(NAMES)]
        asked = {"mapped": [4, 5], "reduce": "mean", "block": BLOCK, "store": stores, "wrt": [0, 1, 2, 3]}
        answer = self.asked("POST", "/v1/batch", {"graph": {"nodes": LOSS}, "feeds": [*named, *rows], **asked})
        feeds = [*named, *({"node": 4 + i, "tensor_id": f"{name}.gradient"} for i, name in enumerate(NAMES))]
        after = [{"node": 12 + i, "tensor_id": name} for i, name in enumerate(NAMES)]
        self.asked("POST", "/v1/forward", {"graph": {"nodes": STEP}, "feeds": feeds, "outputs": [], "store": after})
        return answer


def train(url: str, half_way: Any = lambda: None) -> tuple[Arrays, list[Any], Counter[str]]:
    """Train, and return the weights, the answers of all steps, and the repeated calls by reason."""
    caller, (data, _) = Caller(url), digits()
    for name, array in {**data, **initial_weights()}.items():
        caller.put(name, array)
    answers = []
    for number in range(STEPS):
        if number == STEPS // 2:
            half_way()
        answers.append(caller.step(len(data["x"])))
    return {name: caller.get(name) for name in NAMES}, answers, caller.again


def accuracy(trained_weights: Arrays) -> float:
    """The share of test digits that are classified correctly."""
    _, test = digits()
    hidden = np.maximum(test["x"] @ trained_weights["w1"] + trained_weights["b1"], 0)
    return float(np.mean((hidden @ trained_weights["w2"] + trained_weights["b2"]).argmax(1) == test["y"]))


def start_s3() -> None:
    """Start moto's S3 with a bucket, and set the environment variables of its address."""
    import boto3

    from tests.service.store.moto_server import moto_server

    server = moto_server()
    Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_port}"
    os.environ |= {
        "AWS_ACCESS_KEY_ID": "anyone", "AWS_SECRET_ACCESS_KEY": "anything", "AWS_REGION": REGION,
        "AWS_ENDPOINT_URL": url, "GRADSERVE_CLUSTER_SECRET": SECRET,
    }  # fmt: skip
    boto3.client("s3", endpoint_url=url, region_name=REGION).create_bucket(Bucket=BUCKET)


def log(line: str) -> None:
    """Print a line with the elapsed time."""
    print(f"{time.monotonic() - BEGAN:6.1f} s  {line}", flush=True)


def main() -> None:
    """Train twice, and compare the weights."""
    from service.cluster.fleet.child import ServerChild

    alone = ServerChild("127.0.0.1", SETTINGS | {"state": "memory"})
    log("a server alone is ready")
    expected, answers, _ = train("http://{}:{}".format(*alone.address))
    alone.end(10.0)
    values = [answer["values"][0]["tensor"]["data"][0] for answer in answers]
    log(f"{STEPS} steps: the loss went from {values[0]:.4f} to {values[-1]:.4f}, accuracy {accuracy(expected):.3f}")

    start_s3()
    from tests.service.cluster.fleet import in_a_cluster as fleet

    shared = {"state": f"s3://{BUCKET}/of/gradserve", "cluster": "on", "ingress": f"http://127.0.0.1:{fleet.PORT}"}
    fleet.SETTINGS = SETTINGS | shared
    cluster = fleet.started()
    fleet.await_(lambda: fleet.ready() == 2, "two servers")
    log("two servers under Ray are ready, behind HAProxy")
    killed: list[int] = []

    def kill() -> None:
        killed.append(min(fleet.whole()))
        fleet.kill(killed[0])()
        log(f"half-way: the server with process {killed[0]} is killed")

    actual, answers, again = train(f"http://127.0.0.1:{fleet.PORT}", kill)
    stats = [answer["stats"] for answer in answers]
    log(f"{STEPS} steps: accuracy {accuracy(actual):.3f}; asked again: {dict(again)}")
    pieces, repeated = (sum(each[name] for each in stats) for name in ("pieces", "repeated"))
    log(f"{pieces} pieces, {repeated} of them begun again; answered by {dict(Counter(s['server'] for s in stats))}")
    worst = max(float(np.max(np.abs(actual[k] - expected[k])) / np.max(np.abs(expected[k]))) for k in NAMES)
    same = all(actual[name].tobytes() == expected[name].tobytes() for name in NAMES)
    log(f"weights differ from those of one server by {worst:.1e} of their size; bit for bit the same: {same}")
    fleet.stopped(cluster)
    left = fleet.servers() | fleet.haproxies()
    log(f"all stopped again: {left or 'nothing is left'}")
    if not same or left or pieces <= STEPS:
        raise SystemExit("that is not what it should have been")


BEGAN = time.monotonic()

if __name__ == "__main__":
    if INSIDE not in sys.argv:
        from tests.service.cluster.fleet.test_fleet import ALONE

        if sys.platform != "linux" or os.geteuid() != 0:
            raise SystemExit("the demonstration makes namespaces, as root on Linux")
        command = [*ALONE, sys.executable, "-m", "tests.service.cluster.fleet.cluster_demo", INSIDE]
        raise SystemExit(subprocess.run(command, check=False).returncode)
    main()
