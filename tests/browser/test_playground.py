"""The playground in a browser that can reach no other host: typing, running, marks, copying, sharing, keyboard."""

from __future__ import annotations

import base64
import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from selenium.webdriver import Chrome, Keys
from selenium.webdriver.support.wait import WebDriverWait

from tests.browser.chromium import browser, traffic
from tests.browser.playground import Playground, fragment
from tests.browser.seen import PATIENCE, assert_quiet
from tests.conftest import ROOT, RunningServer

pytestmark = pytest.mark.slow

PICTURES = ROOT / "build" / "pictures"
NODES: list[dict[str, Any]] = [
    {"op": "input", "name": "x"},
    {"op": "parameter", "name": "w"},
    {"op": "mul", "operands": [0, 1]},
    {"op": "tanh", "operands": [2]},
    {"op": "sum", "operands": [3]},
]
FEEDS = [
    {"node": node, "tensor": {"dtype": "float64", "shape": [2], "data": data}}
    for node, data in ((0, [1.0, 2.0]), (1, [0.5, 0.25]))
]
REQUEST = {"graph": {"nodes": NODES}, "feeds": FEEDS}
X, W = np.array([1.0, 2.0]), np.array([0.5, 0.25])
LOSS, GRAD_W = np.tanh(X * W).sum(), X * (1 - np.tanh(X * W) ** 2)
#: how to run the program that the page writes in each language: a file, the required tools, and a command
RUN: dict[str, tuple[str, tuple[str, ...], str]] = {
    "curl": ("request.sh", ("sh", "curl"), "sh request.sh"),
    "Python": ("request.py", ("python3",), "python3 request.py"),
    "TypeScript": ("request.mjs", ("node",), "node request.mjs"),
    "Go": ("request.go", ("go",), "go run request.go"),
    "Rust": ("request.rs", ("rustc",), "rustc request.rs && ./request"),
    "Java": ("Request.java", ("java",), "java Request.java"),
    "C++": ("request.cpp", ("g++",), "g++ -std=c++17 request.cpp -lcurl && ./a.out"),
}


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chrome]:
    with browser(tmp_path_factory.mktemp("profile")) as opened:
        yield opened


@pytest.fixture
def playground(page: Chrome, server: RunningServer) -> Playground:
    opened = Playground(page, server.url)
    opened.media(1280, 1600)
    traffic(page)
    page.get_log("browser")
    return opened


def broken(node: int, **changed: Any) -> dict[str, Any]:
    """The request with changed fields at one node."""
    nodes = [{**each, **changed} if i == node else each for i, each in enumerate(NODES)]
    return {**REQUEST, "graph": {"nodes": nodes}}


def chain(count: int, size: int = 1) -> dict[str, Any]:
    """A request whose graph is a chain of `count` nodes."""
    nodes = [{"op": "parameter"}, *({"op": "sin", "operands": [i]} for i in range(count - 2))]
    data = {"dtype": "float64", "shape": [size], "data": [0.5] * size}
    return {
        "graph": {"nodes": [*nodes, {"op": "sum", "operands": [count - 2]}]},
        "feeds": [{"node": 0, "tensor": data}],
    }


@pytest.mark.smoke
def test_example_loads_from_the_server_alone(playground: Playground, server: RunningServer) -> None:
    playground.open()
    assert " ms on cpu" in playground.status
    assert playground.drawn()
    assert len(playground.all("#example optgroup option")) >= 24
    assert_quiet(playground.page, server.url)


def test_typed_request_runs(playground: Playground, server: RunningServer) -> None:
    playground.open()
    playground.type(json.dumps(REQUEST))
    playground.run()
    playground.until_drawn(f"= {LOSS:.6g} | ∂ 1")
    assert json.loads(playground.text) == REQUEST
    drawn = playground.drawn()
    assert drawn[4].startswith("4 sum | float64[] | ")
    grad_w = ", ".join(f"{value:.6g}" for value in GRAD_W)
    assert f"∂ [{grad_w}]" in drawn[1]
    row = playground.rows()[1]
    assert row[1:4] == ["parameter", "w", ""]
    assert row[5:9] == ["float64", "[2]", "[0.5, 0.25]", f"[{grad_w}]"]
    plan = httpx.post(f"{server.url}/v1/plan", json={"graph": REQUEST["graph"], "types": types()}).json()
    flops = [(node["flops"], node["bytes"]) for node in plan["nodes"]]
    assert [(int(row[9]), int(row[10])) for row in playground.rows()] == flops
    assert_quiet(playground.page, server.url)


def types() -> list[dict[str, Any]]:
    return [{"node": node, "dtype": "float64", "shape": [2]} for node in (0, 1)]


def test_ops_and_attributes_are_completed(playground: Playground) -> None:
    playground.open()
    playground.type('{"graph": {"nodes": [{"op": "logsumex')
    assert [each.text for each in playground.in_editor(".cm-completionLabel")] == ["logsumexp", "cumlogsumexp"]
    playground.press(Keys.ENTER, Keys.ARROW_RIGHT, ', "attrs": {"kee')
    assert [each.text for each in playground.in_editor(".cm-completionLabel")] == ["keepdims"]
    playground.press(Keys.ENTER)
    assert playground.text == '{"graph": {"nodes": [{"op": "logsumexp", "attrs": {"keepdims"}}]}}'


def test_errors_are_marked_while_typing(playground: Playground) -> None:
    playground.open_with(REQUEST)
    playground.type(json.dumps(broken(3, op="tanhh")))
    marked = playground.in_editor(".cm-lintRange-error")
    assert "tanhh" in "".join(each.text for each in marked)
    playground.type('{"graph": {"nodes": [}')
    playground.in_editor(".cm-lint-marker-error")


def test_broken_node_and_operand_are_marked(playground: Playground) -> None:
    assert playground.open_with(REQUEST).endswith(" B")
    assert not playground.all(".bad")
    feeds = [FEEDS[0], {"node": 1, "tensor": tensor([1.0, 2.0, 3.0])}]
    status = playground.open_with({**broken(2, op="matmul"), "feeds": feeds})
    assert status.startswith("shape_mismatch: node 2 (matmul): operand 1 ")
    node = playground.node(2)
    assert "bad" in (node.get_attribute("class") or "")
    assert status.removeprefix("shape_mismatch: ") in (node.get_attribute("aria-label") or "")
    assert len(playground.all("path.edge.bad")) == 1
    (marked,) = playground.in_editor(".cm-lintRange-error")
    assert marked.text == "1", "the operand"
    assert [row[0] for row in playground.rows() if "operand 1" in row[11]] == ["2"]


def test_all_errors_are_marked(playground: Playground) -> None:
    nodes = [NODES[0], {"op": "matmull", "operands": [0]}, {"op": "add", "operands": [0, 9]}]
    status = playground.open_with({"graph": {"nodes": nodes}, "feeds": FEEDS[:1]})
    assert status.startswith("unknown_op: ")
    assert status.endswith("(and 1 more)")
    assert [each.get_attribute("data-node") for each in playground.all("#graph-drawing .bad")] == ["1", "2"]


def test_error_in_a_feed_is_marked(playground: Playground) -> None:
    feeds = [FEEDS[0], {"node": 1, "tensor": {"dtype": "float64", "shape": [2], "data": [1, "no"]}}]
    assert playground.open_with({**REQUEST, "feeds": feeds}).startswith("bad_tensor: ")
    assert playground.in_editor(".cm-lintRange-error")


def tensor(data: list[float]) -> dict[str, Any]:
    return {"dtype": "float64", "shape": [len(data)], "data": data}


def test_check_colours_the_nodes(playground: Playground) -> None:
    assert playground.open_with(REQUEST, "check").startswith("Passed: ")
    assert playground.all("#graph-drawing .passed")
    kinked = {"graph": {"nodes": [NODES[1], {"op": "relu", "operands": [0]}, {"op": "sum", "operands": [1]}]}}
    status = playground.open_with({**kinked, "feeds": [{"node": 0, "tensor": tensor([0.0, 1.0])}]}, "check")
    assert status.startswith("Not passed: ")
    assert "unsure" in (playground.node(0).get_attribute("class") or "")
    assert "kink" in (playground.node(0).get_attribute("aria-label") or "")


def test_differentiate_shows_the_gradient_graph(playground: Playground, server: RunningServer) -> None:
    playground.open_with(REQUEST, "differentiate")
    request = {"graph": REQUEST["graph"], "types": types()}
    answer = httpx.post(f"{server.url}/v1/differentiate", json=request).json()
    assert len(playground.drawn()) == len(answer["graph"]["nodes"]) > len(NODES)
    gradient = playground.drawn()[answer["gradients"][0]["gradient_node"]]
    assert "gradient with respect to node 1" in gradient
    (card,) = playground.cards()
    assert card.startswith("Gradient with respect to node 1 ")
    assert f"= [{GRAD_W[0]:.6g}, {GRAD_W[1]:.6g}]" in gradient


def test_changing_the_mode_runs_again(playground: Playground) -> None:
    playground.open_with(REQUEST)
    playground.element("mode-check").click()
    playground.wait_for_status(" compared")
    playground.element("mode-forward").click()
    playground.wait_for_status(" ms on cpu")
    assert not [line for line in playground.drawn() if "∂" in line]


def test_only_run_stores_tensors(playground: Playground, server: RunningServer) -> None:
    """Planning while typing and changing the mode store nothing, even if a feed has no type yet."""
    playground.open_with(REQUEST)
    record = (
        "window.stored = []; const send = fetch; window.fetch = async (input, init) => {"
        "const body = init?.body ? await new Response(init.body).text() : '';"
        "if (body.includes('kept')) stored.push(body); return send(input, init) }"
    )
    playground.page.execute_script(record)
    feeds = [FEEDS[0], {"node": 1, "tensor_id": "absent"}]
    playground.type(json.dumps({**REQUEST, "feeds": feeds, "store": [{"node": 3, "tensor_id": "kept"}]}))
    assert playground.element("stores").text.endswith("overwrites existing ones: kept")
    assert [each.text for each in playground.in_editor(".cm-lintRange-error")], "it has been planned"
    stored = {"graph": REQUEST["graph"], "feeds": FEEDS, "store": [{"node": 3, "tensor_id": "kept"}]}
    playground.type(json.dumps(stored))
    playground.until_drawn("float64[2]")
    playground.element("mode-forward").click()
    assert "press Run" in playground.status
    assert playground.page.execute_script("return stored") == []
    playground.element("run").click()
    playground.wait_for_status(" ms on cpu")
    assert len(playground.page.execute_script("return stored")) == 1
    assert httpx.get(f"{server.url}/v1/tensors/kept").json()["tensor"]["shape"] == [2]


def test_functions_are_drawn_and_marked(playground: Playground) -> None:
    step = {"name": "half", "outputs": [1], "nodes": [{"op": "input"}, {"op": "mul_scalar", "operands": [0]}]}
    nodes = [NODES[1], {"op": "call", "operands": [0], "attrs": {"body": 0}}]
    graph = {"opset": 2, "functions": [step], "nodes": [*nodes, {"op": "get_output", "operands": [1]}]}
    playground.open_with({"graph": graph, "feeds": [{"node": 0, "tensor": tensor([1.0])}]})
    assert [each.text.strip() for each in playground.all("figcaption")] == ["function 0 half"]
    (marked,) = playground.all("figure .bad")
    assert marked.get_attribute("data-node") == "1"


@pytest.mark.parametrize("language", RUN)
def test_copied_program_runs(playground: Playground, server: RunningServer, language: str, tmp_path: Path) -> None:
    """The request contains characters that end a string in some language."""
    name, needs, command = RUN[language]
    if absent := [tool for tool in needs if not shutil.which(tool)]:
        pytest.skip(f"needs {', '.join(absent)}")
    awkward = broken(1, name="'\"`#)json\\ ${x} ''' é 𝒘 /* \u2028")
    playground.open_with(awkward)
    program = playground.program(language)
    assert program.split("\n", maxsplit=1)[0][0] in "#/", "how it is run"
    (tmp_path / name).write_text(program)
    done = subprocess.run(command, cwd=tmp_path, shell=True, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    ours = httpx.post(f"{server.url}/v1/gradients", json=awkward).json()
    theirs = json.loads(done.stdout)
    assert [theirs[key] for key in ("values", "gradients")] == [ours[key] for key in ("values", "gradients")]


@pytest.mark.parametrize(("mode", "answers"), [("forward", "values"), ("check", "passed"), ("differentiate", "graph")])
def test_curl_program_of_other_modes(playground: Playground, mode: str, answers: str) -> None:
    playground.open_with(REQUEST, mode)
    program = playground.program("curl")
    done = subprocess.run(["sh"], input=program, capture_output=True, text=True, check=True)
    assert answers in json.loads(done.stdout)


def test_request_is_shared_by_a_link(playground: Playground, server: RunningServer) -> None:
    playground.open_with(REQUEST, "check")
    playground.element("share").click()
    playground.wait_for_status("The link is")
    link = playground.element("handed").get_attribute("value") or ""
    assert link == playground.page.current_url
    assert link.startswith(f"{server.url}/#check=")
    playground.page.get("about:blank")
    traffic(playground.page)
    playground.page.get(link)
    assert "press Run" in playground.settled()
    assert json.loads(playground.text) == REQUEST
    playground.element("run").click()
    playground.wait_for_status("Passed: ")
    assert not [url for url in traffic(playground.page).asked if "check=" in url.partition("#")[0]]


def test_link_holds_at_most_32_kb(playground: Playground) -> None:
    noise = base64.b64encode(np.random.default_rng(0).bytes(40_000)).decode()
    leaf = {"node": 0, "tensor": {"dtype": "uint8", "shape": [40_000], "data_b64": noise}}
    request = {"graph": {"nodes": [{"op": "input"}, {"op": "max", "operands": [0]}]}, "feeds": [leaf]}
    playground.open()
    playground.type()
    pasted = (
        "const data = new DataTransfer(); data.setData('text/plain', arguments[1]);"
        "arguments[0].dispatchEvent(new ClipboardEvent('paste', {clipboardData: data, bubbles: true}))"
    )
    playground.page.execute_script(pasted, playground.content, json.dumps(request))
    playground.element("share").click()
    assert "32 KB" in playground.wait_for_status("too long for a link")
    assert "#" not in playground.page.current_url


@pytest.mark.parametrize(
    "shared", ["nonsense", "check=", "steal=AAAA", "gradients=%%%", "gradients=AAAA", "gallery=none"]
)
def test_link_without_a_request_is_refused(playground: Playground, shared: str) -> None:
    playground.open(shared)
    assert any(words in playground.status for words in ("he link", "no example"))


def test_truncated_link_is_refused(playground: Playground) -> None:
    playground.open(fragment(REQUEST)[:-8])
    assert "The request in the link" in playground.status


def test_large_graph_shows_a_neighbourhood(playground: Playground) -> None:
    assert " ms on cpu" in playground.open_with(chain(300), "forward")
    assert len(playground.drawn()) == 300
    assert " ms on cpu" in playground.open_with(chain(1000), "forward")
    assert 1 < len(playground.drawn()) < 100
    assert "1000 nodes are too many to draw" in playground.element("part").text
    seen = {row[0] for row in playground.rows()}
    while button := [each for each in playground.all("[data-page]") if each.text == "Next rows"]:
        button[0].click()
        seen |= {row[0] for row in playground.rows()}
    assert seen == {str(i) for i in range(1000)}
    playground.all('[data-choose="990"]')[0].click()
    assert "990 sin" in " ".join(playground.drawn())
    assert playground.page.switch_to.active_element == playground.node(990)


def test_large_values_are_not_requested(playground: Playground) -> None:
    """Each value is below a megabyte, but their sum is above."""
    request = chain(12, 8000)
    assert playground.open_with(request, "forward").startswith("Only shapes: the values of all nodes would take ")
    assert playground.drawn()[3].startswith("3 sin | float64[8000]")
    assert not [line for line in playground.drawn() if "=" in line]
    assert {url.rpartition("/v1/")[2].partition("?")[0] for url in traffic(playground.page).asked if "/v1/" in url} == {
        "ops", "plan",
    }  # fmt: skip


def test_key_stays_in_the_page(page: Chrome, start_server: Callable[..., RunningServer], tmp_path: Path) -> None:
    file = tmp_path / "keys"
    command = [sys.executable, "-m", "service", "keys", "add", "--keys-file", str(file), "page"]
    added = subprocess.run(command, capture_output=True, text=True, check=True)
    key = next(word for word in added.stdout.split() if len(word) > 30)
    locked = Playground(page, start_server("--keys-file", str(file)).url)
    locked.open_with(REQUEST)
    assert locked.wait_for_status("requires an API key")
    field = locked.element("key")
    assert field.is_displayed()
    field.send_keys(key)
    locked.element("run").click()
    locked.wait_for_status(" ms on cpu")
    storage = page.execute_script("return [localStorage.length, sessionStorage.length, document.cookie, location.href]")
    assert storage[:3] == [0, 0, ""]
    locked.element("share").click()
    locked.wait_for_status("The link is")
    program = locked.program("curl")
    assert "$GRADSERVE_API_KEY" in program
    assert key not in program + page.current_url + (locked.element("handed").get_attribute("value") or "")
    locked.open(fragment(REQUEST))
    assert locked.element("key").get_attribute("value") == ""


def test_keyboard_only_use(playground: Playground) -> None:
    """Start at the top: run, choose a mode, go through the graph, and return to the text."""
    playground.open_with(REQUEST)
    tab_to(playground, lambda focused: focused.get_attribute("id") == "run")
    playground.press(Keys.ENTER)
    playground.wait_for_status(" ms on cpu")
    tab_to(playground, lambda focused: focused.get_attribute("name") == "mode")
    playground.press(Keys.ARROW_RIGHT)
    playground.wait_for_status(" compared")
    tab_to(playground, lambda focused: focused.get_attribute("id") == "editor")
    playground.press(Keys.ESCAPE)
    tab_to(playground, lambda focused: focused.get_attribute("data-node") == "0")
    visited = ["0"]
    for key in (Keys.ARROW_DOWN, Keys.ARROW_DOWN, Keys.ARROW_UP, Keys.ARROW_LEFT):
        playground.press(key)
        visited.append(playground.page.switch_to.active_element.get_attribute("data-node") or "")
    assert visited == ["0", "2", "3", "2", "1"]
    assert (playground.node(1).get_attribute("aria-label") or "").startswith("node 1: parameter w, float64[2]")
    playground.press(Keys.ENTER)
    assert playground.page.switch_to.active_element.get_attribute("id") == "editor"
    playground.press(Keys.DELETE)
    assert playground.text == json.dumps(REQUEST).replace(json.dumps(NODES[1]), ""), "its place is selected"


def tab_to(playground: Playground, matches: Callable[[Any], bool]) -> None:
    """Press Tab until the focused element matches."""
    for _ in range(60):
        if matches(playground.page.switch_to.active_element):
            return
        playground.press(Keys.TAB)
    raise AssertionError("Tab does not lead there")


LOOKS = {
    "light": {"width": 1280, "height": 1000},
    "dark": {"width": 1280, "height": 1000, "dark": True},
    "zoomed": {"width": 640, "height": 500, "scale": 2},  # 1280 pixels at 200 %
    **{
        f"{width}-{'dark' if dark else 'light'}": {"width": width, "height": 900, "dark": dark}
        for width in (390, 768, 1440, 1920)
        for dark in (False, True)
    },
}


@pytest.mark.parametrize("look", LOOKS)
@pytest.mark.parametrize("state", ["run", "refused", "stale", "charts"])
def test_axe_finds_no_violations(playground: Playground, look: str, state: str) -> None:
    if state == "charts":
        playground.open("gallery=onnx_net")
    else:
        playground.open_with(broken(3, operands=[7]) if state == "refused" else REQUEST)
    if state == "stale":
        break_text(playground)
    playground.media(**LOOKS[look])
    if state in ("run", "refused"):
        playground.program("Go")
    assert playground.axe() == []
    assert playground.overflow() <= 0, "the page scrolls sideways"
    PICTURES.mkdir(parents=True, exist_ok=True)
    playground.page.save_screenshot(str(PICTURES / f"playground-{look}-{state}.png"))


def break_text(playground: Playground) -> None:
    """Type a character before the request, so that it is no longer JSON, and wait for its mark."""
    playground.page.execute_script("arguments[0].focus()", playground.content)
    playground.press("x")
    playground.in_editor(".cm-lint-marker-error")


def is_stale(playground: Playground) -> bool:
    """Whether the results are grey, with a reason."""
    output = playground.element("output")
    grey = "stale" in (output.get_attribute("class") or "").split()
    assert playground.element("stale").is_displayed() == grey
    return grey


def test_opening_example_is_that_of_the_readme(playground: Playground) -> None:
    playground.open()
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    body = json.loads(text.partition("-d '")[2].partition("'")[0])
    request = json.loads(playground.text)
    nodes, stated = ([(n["op"], n.get("operands")) for n in each["graph"]["nodes"]] for each in (request, body))
    assert nodes == stated
    assert [feed["tensor"]["data"] for feed in request["feeds"]] == [feed["tensor"]["data"] for feed in body["feeds"]]
    assert playground.cards() == ["Value of mean (node 6) | 1", "Gradient with respect to w (node 1) | [-2, -2]"]


def test_examples_are_in_groups_and_simplest_first(playground: Playground) -> None:
    playground.open()
    groups = [group.get_attribute("label") for group in playground.all("#example optgroup")]
    assert groups[0] == "Start here"
    assert groups[-1] == "Imported from PyTorch, JAX and ONNX"
    assert len(groups) == len(set(groups)) >= 6
    gallery = httpx.get(f"{playground.url}/docs/playground/gallery.json").json()
    for group in groups[1:]:
        graphs = [each["request"]["graph"] for each in gallery if each["group"] == group]
        sizes = [len(g["nodes"]) + sum(len(f["nodes"]) for f in g.get("functions", [])) for g in graphs]
        assert sizes == sorted(sizes), group


@pytest.mark.parametrize(("width", "height"), [(390, 844), (1440, 900)])
def test_run_is_above_the_fold(playground: Playground, width: int, height: int) -> None:
    playground.media(width, height)
    playground.open()
    script = "return arguments[0].getBoundingClientRect().bottom"
    assert playground.page.execute_script(script, playground.element("run")) < height
    assert "press Run" in playground.element("lead").text


def test_results_are_grey_while_the_text_has_an_error(playground: Playground) -> None:
    playground.open_with(REQUEST)
    results = playground.cards()
    assert results
    assert not is_stale(playground)
    break_text(playground)
    assert is_stale(playground)
    assert "error" in playground.element("stale").text
    assert " ms on cpu" not in playground.status, "the statistics are of another text"
    playground.press(Keys.BACKSPACE)
    assert not is_stale(playground)
    assert playground.cards() == results
    playground.type(json.dumps(broken(3, op="tanhh")))
    playground.wait_for_status("unknown_op")
    assert playground.cards() == []
    assert "fix the error" in playground.element("results").text
    playground.type(json.dumps(broken(3, op="sin")))
    playground.wait_for_status("accepts")
    assert playground.cards() == []
    assert "Press Run" in playground.element("results").text


def test_late_results_of_a_replaced_text_are_grey(playground: Playground) -> None:
    """The user types while a run is in flight."""
    playground.open_with(REQUEST)
    slow = (
        "const send = fetch;"
        "window.fetch = async (...all) => { await new Promise(done => setTimeout(done, 300)); return send(...all) }"
    )
    playground.page.execute_script(slow)
    playground.element("run").click()
    playground.page.execute_script("arguments[0].focus()", playground.content)
    playground.press("x")
    playground.in_editor(".cm-lint-marker-error")
    playground.wait_for_status(" ms on cpu")
    assert is_stale(playground)


def test_operand_out_of_range_is_shown_as_written(playground: Playground) -> None:
    playground.open_with(broken(4, operands=[7]))
    assert "operand 7: no such node" in playground.drawn()[4]
    assert "of 7" in (playground.node(4).get_attribute("aria-label") or "")
    assert playground.rows()[4][4 - 1] == "7"
    playground.open_with(broken(4, operands=[-2]))
    assert "operand -2: no such node" in playground.drawn()[4]


def test_example_name_goes_when_its_text_changes(playground: Playground) -> None:
    playground.open("gallery=xor")
    assert playground.element("example").get_attribute("value") == "xor"
    assert playground.element("about").text.startswith("Two hidden units")
    playground.page.execute_script("arguments[0].focus()", playground.content)
    playground.press(" ")
    assert playground.element("example").get_attribute("value") == ""
    assert playground.element("about").text.startswith("Your own request")
    assert "#" not in playground.page.current_url
    playground.press(Keys.BACKSPACE)
    assert playground.element("example").get_attribute("value") == "xor", "the text is the example's again"


def test_keyless_server_asks_for_no_key(playground: Playground) -> None:
    playground.open()
    assert not playground.element("key").is_displayed()


def test_tensors_are_drawn(playground: Playground) -> None:
    """A line for the losses of the steps, a heat map for a matrix, bars for a vector, numbers for two elements."""
    playground.open("gallery=gradient_descent")
    losses = next(card for card in playground.cards() if card.startswith("losses (node 6) after each step"))
    assert "[Line chart of 30 numbers over the step, from 21 to 0.00097" in losses
    assert "Value of weights (node 5) | [2.00887, 0.959984]" in playground.cards()
    playground.open("gallery=onnx_net")
    charts = [card.partition("[")[2] for card in playground.cards()]
    assert [chart.partition(" of ")[0] for chart in charts if chart][:3] == ["Heat map", "Bar chart", "Heat map"]
    assert playground.all(".chart .minus")
    assert playground.all(".chart .plus")


def test_chosen_node_is_among_the_results(playground: Playground) -> None:
    playground.open_with(REQUEST)
    playground.node(3).click()
    assert playground.cards()[-2].startswith("Value of tanh (node 3) | [")
    assert playground.cards()[-1].startswith("Gradient with respect to tanh (node 3) | [1, 1]")


def test_large_tensors_are_drawn_in_blocks(playground: Playground) -> None:
    nodes = [{"op": "parameter", "name": "w"}, {"op": "square", "operands": [0]}, {"op": "sum", "operands": [1]}]
    data = np.arange(100 * 60, dtype=float).reshape(100, 60) / 10
    data[0, 0] = -1
    feeds = [{"node": 0, "tensor": {"dtype": "float64", "shape": [100, 60], "data": data.ravel().tolist()}}]
    playground.open_with({"graph": {"nodes": nodes}, "feeds": feeds})
    (card,) = [card for card in playground.cards() if "Gradient" in card]
    assert "each cell the mean of a 3 × 2 block" in card
    assert len(playground.all(".chart rect")) == 34 * 30


def test_task_from_an_empty_page(playground: Playground) -> None:
    """Build sum((x·w − t)²) with completion, repair a mistake, run it, and read the gradient."""
    playground.open()
    playground.element("example").send_keys("Your own")
    WebDriverWait(playground.page, PATIENCE).until(lambda _: playground.text == "", "the editor is empty")
    assert "Write a request" in playground.element("results").text or playground.in_editor(".cm-content")
    nodes = [
        {"op": "input", "name": "x"},
        {"op": "parameter", "name": "w"},
        {"op": "input", "name": "t"},
        {"op": "matmul", "operands": [0, 1]},
        {"op": "sub", "operands": [3, 2]},
        {"op": "square", "operands": [4]},
    ]
    x, w, t = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]), np.array([0.5, -1.0]), np.array([1.0, 0.0, -1.0])
    feeds = [
        {"node": node, "tensor": {"dtype": "float64", "shape": list(array.shape), "data": array.ravel().tolist()}}
        for node, array in enumerate((x, w, t))
    ]
    playground.page.execute_script("arguments[0].focus()", playground.content)
    playground.press('{"graph": {"nodes": [' + ", ".join(map(json.dumps, nodes)) + ', {"op": "su')
    labels = [each.text for each in playground.in_editor(".cm-completionLabel")]
    assert "sum" in labels
    playground.press(*([Keys.ARROW_DOWN] * labels.index("sum")), Keys.ENTER, Keys.ARROW_RIGHT, ', "operands": [6]')
    playground.press(Keys.ARROW_RIGHT, Keys.ARROW_RIGHT, Keys.ARROW_RIGHT, ', "feeds": ' + json.dumps(feeds))
    playground.wait_for_status("node 6")
    assert "operand 6: no such node" in playground.drawn()[6]
    assert json.loads(playground.text)["graph"]["nodes"][6] == {"op": "sum", "operands": [6]}
    playground.node(6).click()
    playground.press(Keys.ENTER)  # selects the node in the text
    playground.press(Keys.DELETE, '{"op": "sum", "operands": [5]}')
    playground.until_drawn("6 sum | float64[]")
    playground.element("run").click()
    playground.wait_for_status(" ms on cpu")
    residual = x @ w - t
    value, gradient = (residual**2).sum(), 2 * x.T @ residual
    assert playground.cards() == [
        f"Value of sum (node 6) | {value:.6g}",
        f"Gradient with respect to w (node 1) | [{gradient[0]:.6g}, {gradient[1]:.6g}]",
        "Gradient with respect to sum (node 6) | 1",  # of the chosen node
    ]
