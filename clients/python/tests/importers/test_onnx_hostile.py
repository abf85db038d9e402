"""Untrusted ONNX files: an import ends within its limits, reads no other files, and raises its own errors."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gradserve_client as gs

onnx = pytest.importorskip("onnx", reason="ONNX is not installed")

from onnx import TensorProto, helper  # noqa: E402 - it needs ONNX

from clients.python.tests.importers.made import model  # noqa: E402
from gradserve_client.importing import ImportLimits, ImportRefused, Rule  # noqa: E402
from gradserve_client.importing.command import main  # noqa: E402
from gradserve_client.onnx import evaluation, import_file, import_model  # noqa: E402
from gradserve_client.onnx.rules import RULES  # noqa: E402
from gradserve_client.onnx.sizes import held_bytes  # noqa: E402

X = np.ones((2, 3), np.float32)
SMALL = ImportLimits(nodes=500, steps=500, bytes=2**20)
LOOP = """endless (float[2,3] x) => (float[2,3] y) {
    n = Constant <value_int = 1000000000000> ()
    y = Loop <body = step (int64 i, bool c, float[2,3] v) => (bool still, float[2,3] w) {
        still = Identity (c)
        w = Identity (v)
    }> (n, , x)
}"""
#: a loop over constants, which constant folding would have to run
FOLDED_LOOP = """folded (float[2,3] x) => (float y) {
    n = Constant <value_int = 1000000000000> ()
    a = Constant <value_float = 1.0> ()
    y = Loop <body = step (int64 i, bool c, float v) => (bool still, float w) {
        still = Identity (c)
        w = Identity (v)
    }> (n, , a)
}"""
SCAN = """scanned (float[2,3] x) => (float[2,3] y) {
    shape = Constant <value_ints = [100000, 0]> ()
    s = ConstantOfShape (shape)
    y = Scan <num_scan_inputs = 1, body = step (float[2,3] v, float[0] e) => (float[2,3] w) {
        w = Identity (v)
    }> (x, s)
}"""
RECURRENT = """recurrent (float[2,3] x) => (float y) {
    shape = Constant <value_ints = [5000, 1, 1]> ()
    s = ConstantOfShape (shape)
    w = Constant <value = float[1,1,1] {1.0}> ()
    y = RNN <hidden_size = 1> (s, w, w)
}"""


def refusal(proto: Any, inputs: Any = None, limits: ImportLimits = SMALL) -> str:
    with pytest.raises(ImportRefused) as caught:
        import_model(proto, {"x": X} if inputs is None else inputs, limits=limits)
    return str(caught.value)


@pytest.mark.parametrize("text", [LOOP, FOLDED_LOOP, SCAN, RECURRENT], ids=["loop", "folded", "scan", "recurrent"])
def test_loop_stops_at_the_step_limit(text: str) -> None:
    message = refusal(model(text).SerializeToString())
    assert "(at the node that computes 'y'): the import would exceed its limit of 500 steps" in message


def functions(count: int, last: str) -> Any:
    """A model whose functions each call the next twice; the last one calls `last`."""
    opsets = [helper.make_opsetid("", 24), helper.make_opsetid("own", 1)]
    proto = model("twice (float[2,3] x) => (float[2,3] y) { y = Identity (x) }")
    for i in range(count):
        called = {"op_type": f"f{i + 1}", "domain": "own"} if i < count - 1 else {"op_type": last, "domain": "own"}
        nodes = [helper.make_node(inputs=[a], outputs=[b], **called) for a, b in (("a", "b"), ("b", "c"))]
        proto.functions.append(helper.make_function("own", f"f{i}", ["a"], ["c"], nodes, opsets))
    proto.functions.append(
        helper.make_function("own", "neg", ["a"], ["b"], [helper.make_node("Neg", ["a"], ["b"])], opsets)
    )
    proto.opset_import.append(helper.make_opsetid("own", 1))
    proto.graph.node[0].op_type, proto.graph.node[0].domain = "f0", "own"
    return proto


def test_nested_function_calls_stop_at_the_step_limit() -> None:
    message = refusal(functions(30, "neg").SerializeToString())
    assert "own.f0 (at the node that computes 'y'): the import would exceed its limit of 500 steps" in message


def test_functions_are_expanded_within_the_limits() -> None:
    imported = import_model(functions(3, "neg"), {"x": X}, limits=SMALL)
    assert [node.op for node in imported.graph].count("neg") == 8


@pytest.mark.parametrize("count", [1, 2, 30])
def test_recursive_function_is_refused(count: int) -> None:
    assert "it is a function that calls itself" in refusal(functions(count, "f0"))


def nested(depth: int, op: str) -> Any:
    """A model with nested bodies of If or Loop."""
    info = helper.make_tensor_value_info
    inner = helper.make_graph([helper.make_node("Neg", ["x"], ["y"])], "b", [], [info("y", 1, [2, 3])])
    for _ in range(depth):
        if op == "If":
            flat = helper.make_graph([], "b", [], [info("x", 1, [2, 3])])
            node = helper.make_node("If", ["c"], ["y"], then_branch=inner, else_branch=flat)
            inner = helper.make_graph([node], "b", [], [info("y", 1, [2, 3])])
            continue
        inner.input.extend([info("i", 7, []), info("on", 9, [])])
        del inner.output[:]
        inner.node.append(helper.make_node("Identity", ["on"], ["still"]))
        inner.output.extend([info("still", 9, []), info("y", 1, [2, 3])])
        inner = helper.make_graph([helper.make_node("Loop", ["n", ""], ["y"], body=inner)], "b", [], [])
        inner.output.append(info("y", 1, [2, 3]))
    proto = model("nested (float[2,3] x, bool c, int64 n) => (float[2,3] y) { y = Neg (x) }")
    del proto.graph.node[:]
    proto.graph.node.extend(inner.node)
    return proto


def test_bodies_nest_as_deeply_as_protobuf_allows() -> None:
    inputs = {"x": X, "c": np.array(True), "n": np.array(1)}
    assert import_model(nested(30, "If").SerializeToString(), inputs).outputs
    with pytest.raises(gs.InputError, match="this is not an ONNX model: DecodeError"):
        import_model(nested(32, "If").SerializeToString(), inputs)


def test_functions_nested_too_deeply_are_refused() -> None:
    proto = functions(40, "neg")
    for function in proto.functions[:-1]:
        del function.node[1]
        function.output[0] = "b"
    message = refusal(proto.SerializeToString())
    assert "bodies and functions are nested more than 32 levels deep" in message


def test_nested_loops_stop_at_the_step_limit() -> None:
    inputs = {"x": X, "c": np.array(True), "n": np.array(3)}
    assert "its limit of 500 steps" in refusal(nested(12, "Loop"), inputs)


@pytest.mark.parametrize("dims", [[10**12], [2**32, 2**32], [2**62, 2**62], [10**12, 0]])
def test_large_tensor_is_refused_before_it_is_read(dims: list[int]) -> None:
    proto = model("w (float[2,3] x) => (float[2,3] y) { y = Add (x, w) }")
    proto.graph.initializer.append(TensorProto(name="w", data_type=1, dims=dims))
    assert "tensor (at 'w'): the import would exceed its limit of" in refusal(proto.SerializeToString())


BROKEN: dict[str, tuple[dict[str, Any], str]] = {
    "negative": ({"dims": [-1, -2], "raw_data": bytes(8)}, "the shape of the tensor 'w', [-1, -2], has a negative"),
    "one negative": ({"dims": [-1], "raw_data": bytes(8)}, "the shape of the tensor 'w', [-1], has a negative extent"),
    "too short": ({"dims": [3], "raw_data": bytes(8)}, "the tensor 'w' of shape [3] cannot be read: ValueError"),
    "too long": ({"dims": [1], "float_data": [1.0, 2.0]}, "the tensor 'w' of shape [1] cannot be read: ValueError"),
    "half an element": ({"dims": [1], "raw_data": bytes(3)}, "the tensor 'w' of shape [1] cannot be read: ValueError"),
    "no data": ({"dims": [4]}, "the tensor 'w' of shape [4] cannot be read: ValueError"),
    "no dtype": ({"data_type": 99, "dims": []}, "the tensor 'w' has the element type 99, which ONNX does not define"),
    "no UTF-8": ({"data_type": 8, "dims": [1], "string_data": [b"\xff"]}, "cannot be read: UnicodeDecodeError"),
}


@pytest.mark.parametrize("where", ["initializer", "constant", "body"])
@pytest.mark.parametrize("name", BROKEN)
def test_broken_tensor_is_named(name: str, where: str) -> None:
    fields, sentence = BROKEN[name]
    tensor = TensorProto(**{"name": "w", "data_type": 1, **fields})
    proto = model("w (float[2,3] x, bool c) => (float[2,3] y) { y = Add (x, w) }")
    if where == "initializer":
        proto.graph.initializer.append(tensor)
    elif where == "constant":
        proto.graph.node.insert(0, helper.make_node("Constant", [], ["w"], value=tensor))
    else:
        output = helper.make_tensor_value_info("w", 1, None)
        body = helper.make_graph([], "b", [], [output], [tensor])
        proto.graph.node.insert(0, helper.make_node("If", ["c"], ["w"], then_branch=body, else_branch=body))
    with pytest.raises(gs.InputError) as caught:
        import_model(proto.SerializeToString(), {"x": X, "c": np.array(True)})
    assert sentence in str(caught.value)


#: small nodes whose results or intermediate results are large
AMPLIFYING = {
    "ConstantOfShape": "n = Constant <value_ints = [1000000, 1000000]> ()\n b = ConstantOfShape (n)",
    "no elements": "n = Constant <value_ints = [1000000000000, 0]> ()\n b = ConstantOfShape (n)",
    "Expand": "n = Constant <value_ints = [1000000, 1000000, 2, 3]> ()\n b = Expand (x, n)",
    "Tile": "n = Constant <value_ints = [1000000, 1000000]> ()\n b = Tile (x, n)",
    "Tile by itself": "n = Constant <value_ints = [1000000000]> ()\n b = Tile (n, n)",
    "Range": (
        "z = Constant <value_int = 0> ()\n n = Constant <value_int = 1000000000000> ()\n"
        "o = Constant <value_int = 1> ()\n b = Range (z, n, o)"
    ),
    "Range of floats": (
        "z = Constant <value_float = 0.0> ()\n n = Constant <value_float = 1.0> ()\n"
        "o = Constant <value_float = 1e-12> ()\n b = Range (z, n, o)"
    ),
    "OneHot": (
        "i = Constant <value_ints = [0, 1]> ()\n n = Constant <value_int = 1000000000000> ()\n"
        "v = Constant <value_floats = [0.0, 1.0]> ()\n b = OneHot (i, n, v)"
    ),
    "Pad": "n = Constant <value_ints = [0, 0, 1000000, 1000000]> ()\n b = Pad (x, n)",
    "Resize": "n = Constant <value_ints = [1000000, 1000000]> ()\n b = Resize (x, , , n)",
    "HannWindow": "n = Constant <value_int = 1000000000000> ()\n b = HannWindow (n)",
    "RandomNormal": "b = RandomNormal <shape = [1000000, 1000000]> ()",
    "Conv": (
        "s = Constant <value_ints = [1, 1, 2, 3]> ()\n i = Reshape (x, s)\n"
        "b = Conv <pads = [1000000, 1000000, 1000000, 1000000]> (i, i)"
    ),
    "dilated Conv": (
        "s = Constant <value_ints = [1, 1, 2, 3]> ()\n i = Reshape (x, s)\n"
        "b = Conv <dilations = [1000000, 1000000], pads = [500000, 1000000, 500000, 1000000], "
        "strides = [9000000, 9000000]> (i, i)"
    ),
    "MaxPool": (
        "s = Constant <value_ints = [1, 1, 2, 3]> ()\n i = Reshape (x, s)\n"
        "b = MaxPool <kernel_shape = [1000000, 1000000], pads = [500000, 500000, 500000, 500000]> (i)"
    ),
    "MaxUnpool": (
        "s = Constant <value_ints = [1, 1, 2, 3]> ()\n i = Reshape (x, s)\n j = Cast <to = 7> (i)\n"
        "n = Constant <value_ints = [1, 1, 9, 9]> ()\n b = MaxUnpool <kernel_shape = [1000000, 1000000]> (i, j, n)"
    ),
    "RoiAlign": (
        "s = Constant <value_ints = [1, 1, 2, 3]> ()\n i = Reshape (x, s)\n z = Constant <value_ints = [0]> ()\n"
        "r = Constant <value = float[1,4] {0.0, 0.0, 1.0, 1.0}> ()\n b = RoiAlign <sampling_ratio = 1000000> (i, r, z)"
    ),
    "outer product": (
        "n = Constant <value_ints = [10000, 1]> ()\n c = ConstantOfShape (n)\n r = Transpose (c)\n b = Add (c, r)"
    ),
    "Attention": (
        "n = Constant <value_ints = [1, 1, 10000, 1]> ()\n q = ConstantOfShape (n)\n b = Attention (q, q, q)"
    ),
}


@pytest.fixture
def _small_results(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make ONNX's evaluator fail if a node computes a large result."""
    compute = evaluation._by_reference

    def computed(*arguments: Any) -> list[Any]:
        results = compute(*arguments)
        assert held_bytes(results) <= SMALL.bytes
        return results

    monkeypatch.setattr(evaluation, "_by_reference", computed)


@pytest.mark.usefixtures("_small_results")
@pytest.mark.parametrize("name", AMPLIFYING)
def test_large_result_is_refused_before_it_is_computed(name: str) -> None:
    text = f"large (float[2,3] x) => (float y) {{ {AMPLIFYING[name]}\n y = ReduceSum <keepdims = 0> (b) }}"
    for constants in ([], ["x"]):
        with pytest.raises(gs.InputError, match=r"the import would exceed its limit of \d+ (bytes|steps)"):
            import_model(model(text).SerializeToString(), {"x": X}, constants=constants, limits=SMALL)


def test_overflowing_scale_is_refused() -> None:
    proto = model("""large (float[2,3] x) => (float[2,3] y) {
        n = Constant <value_floats = [1e19, 1.0]> ()
        y = Resize (x, , n)
    }""")
    assert "Resize (at the node that computes 'y'): the shape of its result would be [-" in refusal(proto)


def test_position_far_out_of_range_is_refused() -> None:
    proto = model("""far (float[2,3] x) => (float[2,1] y) {
        i = Constant <value = int64[2,1] {0, -4611686018427387904}> ()
        y = GatherElements <axis = 1> (x, i)
    }""")
    assert "GatherElements (at the node that computes 'y')" in refusal(proto)


@pytest.mark.parametrize("axis", [-(2**63), -3, 2, 2**62])
def test_out_of_range_axis_is_refused(axis: int) -> None:
    proto = model(
        f"norm (float[2,3] x, float[3] s) => (float[2,3] y) {{ y = LayerNormalization <axis = {axis}> (x, s) }}"
    )
    message = refusal(proto, {"x": X, "s": np.ones(3, np.float32)})
    assert f"its axis is {axis}, but its operand has 2 axes" in message


@pytest.mark.parametrize("batch", [-(2**63), -1, 2, 2**62])
def test_out_of_range_batch_dims_are_refused(batch: int) -> None:
    proto = model(f"""gathered (float[2,3] x) => (float[2] y) {{
        i = Constant <value = int64[2,1] {{0, 1}}> ()
        y = GatherND <batch_dims = {batch}> (x, i)
    }}""")
    assert f"its batch_dims are {batch}, but its operands have 2 and 2 axes" in refusal(proto)


def test_more_outputs_than_names_are_refused() -> None:
    proto = model("parts (float[2,3] x) => (float[1,3] y) { y = Split <num_outputs = 1000000000000> (x) }")
    assert "its num_outputs is 1000000000000, but it has 1 outputs" in refusal(proto)


def test_large_result_in_a_body_is_refused_before_computing() -> None:
    message = refusal(
        model("""inside (float[2,3] x) => (float[2,3] y) {
            n = Constant <value_int = 2> ()
            y = Loop <body = step (int64 i, bool c, float[2,3] v) => (bool still, float[2,3] w) {
                still = Identity (c)
                shape = Constant <value_ints = [1000000, 1000000]> ()
                big = ConstantOfShape (shape)
                sum = ReduceSum <keepdims = 0> (big)
                w = Add (v, sum)
            }> (n, , x)
        }""")
    )
    assert "Loop (at the node that computes 'y'): the import would exceed its limit of 1048576 bytes" in message


def test_many_results_together_are_refused() -> None:
    nodes = "\n".join(f"a{i + 1} = Neg (a{i})" for i in range(60))
    text = f"""chain (float[2,3] x) => (float y) {{
        n = Constant <value_ints = [10000]> ()
        a0 = ConstantOfShape (n)
        {nodes}
        y = ReduceSum <keepdims = 0> (a60)
    }}"""
    assert "its limit of 1048576 bytes" in refusal(model(text))
    assert import_model(model(text), {"x": X}).outputs


def test_results_of_a_loop_step_are_released() -> None:
    text = """stepped (float[100] v) => (float[100] y) {
        n = Constant <value_int = 50> ()
        y = Loop <body = step (int64 i, bool c, float[100] a) => (bool still, float[100] b) {
            still = Identity (c)
            b = Neg (a)
        }> (n, , v)
    }"""
    v = np.ones(100, np.float32)
    assert import_model(model(text), {"v": v}, limits=ImportLimits(bytes=10_000)).outputs


def test_more_nodes_than_the_limit_are_refused() -> None:
    nodes = "\n".join(f"a{i + 1} = Celu (a{i})" for i in range(200))
    message = refusal(model(f"long (float[2,3] a0) => (float[2,3] a200) {{ {nodes} }}"), {"a0": X})
    assert "its limit of 500 nodes" in message


def test_loop_body_with_sequences_is_refused() -> None:
    proto = model("""mapped (float[2,3] x) => (float[2,3] y) {
        n = Constant <value_int = 1> ()
        y = Loop <body = step (int64 i, bool c, float[2,3] v) => (bool still, float[2,3] w) {
            still = Identity (c)
            s = SequenceConstruct (v)
            w = SequenceAt (s, i)
        }> (n, , x)
    }""")
    assert "it works on sequences or optionals, which are not tensors" in refusal(proto)


def external(location: str, **entries: str) -> bytes:
    """A model whose weights are in another file."""
    tensor = TensorProto(name="w", data_type=1, dims=[3], data_location=TensorProto.EXTERNAL)
    for key, value in {"location": location, **entries}.items():
        tensor.external_data.add(key=key, value=value)
    proto = model("apart (float[2,3] x) => (float[2,3] y) { y = Add (x, w) }")
    proto.graph.initializer.append(tensor)
    data: bytes = proto.SerializeToString()
    return data


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A model's folder, with weights inside it and in its parent, which is the working directory."""
    inside = tmp_path / "model"
    inside.mkdir()
    weights = np.arange(3, dtype=np.float32).tobytes()
    (inside / "w.bin").write_bytes(bytes(4) + weights)
    (tmp_path / "secret.bin").write_bytes(weights)
    monkeypatch.chdir(tmp_path)
    return inside


@pytest.mark.usefixtures("folder")
def test_external_data_is_not_read_for_a_model_in_bytes() -> None:
    data = external("secret.bin")
    for proto in (data, onnx.load_from_string(data)):
        with pytest.raises(gs.InputError, match=r"'secret\.bin', which is read only if the model is imported by"):
            import_model(proto, {"x": X})


@pytest.mark.usefixtures("folder")
def test_external_data_of_a_constant_is_not_read_for_bytes() -> None:
    proto = onnx.load_from_string(external("secret.bin"))
    node = helper.make_node("Constant", [], ["w"], value=proto.graph.initializer[0])
    del proto.graph.initializer[:]
    proto.graph.node.insert(0, node)
    with pytest.raises(gs.InputError, match="is read only if the model is imported by its path"):
        import_model(proto.SerializeToString(), {"x": X})


def test_external_data_in_the_folder_is_read(folder: Path) -> None:
    (folder / "net.onnx").write_bytes(external("w.bin", offset="4", length="12"))
    imported = import_model(folder / "net.onnx", {"x": X})
    assert imported.values["w"].tolist() == [0.0, 1.0, 2.0]
    assert import_file(folder / "net.onnx", {}, {}).values["w"].tolist() == [0.0, 1.0, 2.0]


def link(folder: Path) -> None:
    (folder / "w.bin").unlink()
    (folder / "w.bin").symlink_to(folder.parent / "secret.bin")


def circle(folder: Path) -> None:
    (folder / "w.bin").unlink()
    (folder / "w.bin").symlink_to(folder / "w.bin")


def pipe(folder: Path) -> None:
    (folder / "w.bin").unlink()
    os.mkfifo(folder / "w.bin")


def directory(folder: Path) -> None:
    (folder / "w.bin").unlink()
    (folder / "w.bin").mkdir()


OUTSIDE: dict[str, tuple[dict[str, str], Callable[[Path], None] | None, str]] = {
    "parent": ({"location": "../secret.bin"}, None, "is not a regular file in the model's folder"),
    "absolute": ({"location": "/dev/zero"}, None, "is not a regular file in the model's folder"),
    "the folder": ({"location": ""}, None, "is not a regular file in the model's folder"),
    "missing": ({"location": "none.bin"}, None, "cannot be read from 'none.bin'"),
    "no path": ({"location": "a\0b"}, None, "cannot be read from"),
    "link": ({}, link, "is not a regular file in the model's folder"),
    "circle": ({}, circle, "cannot be read from 'w.bin'"),
    "pipe": ({}, pipe, "is not a regular file in the model's folder"),
    "directory": ({}, directory, "is not a regular file in the model's folder"),
    "offset beyond": ({"offset": "5", "length": "12"}, None, "are 12 bytes at 5 of 'w.bin', which has 16"),
    "offset far beyond": ({"offset": "1000000000000"}, None, "are 0 bytes at 1000000000000 of 'w.bin'"),
    "negative offset": (
        {"offset": "-4"},
        None,
        "the offset of the external data of the tensor 'w' is not a number of bytes: '-4'",
    ),
    "no length": (
        {"length": "all"},
        None,
        "the length of the external data of the tensor 'w' is not a number of bytes: 'all'",
    ),
    "another length": ({"offset": "4", "length": "8"}, None, "the tensor 'w' of shape [3] cannot be read"),
}


@pytest.mark.parametrize("name", OUTSIDE)
def test_external_data_outside_the_folder_is_refused(name: str, folder: Path) -> None:
    entries, prepare, sentence = OUTSIDE[name]
    if prepare is not None:
        prepare(folder)
    (folder / "net.onnx").write_bytes(external(**{"location": "w.bin", **entries}))
    with pytest.raises(gs.InputError) as caught:
        import_model(folder / "net.onnx", {"x": X})
    assert sentence in str(caught.value)


def test_external_data_counts_as_bytes(folder: Path) -> None:
    (folder / "net.onnx").write_bytes(external("w.bin", offset="4"))
    with (folder / "w.bin").open("r+b") as file:
        file.truncate(2**40)
    with pytest.raises(ImportRefused, match=r"tensor \(at 'w'\): the import would exceed its limit of \d+ bytes"):
        import_model(folder / "net.onnx", {"x": X})


def test_path_that_is_not_a_file_is_refused(folder: Path) -> None:
    os.mkfifo(folder / "net.onnx")
    for path in (folder / "net.onnx", folder):
        with pytest.raises(gs.InputError, match="is not a regular file"):
            import_model(path, {"x": X})


@pytest.mark.parametrize(
    ("dims", "sentence"),
    [
        ([10**12], "input (at 'x'): the import would exceed its limit of 8589934592 bytes"),
        ([2**32, 2**32], "input (at 'x'): the import would exceed its limit of 8589934592 bytes"),
        ([-1, -2], "the shape of 'x', [-1, -2], has a negative extent"),
    ],
)
def test_input_shape_is_checked(
    dims: list[int], sentence: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    proto = model("stated (float[2,3] x) => (float[2,3] y) { y = Neg (x) }")
    proto.graph.input[0].CopyFrom(helper.make_tensor_value_info("x", 1, dims))
    (tmp_path / "net.onnx").write_bytes(proto.SerializeToString())
    assert main(["import", str(tmp_path / "net.onnx"), "--dry-run"]) == 1
    assert sentence in capsys.readouterr().err


def test_input_element_type_is_checked() -> None:
    proto = model("stated (float[2,3] x) => (float[2,3] y) { y = Neg (x) }")
    proto.graph.input[0].type.tensor_type.elem_type = 99
    with pytest.raises(gs.InputError, match="'x' has the element type 99, which ONNX does not define"):
        import_model(proto.SerializeToString(), {"x": X})


def test_command_accepts_limits(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    onnx.save(model(LOOP), tmp_path / "net.onnx")
    assert main(["import", str(tmp_path / "net.onnx"), "--dry-run", "--limit-steps", "50"]) == 1
    assert "its limit of 50 steps" in capsys.readouterr().err
    assert main(["import", str(tmp_path / "net.onnx"), "--dry-run", "--limit-bytes", "0"]) == 1
    assert capsys.readouterr().err == "the limit on bytes must be a positive integer, not 0\n"


def test_importer_error_names_the_node(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(_: Any) -> Any:
        raise KeyError("axis")

    monkeypatch.setitem(RULES._rules, "Neg", Rule("Neg", fails))
    with pytest.raises(
        gs.InputError, match=r"the importer failed on Neg \(at the node that computes 'y'\): KeyError"
    ) as e:
        import_model(model("n (float[2,3] x) => (float[2,3] y) { y = Neg (x) }"), {"x": X})
    assert isinstance(e.value.__cause__, KeyError)
