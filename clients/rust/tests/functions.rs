//! Functions: how they are written, sent and read, and what is refused.

use gradserve_client::ops::{InputOptions, ScanOptions};
use gradserve_client::{Attrs, DType, ErrorKind, Graph, GraphFunction, Node};
use serde_json::{json, Value};

fn sent(graph: &Graph) -> Value {
    graph.to_json().unwrap().parse().unwrap()
}

/// A step of a decay.
fn euler(graph: &Graph) -> GraphFunction {
    graph.function("euler", |body| {
        let (k, y) = (body.input("k"), body.input("y"));
        let next = &y + &k * &y * -0.5;
        [next.clone(), next]
    })
}

/// The carries of four steps.
fn scanned(graph: &Graph, body: &GraphFunction) -> Node {
    let (k, y0) = (graph.parameter("k"), graph.input("y0"));
    graph.scan_with([&k, &y0], body, ScanOptions::new().carries(1).length(4))
}

#[test]
fn a_function_is_sent_with_its_graph() {
    let graph = Graph::new();
    let euler = euler(&graph);
    scanned(&graph, &euler).get_output(1).sum();
    let wanted = json!({
        "opset": 2,
        "functions": [{"name": "euler", "outputs": [4, 4], "nodes": [
            {"op": "input", "name": "k"},
            {"op": "input", "name": "y"},
            {"op": "mul", "operands": [0, 1]},
            {"op": "mul_scalar", "operands": [2], "attrs": {"scalar": -0.5}},
            {"op": "add", "operands": [1, 3]},
        ]}],
        "nodes": [
            {"op": "parameter", "name": "k"},
            {"op": "input", "name": "y0"},
            {"op": "scan", "operands": [0, 1], "attrs": {"body": 0, "carries": 1, "length": 4}},
            {"op": "get_output", "operands": [2], "attrs": {"index": 1}},
            {"op": "sum", "operands": [3]},
        ],
    });
    // A whole number is as good as one with a point.
    assert_eq!(sent(&graph).to_string(), wanted.to_string());
    assert_eq!(Graph::from_json(&wanted.to_string()).unwrap().to_json().unwrap(), graph.to_json().unwrap());
}

#[test]
fn a_handle_says_what_the_function_takes_and_gives() {
    let graph = Graph::new();
    let double = graph.function("", |body| [body.input_with("", InputOptions::new().dtype(DType::Float32)) * 2.0]);
    let euler = euler(&graph);
    assert_eq!((double.index(), double.name(), double.parameters().len()), (0, None, 1));
    assert_eq!((euler.index(), euler.name(), euler.body().len()), (1, Some("euler".into()), 5));
    assert_eq!(euler.parameters(), [euler.body().find("k").unwrap(), euler.body().find("y").unwrap()]);
    assert_eq!(euler.outputs(), vec![euler.body().node(4).unwrap(); 2]);
    assert_eq!(graph.functions().collect::<Vec<_>>(), [double, euler]);
    assert!(graph.is_empty());
}

#[test]
fn a_function_uses_those_before_it_and_those_within_it() {
    let graph = Graph::new();
    let double = graph.function("double", |body| [body.input("") * 2.0]);
    let outer = graph.function("outer", |body| {
        let inner = body.function("inner", |body| [body.input("").neg()]);
        let x = body.input("");
        let twice = body.call([&x], &double).get_output(0);
        [body.op("call", [&twice], Attrs::new().with("body", vec![&inner])).get_output(0)]
    });
    assert_eq!(outer.index(), 2);
    let functions = &sent(&graph)["functions"];
    assert_eq!(functions[1]["name"], "inner");
    assert_eq!(functions[2]["nodes"][1]["attrs"]["body"], 0);
    assert_eq!(functions[2]["nodes"][3]["attrs"]["body"], json!([1]));
    assert_eq!(functions[2]["outputs"], json!([4]));
}

#[test]
fn a_function_sees_only_what_is_passed_to_it() {
    let graph = Graph::new();
    let k = graph.parameter("k");
    graph.function("f", |body| [body.input("y") * &k]);
    let error = graph.check().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Input);
    let wanted = "node 1 (mul) of the function \"f\": operand 1: node 0 (parameter, \"k\") is outside this function, \
                  which can use only the operands passed to it";
    assert_eq!(error.to_string(), wanted);

    let graph = Graph::new();
    let k = graph.parameter("k");
    graph.function("f", |body| [&k * body.input("y")]);
    let wanted =
        "node 1 (mul): operand 1: node 0 (input, \"y\") of the function \"f\" is inside a function, and only the \
                  function's results can be used outside it";
    assert_eq!(graph.check().unwrap_err().to_string(), wanted);

    let graph = Graph::new();
    let k = graph.parameter("k");
    graph.function("", |_| [k]);
    let wanted =
        "a function: output 0: node 0 (parameter, \"k\") is outside this function, which can use only the operands \
                  passed to it";
    assert_eq!(graph.check().unwrap_err().to_string(), wanted);
}

#[test]
fn a_function_belongs_to_one_graph_and_is_complete() {
    let graph = Graph::new();
    let other = Graph::new();
    let euler = euler(&other);
    scanned(&graph, &euler);
    let wanted = "node 2 (scan): attribute body: function 0 (\"euler\") belongs to another graph";
    assert_eq!(graph.check().unwrap_err().to_string(), wanted);

    let y = euler.body().find("y").unwrap();
    y.tanh();
    let wanted = "node 5 (tanh) of the function \"euler\": the function is complete";
    assert_eq!(other.check().unwrap_err().to_string(), wanted);
    assert_eq!(other.to_json().unwrap_err().to_string(), wanted);
}

#[test]
fn a_function_is_not_sent_by_itself() {
    let graph = Graph::new();
    let euler = euler(&graph);
    let body = euler.body();
    let wanted = "the function \"euler\" cannot be sent by itself; send the graph that contains it";
    assert_eq!(body.to_json().unwrap_err().to_string(), wanted);
    assert_eq!(gradserve_client::RegisteredGraph::new(body).unwrap_err().to_string(), wanted);
}

#[test]
fn a_graph_says_the_opset_that_its_functions_need() {
    let graph = Graph::new();
    graph.function("", |body| [body.input("")]);
    assert_eq!(sent(&graph)["opset"], 2);
    let graph = Graph::with_opset(3);
    euler(&graph);
    assert_eq!(sent(&graph)["opset"], 3);
}

#[test]
fn what_is_no_function_is_refused() {
    for functions in ["1", "[1]", "[{}]", r#"[{"nodes": [], "outputs": [0]}]"#, r#"[{"nodes": [], "outputs": 1}]"#] {
        let text = format!(r#"{{"functions": {functions}, "nodes": []}}"#);
        assert_eq!(Graph::from_json(&text).unwrap_err().kind(), ErrorKind::Malformed, "{functions}");
    }
}
