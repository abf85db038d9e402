//! What a client does that no case of all clients reaches.

mod served;

use std::io::Write;
use std::time::Duration;

use gradserve_client::{
    Client, ClientBuilder, ErrorKind, Feeds, Graph, HessianLayout, Precision, RegisteredGraph, Resident, Store, Tensor,
};
use served::{begin_and_stay, reply, reply_with, serve, square, Still, SQUARE};

const W: &str = r#"{"tensor_id": "w", "etag": "0123456789abcdef"}"#;

fn still(url: &str) -> ClientBuilder {
    Client::builder(url).surroundings(Still)
}

#[test]
fn results_are_looked_up() {
    let (url, _) = serve(|_, stream| reply(stream, 200, SQUARE));
    let (graph, w) = square();
    let answer = still(&url).build().unwrap().gradients(&graph, [(&w, 3.0)]).send().unwrap();
    let gradient = &answer.gradients[&w];
    assert_eq!(gradient.item::<f64>().unwrap(), 6.0);
    assert_eq!(answer.gradients["w"], *gradient);
    assert_eq!(answer.gradients[0], *gradient);
    assert_eq!(answer.gradients.only().unwrap(), gradient);
    assert_eq!(answer.values.named("loss").unwrap().item::<f64>().unwrap(), 9.0);
    assert!(answer.gradients.get(&Graph::new().input("w")).is_none());
    assert!(answer.gradients.named("").is_none() && answer.gradients.at(1).is_none());
    assert_eq!(answer.fields["stats"]["device"], "cpu");
    assert!(!answer.fields.contains_key("values"));
}

#[test]
fn an_answer_that_does_not_end_is_over_at_the_deadline() {
    let (url, _) = serve(|_, stream| begin_and_stay(stream));
    let (graph, w) = square();
    let client = Client::builder(&url).timeout(Duration::from_millis(100)).build().unwrap();
    let error = client.forward(&graph, [(&w, 3.0)]).send().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Deadline);
    assert_eq!(error.to_string(), "no response within 100ms");
}

#[test]
fn a_deadline_may_be_as_far_as_can_be() {
    let (url, _) = serve(|_, stream| reply(stream, 200, SQUARE));
    let (graph, w) = square();
    still(&url).build().unwrap().gradients(&graph, [(&w, 3.0)]).timeout(Duration::MAX).send().unwrap();
}

#[test]
fn an_answer_without_a_length_is_read_as_far_as_it_may_be() {
    let (url, _) = serve(|_, stream| {
        let _ = write!(stream, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n{{\"values\"");
        while stream.write_all(&[b' '; 1000]).is_ok() {}
    });
    let (graph, w) = square();
    let client = still(&url).max_response_bytes(10_000).build().unwrap();
    assert_eq!(client.forward(&graph, [(&w, 3.0)]).send().unwrap_err().kind(), ErrorKind::TooLarge);
}

#[test]
fn threads_share_a_client_and_a_registered_graph() {
    let (url, requests) = serve(|seen, stream| match seen.line.as_str() {
        "POST /v1/graphs" => reply(stream, 201, r#"{"graph_id": "abc"}"#),
        _ => reply(stream, 200, SQUARE),
    });
    let (graph, w) = square();
    let client = still(&url).timeout(None).build().unwrap();
    let registered = client.register(&graph).send().unwrap();
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| client.gradients(&registered, [(&w, 3.0)]).send().unwrap());
        }
    });
    let seen: Vec<_> = requests.try_iter().map(|seen| seen.line).collect();
    assert_eq!(seen[0], "POST /v1/graphs");
    assert_eq!(seen[1..], ["POST /v1/graphs/abc/gradients"; 8]);
}

#[test]
fn a_registered_graph_is_what_it_was() {
    let (url, requests) = serve(|seen, stream| match seen.line.as_str() {
        "POST /v1/graphs" => reply(stream, 201, r#"{"graph_id": "abc", "graph": {"nodes": []}}"#),
        _ => reply(stream, 200, SQUARE),
    });
    let (graph, w) = square();
    let registered = RegisteredGraph::new(&graph).unwrap();
    assert_eq!((registered.id(), registered.fields()), (None, None));
    graph.find("loss").unwrap().tanh();
    let client = still(&url).timeout(None).build().unwrap();
    let large = Tensor::from(vec![0.0; 512]);
    client.gradients(&registered, [(&w, 3.0)]).cotangent(large).send().unwrap();
    let seen: Vec<_> = requests.try_iter().collect();
    assert!(!seen[0].body.contains("tanh"));
    // of what was the last node
    assert!(seen[1].body.contains("cotangents.1"));
    assert_eq!(registered.id().unwrap(), "abc");
    assert!(!registered.fields().unwrap().contains_key("graph"));
}

#[test]
fn graphs_that_are_there_are_found_and_forgotten() {
    let (url, requests) = serve(|seen, stream| match seen.line.as_str() {
        "GET /v1/graphs/abc" => reply(
            stream,
            200,
            r#"{"graph_id": "abc", "description": "a square", "node_count": 2,
                "graph": {"opset": 1, "nodes": [{"op": "parameter", "name": "w"}, {"op": "square", "operands": [0]}]}}"#,
        ),
        "DELETE /v1/graphs/abc" => reply(stream, 200, r#"{"graph_id": "abc", "node_count": 2}"#),
        _ => reply(stream, 200, SQUARE),
    });
    let client = still(&url).timeout(None).build().unwrap();
    let found = client.registered("abc").send().unwrap();
    let w = found.graph().find("w").unwrap();
    assert_eq!(client.gradients(&found, [(&w, 3.0)]).send().unwrap().gradients[&w].item::<f64>().unwrap(), 6.0);
    assert_eq!(client.unregister("abc").send().unwrap().node_count, 2);
    let seen: Vec<_> = requests.try_iter().collect();
    assert_eq!(seen[1].line, "POST /v1/graphs/abc/gradients");
    assert_eq!(seen[2].header("idempotency-key"), "a-key");
    assert_eq!(client.registered("").send().unwrap_err().kind(), ErrorKind::Input);
}

#[test]
fn listings_ask_for_no_more_than_is_looked_at() {
    let (url, requests) = serve(|seen, stream| match seen.line.as_str() {
        "GET /v1/tensors?limit=1" => reply(stream, 200, &format!(r#"{{"tensors": [{W}], "next": "a b"}}"#)),
        _ => reply_with(stream, 500, "", "{}"),
    });
    let client = still(&url).timeout(None).build().unwrap();
    let mut listing = client.tensors().limit(1);
    assert_eq!(listing.next().unwrap().unwrap().name, "w");
    assert_eq!(requests.try_iter().count(), 1);
    assert_eq!(listing.next().unwrap().unwrap_err().kind(), ErrorKind::Server);
    assert_eq!(requests.try_iter().next().unwrap().line, "GET /v1/tensors?limit=1&after=a%20b");
    assert!(listing.next().is_none());
}

#[test]
fn a_tensor_that_did_not_change_is_not_sent() {
    let (url, requests) = serve(|seen, stream| match seen.header("if-none-match") {
        "\"0123456789abcdef\"" => reply(stream, 304, ""),
        _ => reply(
            stream,
            200,
            r#"{"tensor_id": "w", "etag": "f", "tensor": {"dtype": "int64", "shape": [1], "data": [7]}}"#,
        ),
    });
    let client = still(&url).build().unwrap();
    let mut kept = Resident::named("w");
    kept.etag = "0123456789abcdef".to_owned();
    assert_eq!(client.get_if_changed(&kept).send().unwrap(), None);
    kept.etag = "another".to_owned();
    let found = client.get_if_changed(&kept).send().unwrap().unwrap();
    assert_eq!(found.tensor.item::<i64>().unwrap(), 7);
    assert_eq!((found.resident.etag.as_str(), found.resident.bytes), ("f", Some(8)));
    assert!(requests.try_iter().all(|seen| seen.header("accept") == "application/vnd.safetensors"));
}

#[test]
fn fields_that_are_newer_travel() {
    let (url, requests) = serve(|_, stream| reply(stream, 200, SQUARE));
    let (graph, w) = square();
    let client = still(&url).build().unwrap();
    client.gradients(&graph, [(&w, 3.0)]).extra("hurry", 9_007_199_254_740_993i64).send().unwrap();
    assert!(requests.recv().unwrap().body.contains(r#""hurry":9007199254740993"#));
}

#[test]
fn a_precision_travels() {
    let (url, requests) = serve(|_, stream| reply(stream, 200, SQUARE));
    let (graph, w) = square();
    let client = still(&url).build().unwrap();
    client.gradients(&graph, [(&w, 3.0)]).send().unwrap();
    assert!(!requests.recv().unwrap().body.contains("precision"));
    for (precision, word) in [
        (Precision::Float32, "float32"),
        (Precision::Tf32x3, "tf32x3"),
        (Precision::Tf32, "tf32"),
        (Precision::BFloat16, "bfloat16"),
    ] {
        client.gradients(&graph, [(&w, 3.0)]).precision(precision).send().unwrap();
        assert!(requests.recv().unwrap().body.contains(&format!(r#""precision":"{word}""#)));
    }
}

#[test]
fn a_layout_travels_and_a_matrix_is_looked_up() {
    const NO_BLOCKS: &str = r#"{"values": [], "gradients": [], "hessian": []"#;
    const MATRIX: &str = r#""matrix": {"offsets": [{"node": 1, "offset": 0, "size": 1},
        {"node": 0, "offset": 1, "size": 2}],
        "tensor": {"dtype": "float64", "shape": [3, 3], "data": [0, 1, 2, 3, 4, 5, 6, 7, 8]}}"#;
    let (url, requests) = serve(|seen, stream| {
        let more = if seen.body.contains("layout") { format!(", {MATRIX}") } else { String::new() };
        reply(stream, 200, &format!("{NO_BLOCKS}{more}}}"));
    });
    let (graph, w) = square();
    let client = still(&url).build().unwrap();
    assert!(client.hessian(&graph, [(&w, 3.0)]).send().unwrap().matrix.is_none());
    assert!(!requests.recv().unwrap().body.contains("layout"));
    let answer = client.hessian(&graph, [(&w, 3.0)]).layout(HessianLayout::Matrix).send().unwrap();
    assert!(requests.recv().unwrap().body.contains(r#""layout":"matrix""#));
    assert!(answer.hessian.is_empty() && !answer.fields.contains_key("matrix"));
    let matrix = answer.matrix.unwrap();
    assert_eq!(matrix.tensor.shape(), [3, 3]);
    assert_eq!((matrix.offsets[&w].offset, matrix.offsets[&w].size), (1, 2));
    assert_eq!(matrix.offsets["w"].range(), 1..3);
    assert_eq!(matrix.offsets["loss"].range(), 0..1);
}

#[test]
fn a_memory_budget_travels() {
    let (url, requests) = serve(|_, stream| reply(stream, 200, SQUARE));
    let (graph, w) = square();
    let client = still(&url).build().unwrap();
    client.gradients(&graph, [(&w, 3.0)]).send().unwrap();
    assert!(!requests.recv().unwrap().body.contains("memory_budget"));
    client.gradients(&graph, [(&w, 3.0)]).memory_budget((1 << 40) + 1).send().unwrap();
    assert!(requests.recv().unwrap().body.contains(r#""memory_budget":1099511627777"#));
}

#[test]
fn what_is_of_another_graph_is_not_sent() {
    let (url, requests) = serve(|_, stream| reply(stream, 200, SQUARE));
    let (graph, w) = square();
    let other = Graph::new().input("other");
    let client = still(&url).build().unwrap();
    let feeds = Feeds::from([(&w, 3.0)]);
    for error in [
        client.gradients(&graph, feeds.clone().with(&other, 1.0)).send().unwrap_err(),
        client.gradients(&graph, &feeds).of(&other).send().unwrap_err(),
        client.gradients(&graph, &feeds).wrt([&other]).send().unwrap_err(),
        client.gradients(&graph, &feeds).store(&other, Store::new("w")).send().unwrap_err(),
    ] {
        assert_eq!(error.kind(), ErrorKind::Input);
        assert!(error.to_string().starts_with("gradients: "), "{error}");
    }
    assert_eq!(requests.try_iter().count(), 0);
}

#[test]
fn places_in_functions_are_named() {
    for (place, wanted) in [
        (r#""function_node": 1"#, r#"c: d (at node 0 (call): node 1 (neg) of the function "f")"#),
        (r#""function_node": null"#, r#"c: d (at node 0 (call): function 0 ("f"))"#),
        (r#""function": 7"#, r#"c: d (at node 0 (call))"#),
    ] {
        let (url, _) = serve(move |_, stream| {
            reply(stream, 422, &format!(r#"{{"code": "c", "detail": "d", "node": 0, "function": 0, {place}}}"#));
        });
        let graph = Graph::new();
        let f = graph.function("f", |body| [body.input("").neg()]);
        graph.call([], &f);
        let error = still(&url).build().unwrap().forward(&graph, Feeds::new()).send().unwrap_err();
        assert_eq!(error.to_string(), wanted);
        assert_eq!(error.refusal().unwrap().extra.len(), 0);
    }
}

#[test]
fn nodes_of_a_refusal_are_named() {
    let (url, _) = serve(|_, stream| {
        let report = r#"{"code": "shape_mismatch", "detail": "No.", "node": 1, "expected": "this", "hint": [1]}"#;
        reply_with(stream, 422, "X: y\r\n", report);
    });
    let (graph, w) = square();
    let error = still(&url).build().unwrap().gradients(&graph, [(&w, 3.0)]).send().unwrap_err();
    assert_eq!(error.to_string(), r#"shape_mismatch: No. (at node 1 (square, "loss"))"#);
    assert_eq!((error.kind(), error.is_transport()), (ErrorKind::Graph, false));
    let refusal = error.refusal().unwrap();
    assert_eq!((refusal.node, refusal.expected.as_deref()), (Some(1), Some("this")));
    assert_eq!(refusal.extra["hint"][0], 1);
}

#[test]
fn a_call_that_keeps_has_one_key_in_all_of_its_tries() {
    let (url, requests) = serve(|_, _| {});
    let client = still(&url).build().unwrap();
    let put = || client.put("w", 1.0).if_match("*");
    let error = put().send().unwrap_err();
    assert_eq!((error.kind(), error.is_transport()), (ErrorKind::Connection, true));
    assert!(std::error::Error::source(&error).is_some());
    let keys: Vec<_> = requests.try_iter().map(|seen| seen.header("idempotency-key").to_owned()).collect();
    assert_eq!(keys, ["a-key"; 3]);
    put().idempotency(false).send().unwrap_err();
    let keys: Vec<_> = requests.try_iter().map(|seen| seen.header("idempotency-key").to_owned()).collect();
    assert_eq!(keys, [""]);
}

#[test]
fn keys_and_passwords_are_in_no_error_and_not_shown() {
    let secret = "gs_secret";
    let (url, requests) = serve(|_, _| {});
    let builder = still(&url).api_key(secret);
    let client = builder.clone().build().unwrap();
    let error = client.ops().send().unwrap_err();
    assert_eq!(requests.recv().unwrap().header("authorization"), "Bearer gs_secret");
    for shown in [format!("{error:?}"), error.to_string(), format!("{client:?}"), format!("{builder:?}")] {
        assert!(!shown.contains(secret), "{shown}");
    }
    for (url, key) in [("http://localhost", "gs_secret\n"), ("http://:gs_secret@localhost", "k"), ("gs_secret", "k")] {
        let error = Client::builder(url).api_key(key).build().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Input);
        assert!(!format!("{error:?} {:?}", Client::builder(url)).contains(secret), "{url}");
    }
}

#[test]
fn keys_are_made_anew() {
    let (url, requests) = serve(|_, stream| reply(stream, 200, W));
    let client = Client::new(url).unwrap();
    for _ in 0..2 {
        client.delete("w").send().unwrap();
    }
    let keys: Vec<_> = requests.try_iter().map(|seen| seen.header("idempotency-key").to_owned()).collect();
    assert_eq!(keys[0].len(), 32);
    assert_ne!(keys[0], keys[1]);
}
