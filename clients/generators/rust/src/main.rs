//! Register a graph, ask for its gradients, read a refusal: by what OpenAPI Generator made for Rust.

use openapi::apis::{compute_api, configuration::Configuration, graphs_api, Error};
use openapi::models::{
    Attrs, Feed, GradientsAnswer, GradientsRequest, Graph, GraphFunction, GraphNode, RegisterGraphRequest,
    RegisteredGradientsRequest, Tensor,
};
use serde_json::Value;

fn node(op: &str, operands: &[i64]) -> GraphNode {
    GraphNode { operands: Some(operands.to_vec()), ..GraphNode::new(op.to_owned()) }
}

fn stated(op: &str, operands: &[i64], attrs: Attrs) -> GraphNode {
    GraphNode { attrs: Some(Box::new(attrs)), ..node(op, operands) }
}

/// Four steps of a decay, as a function that a scan runs.
fn decay() -> Graph {
    let half = Attrs { scalar: Some(-0.5), ..Attrs::new() };
    let steps = Attrs { body: Some(0), carries: Some(1), length: Some(4), ..Attrs::new() };
    let stack = Attrs { index: Some(1), ..Attrs::new() };
    let euler = GraphFunction::new(
        vec![
            node("input", &[]),
            node("input", &[]),
            node("mul", &[0, 1]),
            stated("mul_scalar", &[2], half),
            node("add", &[1, 3]),
        ],
        vec![4, 4],
    );
    let nodes = vec![
        node("parameter", &[]),
        node("input", &[]),
        stated("scan", &[0, 1], steps),
        stated("get_output", &[2], stack),
        node("sum", &[3]),
    ];
    Graph { opset: Some(2), functions: Some(vec![euler]), ..Graph::new(nodes) }
}

fn feed(node: i64, shape: &[i64], data: &[f64]) -> Feed {
    let tensor = Tensor { data: Some(data.to_vec()), ..Tensor::new("float64".to_owned(), shape.to_vec()) };
    Feed { tensor: Some(Box::new(tensor)), ..Feed::new(node) }
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let configuration = Configuration {
        base_path: std::env::args().nth(1).expect("the address of a server"),
        ..Configuration::default()
    };
    let graph = Graph::new(vec![
        node("input", &[]),
        node("parameter", &[]),
        node("input", &[]),
        node("matmul", &[0, 1]),
        node("sub", &[3, 2]),
        node("square", &[4]),
        node("mean", &[5]),
    ]);
    let feeds = vec![
        feed(0, &[2, 2], &[1.0, 2.0, 3.0, 4.0]),
        feed(1, &[2], &[1.0, 1.0]),
        feed(2, &[2], &[2.0, 8.0]),
    ];
    let plain = GradientsRequest { feeds: Some(feeds.clone()), ..GradientsRequest::new(graph.clone()) };
    let registration = RegisterGraphRequest::new(graph);
    let registered =
        graphs_api::register_graph(&configuration, registration, None, None).await.expect("the graph is kept");
    let request = RegisteredGradientsRequest { feeds: Some(feeds), ..RegisteredGradientsRequest::new() };
    let answer = compute_api::gradients_of_graph(&configuration, &registered.graph_id, request, None, None)
        .await
        .expect("an answer");
    let gradient = answer.gradients[0].tensor.data.as_ref().expect("numbers");
    println!("gradient {} {}", gradient[0], gradient[1]);

    // The structs omit what is unset, so the nulls are set in their JSON.
    let mut nulls = serde_json::to_value(plain).expect("JSON");
    nulls["of"] = Value::Null;
    nulls["wrt"] = Value::Null;
    nulls["graph"]["nodes"][6]["attrs"] = Value::Null;
    nulls["graph"]["nodes"][6]["name"] = Value::Null;
    nulls["feeds"][0]["tensor"]["data_b64"] = Value::Null;
    let response = configuration.client.post(format!("{}/v1/gradients", configuration.base_path)).json(&nulls).send();
    let same: GradientsAnswer = response.await.expect("a response").json().await.expect("an answer");
    let gradient = same.gradients[0].tensor.data.as_ref().expect("numbers");
    println!("nulls {} {}", gradient[0], gradient[1]);

    let start = vec![feed(0, &[], &[1.0]), feed(1, &[], &[16.0])];
    let request = GradientsRequest { feeds: Some(start), ..GradientsRequest::new(decay()) };
    let answer = compute_api::gradients(&configuration, request, None, None).await.expect("an answer");
    let (value, slope) = (&answer.values[0].tensor.data, &answer.gradients[0].tensor.data);
    println!("functions {} {}", value.as_ref().expect("numbers")[0], slope.as_ref().expect("numbers")[0]);

    let wrong = Graph::new(vec![node("input", &[]), node("matmul", &[0, 7])]);
    match compute_api::gradients(&configuration, GradientsRequest::new(wrong), None, None).await {
        Err(Error::ResponseError(refused)) => {
            let problem: openapi::models::Problem = serde_json::from_str(&refused.content).expect("a report");
            println!("refused {} {}", problem.code, problem.node.expect("a node"));
        }
        other => panic!("{other:?}"),
    }
}
