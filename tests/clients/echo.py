"""A stand-in for a client's program, which answers some cases correctly or with the fault in its argument."""

from __future__ import annotations

import json
import re
import sys
from typing import Any

from clients.conformance.bits import to_json
from clients.conformance.plain_client import PlainClient
from clients.conformance.steps import nodes_of

Json = dict[str, Any]


def main(fault: str = "") -> None:
    if fault == "ends":
        sys.exit("there is nothing to say")
    for line in sys.stdin:
        case = json.loads(line)
        result = {"id": case["id"]} | answer(case)
        if fault == "another id":
            result["id"] = "another"
        if fault == "leaks":
            print("sent with the key gs_of_the_environment", file=sys.stderr, flush=True)
        output = json.dumps(result)
        if fault == "a bit":
            output = re.sub(r'(?<="hex": ")[0-9a-f]', lambda digit: f"{int(digit[0], 16) ^ 1:x}", output)
            output = output.replace("AAA", "AAB")
        print("no JSON" if fault == "no JSON" else output, flush=True)


def answer(case: Json) -> Json:
    if case["kind"] == "encode":
        return {"wire": json.dumps(to_json(case["tensor"]))}
    if case["kind"] == "build":
        return {"nodes": json.dumps(nodes_of(case["steps"]))}
    with PlainClient(case["url"]) as client:
        results = client.expected_results(case)["results"]
    for result in results:
        if "raised" in result:
            result["raised"]["message"] = "refused"
    return {"results": results, "waits": []}


if __name__ == "__main__":
    main(*sys.argv[1:])
