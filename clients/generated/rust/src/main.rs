//! Register a graph, ask for its gradients, read a refusal: by what OpenAPI Generator made for Rust.

use openapi::apis::{compute_api, configuration::Configuration, graphs_api, Error};
use openapi::models::{
    Feed, GradientsRequest, Graph, GraphNode, RegisterGraphRequest, RegisteredGradientsRequest, Tensor,
};

fn node(op: &str, operands: &[i64]) -> GraphNode {
    GraphNode { operands: Some(operands.to_vec()), ..GraphNode::new(op.to_owned()) }
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
    let registration = RegisterGraphRequest::new(graph);
    let registered =
        graphs_api::register_graph(&configuration, registration, None, None).await.expect("the graph is kept");
    let request = RegisteredGradientsRequest { feeds: Some(feeds), ..RegisteredGradientsRequest::new() };
    let answer = compute_api::gradients_of_graph(&configuration, &registered.graph_id, request, None, None)
        .await
        .expect("an answer");
    let gradient = answer.gradients[0].tensor.data.as_ref().expect("numbers");
    println!("gradient {} {}", gradient[0], gradient[1]);

    let wrong = Graph::new(vec![node("input", &[]), node("matmul", &[0, 7])]);
    match compute_api::gradients(&configuration, GradientsRequest::new(wrong), None, None).await {
        Err(Error::ResponseError(refused)) => {
            let problem: openapi::models::Problem = serde_json::from_str(&refused.content).expect("a report");
            println!("refused {} {}", problem.code, problem.node.expect("a node"));
        }
        other => panic!("{other:?}"),
    }
}
