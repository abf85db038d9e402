//! Graphs: operators, what is sent of a step, and what is refused.

use std::collections::HashSet;

use gradserve_client::ops::{AttentionOptions, InputOptions, ParameterOptions, SumOptions};
use gradserve_client::{Attribute, Attrs, DType, ErrorKind, Graph, Node, Tensor};
use serde_json::{json, Value};

fn nodes(graph: &Graph) -> Value {
    let stated: Value = graph.to_json().unwrap().parse().unwrap();
    stated["nodes"].clone()
}

/// The ops of all nodes but the first two, with the numbers that they have.
fn written(write: impl Fn(&Node, &Node) -> Node) -> Vec<String> {
    let graph = Graph::new();
    let last = write(&graph.input("a"), &graph.input("b"));
    assert_eq!(last.id(), graph.len() - 1);
    let nodes = nodes(&graph);
    let told = nodes.as_array().unwrap()[2..].iter().map(|node| {
        let number = node["attrs"]["scalar"].as_f64().map_or(String::new(), |number| format!(" {number}"));
        format!("{}{number} {}", node["op"].as_str().unwrap(), node["operands"])
    });
    told.collect()
}

#[test]
fn operators_append_nodes() {
    assert_eq!(written(|a, b| a + b), ["add [0,1]"]);
    assert_eq!(written(|a, b| b - a), ["sub [1,0]"]);
    assert_eq!(written(|a, b| a * b), ["mul [0,1]"]);
    assert_eq!(written(|a, b| a / b), ["div [0,1]"]);
    assert_eq!(written(|a, b| a % b), ["mod [0,1]"]);
    assert_eq!(written(|a, _| -a), ["neg [0]"]);
    assert_eq!(written(|a, _| a + 2.0), ["add_scalar 2 [0]"]);
    assert_eq!(written(|a, _| 2.0 + a), ["add_scalar 2 [0]"]);
    assert_eq!(written(|a, _| a - 2.0), ["sub_scalar 2 [0]"]);
    assert_eq!(written(|a, _| 2.0 - a), ["neg [0]", "add_scalar 2 [2]"]);
    assert_eq!(written(|a, _| a * 2.0), ["mul_scalar 2 [0]"]);
    assert_eq!(written(|a, _| a / 2.0), ["div_scalar 2 [0]"]);
    assert_eq!(written(|a, _| 2.0 / a), ["reciprocal [0]", "mul_scalar 2 [2]"]);
}

#[test]
fn operators_take_nodes_as_they_come() {
    assert_eq!(written(|a, b| (a + b) * a - -(a * b)), ["add [0,1]", "mul [2,0]", "mul [0,1]", "neg [4]", "sub [3,5]"]);
    assert_eq!(written(|a, b| a * (a + b)), ["add [0,1]", "mul [0,2]"]);
}

#[test]
fn what_is_not_stated_is_not_sent() {
    let graph = Graph::new();
    let x = graph.input("");
    x.sum();
    x.sum_with(SumOptions::new().axes([0]).keepdims(false));
    x.attention(&x, &x);
    x.attention_with(&x, &x, AttentionOptions::new().mask(&x));
    let wanted = json!([
        {"op": "input"},
        {"op": "sum", "operands": [0]},
        {"op": "sum", "operands": [0], "attrs": {"axes": [0], "keepdims": false}},
        {"op": "attention", "operands": [0, 0, 0]},
        {"op": "attention", "operands": [0, 0, 0, 0]},
    ]);
    assert_eq!(nodes(&graph), wanted);
}

#[test]
fn leaves_declare_what_they_are_fed() {
    let graph = Graph::new();
    graph.input_with("x", InputOptions::new().dtype(DType::Float32).shape([-1, 2]));
    assert_eq!(nodes(&graph), json!([{"op": "input", "name": "x", "attrs": {"dtype": "float32", "shape": [-1, 2]}}]));
}

#[test]
fn numbers_keep_all_of_their_digits() {
    let graph = Graph::new();
    let x = graph.input("");
    x.pad([1, 1]);
    graph.arange(9_007_199_254_740_993i64);
    graph.arange(0.5);
    graph.op("any_op", [&x], Attrs::new().with("least", i64::MIN).with("most", u64::MAX).with("minus", -0.0));
    let text = graph.to_json().unwrap();
    for digits in ["9007199254740993", "0.5", "-9223372036854775808", "18446744073709551615", "-0.0"] {
        assert!(text.contains(digits), "{digits} in {text}");
    }
}

#[test]
fn any_op_takes_attributes_of_any_kind() {
    let graph = Graph::new();
    let x = graph.input("");
    let attrs = Attrs::new()
        .with("truth", true)
        .with("word", "mean")
        .with("dtype", DType::Float16)
        .with("rows", [[1, 2], [3, 4]])
        .with("mixed", vec![Attribute::from(1), Attribute::from("a"), Attribute::from(Tensor::from(true))])
        .with("object", json!({"a": [null, 1.5]}));
    graph.op("an_op_of_tomorrow", [&x], attrs);
    let wanted = json!({
        "truth": true, "word": "mean", "dtype": "float16", "rows": [[1, 2], [3, 4]], "object": {"a": [null, 1.5]},
        "mixed": [1, "a", {"dtype": "bool", "shape": [], "data_b64": "AQ=="}],
    });
    assert_eq!(nodes(&graph)[1]["attrs"], wanted);
}

#[test]
fn the_first_error_is_kept_and_names_the_op() {
    let graph = Graph::new();
    let x = graph.input("x");
    x.add(&Graph::new().input("y"));
    x.mul_scalar(f64::NAN);
    let error = graph.check().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Input);
    assert_eq!(error.to_string(), r#"node 1 (add): operand 1: node 0 (input, "y") belongs to another graph"#);
    assert_eq!(graph.to_json().unwrap_err().to_string(), error.to_string());

    let graph = Graph::new();
    graph.input("").mul_scalar(f64::NAN);
    let error = graph.check().unwrap_err().to_string();
    assert_eq!(error, "node 1 (mul_scalar): attribute scalar: JSON cannot represent NaN");
}

#[test]
fn an_operand_in_the_middle_is_not_left_out() {
    use gradserve_client::ops::LayerNormOptions;
    let graph = Graph::new();
    let x = graph.input("");
    x.layer_norm_with(LayerNormOptions::new().bias(&x));
    assert!(graph.check().unwrap_err().to_string().contains("operand 1 is left out"));
}

#[test]
fn nodes_are_found() {
    let graph = Graph::new();
    let x = graph.input("x");
    let y = x.tanh();
    assert_eq!(graph.find("x").unwrap(), x);
    assert_eq!(graph.node(1).unwrap(), y);
    assert_eq!((y.op(), y.name(), y.graph()), ("tanh".to_owned(), None, &graph));
    assert_ne!(Graph::new().input("x"), x);
    assert_eq!(HashSet::from([x.clone(), y.clone(), x.clone()]).len(), 2);
    assert_eq!(graph.nodes().collect::<Vec<_>>(), [x, y.clone()]);
    y.named("x");
    for missing in [graph.find("x"), graph.find("z"), graph.find(""), graph.node(2)] {
        assert_eq!(missing.unwrap_err().kind(), ErrorKind::Input);
    }
}

#[test]
fn graphs_are_read_as_they_are_written() {
    let graph = Graph::with_opset(1);
    let x = graph.parameter("w");
    let c = graph.constant([1.5, -0.0]);
    graph.op("an_op_of_tomorrow", [&x, &c], Attrs::new().with("digits", i64::MAX).with("half", 1.0));
    let text = graph.to_json().unwrap();
    assert_eq!(Graph::from_json(&text).unwrap().to_json().unwrap(), text);
    for broken in ["[]", "{}", r#"{"nodes": [{"op": "tanh", "operands": [0]}]}"#, r#"{"nodes": [{}]}"#, "{"] {
        assert_eq!(Graph::from_json(broken).unwrap_err().kind(), ErrorKind::Malformed);
    }
}

#[test]
fn a_graph_says_which_opset_it_needs_unless_its_program_says_which_it_is_of() {
    type Write = fn(&Graph) -> Node;
    let written: [(Option<u64>, Write); 7] = [
        (Some(2), |graph| graph.input("seed").random_key()),
        (Some(2), |graph| graph.op("random_key", [&graph.input("seed")], Attrs::new())),
        (Some(2), |graph| graph.parameter_with("key", ParameterOptions::new().dtype("uint32"))),
        (Some(2), |graph| graph.input("x").cast(DType::UInt32)),
        (Some(2), |graph| graph.constant([0, u32::MAX])),
        (None, |graph| graph.input("x").cast(DType::Int32)),
        (None, |graph| graph.op("new", [], Attrs::new().with("dtype", "float8").with("word", "uint32"))),
    ];
    for (place, (opset, write)) in written.into_iter().enumerate() {
        for (graph, said) in [(Graph::new(), opset), (Graph::with_opset(1), Some(1))] {
            write(&graph);
            let sent: Value = serde_json::from_str(&graph.to_json().unwrap()).unwrap();
            assert_eq!(sent["opset"].as_u64(), said, "{place}");
        }
    }
}

#[test]
fn threads_may_write_one_graph() {
    let graph = Graph::new();
    let x = graph.input("");
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| (0..100).for_each(|_| drop(x.tanh())));
        }
    });
    assert_eq!(graph.len(), 401);
    graph.check().unwrap();
}
