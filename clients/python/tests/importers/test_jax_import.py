"""Imported JAX functions: names, trees, custom rules, free extents, keys, float32."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import gradserve_client as gs

pytest.importorskip("jax", reason="JAX is not installed")
pytest.importorskip("optax", reason="optax is not installed")

import jax
import jax.numpy as jnp
from jax import lax

from clients.python.tests.importers.jax_programs import PROGRAMS, TOKENS, normal
from gradserve_client.jax import import_function

X = normal(1, 4, 3)


@pytest.fixture(autouse=True)
def _x64() -> Iterator[None]:
    with jax.enable_x64(True):
        yield


def sized(params: Any, x: Any) -> Any:
    return {"mean": jnp.mean(x @ params["w"]), "all": [x @ params["w"], params["count"]]}


def test_leaves_and_results_are_named_by_their_paths(client: gs.Client) -> None:
    params = {"w": normal(2, 3, 2), "count": np.array(3)}
    model = import_function(sized, params, X)
    assert [*model.parameters] == ["params.w"]
    assert [*model.state] == ["params.count"]
    assert [*model.inputs] == ["x"]
    assert [*model.outputs] == ["result.all.0", "result.all.1", "result.mean"]
    assert {node.name for node in model.leaves.values()} == {"params.w", "params.count", "x"}
    answer = client.gradients(
        model.graph, model.feeds({"x": X}), of=model.outputs["result.mean"], outputs=[*model.outputs.values()]
    )
    result, expected = model.result(answer.values), sized(params, X)
    assert jax.tree.structure(result) == jax.tree.structure(expected)
    assert np.allclose(result["all"][0], expected["all"][0], rtol=1e-12)
    by_name = {name: answer.values[node] for name, node in model.outputs.items()}
    assert model.result(by_name)["mean"] == result["mean"]
    gradients = model.gradients(answer.gradients)
    assert gradients["count"] == 0
    assert np.allclose(gradients["w"], jax.grad(lambda w: jnp.mean(X @ w))(params["w"]), rtol=1e-12)


def test_arguments_have_the_names_of_the_parameters() -> None:
    model = import_function(
        lambda first, *others: first + others[0] + others[1]["b"], 1.0, 2.0, {"b": 3.0}, parameters=(2, 0)
    )
    assert [*model.parameters] == ["first", "others.1.b"]
    assert [*model.inputs] == ["others.0"]


def test_feeds_of_other_arguments(client: gs.Client) -> None:
    params = {"w": normal(2, 3, 2), "count": np.array(3)}
    model = import_function(sized, params, X)
    others = jax.tree.map(lambda leaf: leaf * 2, params)
    answer = client.forward(model.graph, model.feeds_of(others, X + 1), outputs=[*model.outputs.values()])
    assert np.allclose(model.result(answer.values)["mean"], sized(others, X + 1)["mean"], rtol=1e-12)
    with pytest.raises(gs.InputError, match="argument 0 differs in structure from its example"):
        model.feeds_of({"w": params["w"]}, X)
    with pytest.raises(gs.InputError, match="the function was imported with 2 arguments, not 1"):
        model.feeds_of(params)
    with pytest.raises(gs.InputError, match=r"'result\.mean' is missing"):
        model.results.build({"result.all.0": X, "result.all.1": 3})


def test_each_result_has_its_own_node(client: gs.Client) -> None:
    model = import_function(lambda x: (x, jnp.sin(x), jnp.sin(x), x), 0.5)
    assert len({node.id for node in model.outputs.values()}) == 4
    answer = client.forward(model.graph, model.feeds({}), outputs=[*model.outputs.values()])
    assert model.result(answer.values) == (0.5, np.sin(0.5), np.sin(0.5), 0.5)


@jax.custom_vjp
def wrong(x: Any) -> Any:
    return jnp.sin(x) * 2


wrong.defvjp(lambda x: (wrong(x), jnp.cos(x)), lambda cosine, g: (3 * cosine * g,))


def test_check_locates_a_wrong_custom_rule(client: gs.Client) -> None:
    model = import_function(lambda x: (wrong(jnp.exp(x)) ** 2).sum(), X)
    loss = model.outputs["result"]
    answer = client.gradients(model.graph, model.feeds({}), of=loss)
    expected = jax.grad(lambda x: (wrong(jnp.exp(x)) ** 2).sum())(X)
    true = jax.grad(lambda x: ((jnp.sin(jnp.exp(x)) * 2) ** 2).sum())(X)
    assert np.allclose(answer.gradients[model.parameters["x"]], expected, rtol=1e-12)
    assert not np.allclose(expected, true, rtol=0.1)
    before, _, after = (node for node in model.graph if node.op in {"exp", "call", "get_output"})
    certificate = client.check(model.graph, model.feeds({}), of=loss, wrt=[model.parameters["x"], before, after])
    assert not certificate.passed
    errors = {node.op: error for node, error in certificate.errors.items()}
    # gradients before the call are wrong and those after it are right, so the error is in the rule
    assert errors["parameter"] > 0.1
    assert errors["exp"] > 0.1
    assert errors["get_output"] < 1e-6


def test_custom_rules_body_uses_the_gradient_of_the_body(client: gs.Client) -> None:
    model = import_function(lambda x: (wrong(x) ** 2).sum(), X, custom_rules="body")
    answer = client.gradients(model.graph, model.feeds({}), of=model.outputs["result"])
    true = jax.grad(lambda x: ((jnp.sin(x) * 2) ** 2).sum())(X)
    assert np.allclose(answer.gradients[model.parameters["x"]], true, rtol=1e-12)


def test_custom_rule_has_second_derivatives(client: gs.Client) -> None:
    function = lambda x: (wrong(x) ** 2).sum()
    x = X[0]
    model = import_function(function, x)
    answer = client.hessian(model.graph, model.feeds({}), of=model.outputs["result"], wrt=[model.parameters["x"]])
    hessian = answer.hessian[model.parameters["x"], model.parameters["x"]]
    assert np.allclose(hessian, jax.jacrev(jax.grad(function))(x), rtol=1e-10)


@jax.custom_jvp
def turning(x: Any) -> Any:
    return jnp.sin(x)


turning.defjvps(lambda tangent, y, x: tangent * turning(x + jnp.pi / 2))


def test_recursive_rule_is_nan_beyond_its_highest_order(client: gs.Client) -> None:
    model = import_function(turning, 0.3)
    x, orders = model.parameters["x"], [model.outputs["result"]]
    for _ in range(3):
        orders.append(orders[-1].grad(x))
    answer = client.forward(model.graph, model.feeds({}), outputs=orders)
    values = [float(answer.values[node]) for node in orders]
    assert np.allclose(values[:3], [np.sin(0.3), np.cos(0.3), -np.sin(0.3)], rtol=1e-12)
    assert np.isnan(values[3])
    assert "custom_jvp_call turning: is run by a rule and has derivatives up to order 2: higher ones are NaN" in [
        str(note) for note in model.notes
    ]


def test_gradient_of_a_closed_over_value_is_nan_and_noted(client: gs.Client) -> None:
    """JAX refuses to differentiate with respect to a closed-over value; the importer gives NaN."""

    def function(x: Any, scale: Any) -> Any:
        factor = jnp.exp(scale)

        @jax.custom_vjp
        def scaled(x: Any) -> Any:
            return factor * jnp.sin(x)

        scaled.defvjp(lambda x: (jnp.sin(x), x), lambda x, cotangent: (cotangent * jnp.cos(x),))
        return scaled(x)

    model = import_function(function, 0.3, 0.2, parameters=(0, 1))
    answer = client.gradients(model.graph, model.feeds({}), of=model.outputs["result"])
    grad_x, grad_scale = (float(answer.gradients[leaf]) for leaf in model.parameters.values())
    assert grad_x == pytest.approx(np.cos(0.3), rel=1e-12)
    assert np.isnan(grad_scale)
    assert any("reads values of the enclosing function" in str(note) for note in model.notes)


def test_jax_functions_with_rules_become_single_nodes() -> None:
    ops = lambda function, *arguments: [node.op for node in import_function(function, *arguments).graph][
        len(arguments) :
    ]
    assert ops(jax.nn.relu, X) == ["relu"]
    assert ops(jax.nn.softplus, X) == ["softplus"]
    assert ops(jnp.linalg.inv, np.eye(3)) == ["inv"]
    assert ops(lambda x: jnp.linalg.slogdet(x)[1], np.eye(3)) == ["slogdet", "get_output"]
    assert "solve" in ops(jnp.linalg.solve, np.eye(3), np.ones(3))
    assert ops(jnp.linalg.cholesky, np.eye(3))[0] == "cholesky"


def test_functions_that_reuse_jax_names_are_traced(client: gs.Client) -> None:
    @jax.custom_jvp
    def relu(x: Any) -> Any:
        return jnp.maximum(x, 0)

    relu.defjvps(lambda tangent, y, x: 2 * tangent)
    inv = jax.jit(lambda x: jnp.linalg.solve(x, 2 * jnp.eye(3)))
    inv.__name__ = "inv"
    model = import_function(lambda x: relu(x).sum(), X)
    answer = client.gradients(model.graph, model.feeds({}), of=model.outputs["result"])
    assert np.array_equal(answer.gradients[model.parameters["x"]], np.full(X.shape, 2.0))


@pytest.mark.parametrize("axes", [(0, 0), (0, 1), (2, 0), (None, 1)])
def test_solve_under_vmap_uses_the_mapped_axes(client: gs.Client, axes: Any) -> None:
    """Three systems of three unknowns, so that all axes have the same extent."""
    a, b = normal(1, 3, 3, 3) + 3 * np.eye(3)[:, None], normal(2, 3, 3)
    matrix = a[0] + 3 * np.eye(3) if axes[0] is None else a.transpose(1, 0, 2)
    function = jax.vmap(jnp.linalg.solve, axes)
    model = import_function(function, matrix, b, parameters=(0, 1))
    answer = client.forward(model.graph, model.feeds({}), outputs=[model.outputs["result"]])
    assert np.allclose(answer.value, function(matrix, b), rtol=1e-10)


def test_extent_may_be_free(client: gs.Client) -> None:
    program = PROGRAMS["mlp"]
    params, x = program.arguments
    model = import_function(program.function, params, x, free={"x": [0]}, second=(params, x[:3]))
    assert model.inputs["x"].attrs["shape"] == [-1, 3]
    for rows in (1, 7):
        batch = normal(8, rows, 3)
        answer = client.gradients(model.graph, model.feeds({"x": batch}), of=model.outputs["result"].sum())
        expected = jax.grad(lambda p, x: program.function(p, x).sum())(params, batch)
        for one, other in zip(
            jax.tree.leaves(model.gradients(answer.gradients)), jax.tree.leaves(expected), strict=True
        ):
            assert np.allclose(one, other, rtol=1e-9, atol=1e-12)


def test_jax_keys_are_inputs(client: gs.Client) -> None:
    draw = lambda scale, key: scale * jax.random.normal(key, (3,))
    model = import_function(draw, 2.0, jax.random.key(0))
    key = jax.random.key(9)
    for feeds in (model.feeds({"key": key}), model.feeds_of(2.0, key)):
        value = client.forward(model.graph, feeds, outputs=[model.outputs["result"]]).value
        assert np.allclose(value, draw(2.0, key), rtol=1e-12)
    assert "random_uniform" in {node.op for node in model.graph}


def test_loop_cut_off_by_its_bound_gives_nan(client: gs.Client) -> None:
    function = lambda x: lax.while_loop(lambda y: y.sum() < 100, lambda y: y * 2, x)
    for most, fits in ((8, True), (3, False)):
        model = import_function(function, np.ones(3), max_steps=most)
        value = client.forward(model.graph, model.feeds({}), outputs=[model.outputs["result"]]).value
        assert np.array_equal(value, function(np.ones(3))) == fits
        assert np.isnan(value).all() != fits


def test_loops_stay_loops_unless_unrolled() -> None:
    function = lambda x: lax.fori_loop(0, 50, lambda i, y: jnp.sin(y) + i, x)
    assert "scan" in {node.op for node in import_function(function, X).graph}
    unrolled = [node.op for node in import_function(function, X, unroll=True).graph]
    assert unrolled.count("sin") == 50
    assert "scan" not in unrolled


def test_checkpoint_is_imported_as_recompute() -> None:
    (call,) = [node for node in import_function(jax.checkpoint(jnp.sin), X).graph if node.op == "call"]
    assert call.attrs["recompute"] is True


def test_stop_gradient_is_preserved(client: gs.Client) -> None:
    model = import_function(lambda x: (x * lax.stop_gradient(x)).sum(), X)
    answer = client.gradients(model.graph, model.feeds({}), of=model.outputs["result"])
    assert np.array_equal(answer.gradients[model.parameters["x"]], X)


def test_large_constants_are_built_by_the_server() -> None:
    model = import_function(lambda x: x + jnp.zeros(3000) + jnp.arange(3000), normal(1, 3000))
    assert sum(node.attrs["value"].size for node in model.graph if node.op == "constant") < 10


FLOAT32 = [
    "mlp",
    "transformer",
    "conv_net",
    "lstm_of_lengths",
    "reparametrised_samples",
    "gaussian_process",
    "branches",
]


@pytest.mark.parametrize("name", FLOAT32)
def test_float32(client: gs.Client, name: str) -> None:
    program = PROGRAMS[name]
    narrow = lambda leaf: np.asarray(leaf, {"f": np.float32, "i": np.int32}.get(np.asarray(leaf).dtype.kind))
    arguments = jax.tree.map(narrow, program.arguments)
    with jax.enable_x64(False):
        expected = program.function(*arguments)
        model = import_function(program.function, *arguments)
        answer = client.forward(model.graph, model.feeds_of(*arguments), outputs=[*model.outputs.values()])
    for actual, other in zip(jax.tree.leaves(model.result(answer.values)), jax.tree.leaves(expected), strict=True):
        assert actual.dtype == other.dtype
        assert np.allclose(actual, other, rtol=2e-5, atol=2e-5)


def test_jax_nn_attention_accumulates_in_float32(client: gs.Client) -> None:
    params = [normal(i, 2, 5, 2, 4) for i in range(3)]
    function = lambda qkv: jax.nn.dot_product_attention(*qkv, is_causal=True)
    model = import_function(function, params)
    value = client.forward(model.graph, model.feeds({}), outputs=[model.outputs["result"]]).value
    assert value.dtype == np.float64
    assert np.allclose(value, function(params), rtol=0, atol=1e-6)


def test_transformer_runs_on_resident_tensors(client: gs.Client) -> None:
    program = PROGRAMS["transformer"]
    model = import_function(program.function, *program.arguments)
    graph, residents = model.register(client), model.keep(client, "jax")
    assert "jax.params.blocks.0.down" in model.tensor_names("jax").values()
    value = graph.forward({**residents, model.inputs["tokens"]: TOKENS}, outputs=[model.outputs["result"]]).value
    assert np.allclose(value, program.function(*program.arguments), rtol=1e-10)
