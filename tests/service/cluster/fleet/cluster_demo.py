"""A classifier of digits, trained on two servers while one of them is killed, has the weights of one that had peace.

`python -m tests.service.cluster.fleet.cluster_demo` (make cluster-demo): HAProxy, two servers under Ray, their state
in moto's S3; on this machine, as root on Linux, in namespaces of its own for the network and for processes. Each step
is two calls: the gradients of the mean over all digits, in pieces on both servers, are kept; and the weights are
stepped.
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
#: what all servers have; one worker each, since they share two processors
SETTINGS = {
    "timeout_ms": TIMEOUT_MS, "workers": 1, "device": "cpu", "insecure": "on", "log_level": "error",
    "cache_dir": "none", "compile": "off", "determinism": "bitwise",
}  # fmt: skip
BUCKET, REGION = "demo", "us-east-1"
Arrays = dict[str, np.ndarray[Any, Any]]


def digits() -> tuple[Arrays, Arrays]:
    """The images of scikit-learn's digits and their labels: to train on, with copies moved by a pixel; and to test."""
    from sklearn.datasets import load_digits
    from sklearn.model_selection import train_test_split

    images, labels = load_digits(return_X_y=True)
    x, x_test, y, y_test = train_test_split(images / 16, labels, test_size=0.2, random_state=0, stratify=labels)
    square = x.reshape(-1, 8, 8)
    moved = [square, *(np.roll(square, by, axis) for axis in (1, 2) for by in (-1, 1))]
    many = np.concatenate(moved).reshape(-1, 64)
    return {"x": many, "y": np.tile(y, 5).astype(np.int64)}, {"x": x_test, "y": y_test}


def weights() -> Arrays:
    """Those to begin with: 64 → HIDDEN → 10."""
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
    """Who trains: what is not known to have been done is asked for again, and done once."""

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
        found: np.ndarray[Any, Any] = np.array(tensor["data"], tensor["dtype"]).reshape(tensor["shape"])
        return found

    def step(self, examples: int) -> Any:
        """The answer to the first call of a step."""
        rows = [{"node": 4 + i, "tensor_id": name, "rows": [0, examples]} for i, name in enumerate("xy")]
        stores = [{"node": i, "gradient": True, "tensor_id": f"{name}.gradient"} for i, name in enumerate(NAMES)]
        named = [{"node": i, "tensor_id": name} for i, name in enumerate(NAMES)]
        asked = {"mapped": [4, 5], "reduce": "mean", "block": BLOCK, "store": stores, "wrt": [0, 1, 2, 3]}
        answer = self.asked("POST", "/v1/batch", {"graph": {"nodes": LOSS}, "feeds": [*named, *rows], **asked})
        feeds = [*named, *({"node": 4 + i, "tensor_id": f"{name}.gradient"} for i, name in enumerate(NAMES))]
        after = [{"node": 12 + i, "tensor_id": name} for i, name in enumerate(NAMES)]
        self.asked("POST", "/v1/forward", {"graph": {"nodes": STEP}, "feeds": feeds, "outputs": [], "store": after})
        return answer


def trained(url: str, half_way: Any = lambda: None) -> tuple[Arrays, list[Any], Counter[str]]:
    """The weights after all steps, what the sums of each came to, and what had to be asked for again."""
    caller, (data, _) = Caller(url), digits()
    for name, array in {**data, **weights()}.items():
        caller.put(name, array)
    answers = []
    for number in range(STEPS):
        if number == STEPS // 2:
            half_way()
        answers.append(caller.step(len(data["x"])))
    return {name: caller.get(name) for name in NAMES}, answers, caller.again


def accuracy(found: Arrays) -> float:
    """The share of the digits to test that are told."""
    _, test = digits()
    hidden = np.maximum(test["x"] @ found["w1"] + found["b1"], 0)
    return float(np.mean((hidden @ found["w2"] + found["b2"]).argmax(1) == test["y"]))


def start_s3() -> None:
    """moto's S3, each request behind a lock, with a bucket; variables say where it is."""
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


def told(line: str) -> None:
    """One line, and when."""
    print(f"{time.monotonic() - BEGAN:6.1f} s  {line}", flush=True)


def main() -> None:
    """Train twice, and compare."""
    from service.cluster.fleet.child import ServerChild

    alone = ServerChild("127.0.0.1", SETTINGS | {"state": "memory"})
    told("a server alone is ready")
    wanted, answers, _ = trained("http://{}:{}".format(*alone.address))
    alone.end(10.0)
    values = [answer["values"][0]["tensor"]["data"][0] for answer in answers]
    told(f"{STEPS} steps: the loss went from {values[0]:.4f} to {values[-1]:.4f}, accuracy {accuracy(wanted):.3f}")

    start_s3()
    from tests.service.cluster.fleet import in_a_cluster as fleet

    shared = {"state": f"s3://{BUCKET}/of/gradserve", "cluster": "on", "ingress": f"http://127.0.0.1:{fleet.PORT}"}
    fleet.SETTINGS = SETTINGS | shared
    cluster = fleet.started()
    fleet.await_(lambda: fleet.ready() == 2, "two servers")
    told("two servers under Ray are ready, behind HAProxy")
    killed: list[int] = []

    def kill() -> None:
        killed.append(min(fleet.whole()))
        fleet.kill(killed[0])()
        told(f"half-way: the server with process {killed[0]} is killed")

    found, answers, again = trained(f"http://127.0.0.1:{fleet.PORT}", kill)
    stats = [answer["stats"] for answer in answers]
    told(f"{STEPS} steps: accuracy {accuracy(found):.3f}; asked again: {dict(again)}")
    pieces, repeated = (sum(each[name] for each in stats) for name in ("pieces", "repeated"))
    told(f"{pieces} pieces, {repeated} of them begun again; answered by {dict(Counter(s['server'] for s in stats))}")
    worst = max(float(np.max(np.abs(found[k] - wanted[k])) / np.max(np.abs(wanted[k]))) for k in NAMES)
    same = all(found[name].tobytes() == wanted[name].tobytes() for name in NAMES)
    told(f"weights differ from those of one server by {worst:.1e} of their size; bit for bit the same: {same}")
    fleet.stopped(cluster)
    left = fleet.servers() | fleet.haproxies()
    told(f"all stopped again: {left or 'nothing is left'}")
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
