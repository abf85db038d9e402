//! The client whose calls are awaited: all that is its own.

#![cfg(feature = "async")]

mod served;

use std::io::{Read, Write};
use std::sync::mpsc::channel;
use std::sync::Mutex;
use std::time::Duration;

use gradserve_client::{AsyncClient, Client, ErrorKind, Tensor};
use served::{begin_and_stay, reply, serve, square, Still, SQUARE};

fn still(url: &str) -> AsyncClient {
    Client::builder(url).surroundings(Still).max_response_bytes(10_000).build_async().unwrap()
}

#[tokio::test]
async fn calls_are_awaited_together() {
    let (url, requests) = serve(|_, stream| reply(stream, 200, SQUARE));
    let (graph, w) = square();
    let client = still(&url);
    let calls: Vec<_> = (0..8)
        .map(|_| {
            let (client, graph, w) = (client.clone(), graph.clone(), w.clone());
            // Their futures go to other threads.
            tokio::spawn(async move { client.gradients(&graph, [(&w, 3.0)]).send().await })
        })
        .collect();
    for call in calls {
        assert_eq!(call.await.unwrap().unwrap().gradients[&w].item::<f64>().unwrap(), 6.0);
    }
    assert_eq!(requests.try_iter().count(), 8);
}

#[tokio::test]
async fn bodies_go_in_pieces() {
    let (url, requests) = serve(|_, stream| reply(stream, 200, SQUARE));
    let (graph, w) = square();
    let large = Tensor::from(vec![1.0; 5000]);
    still(&url).forward(&graph, [(&w, large)]).timeout(Duration::MAX).send().await.unwrap();
    let seen = requests.recv().unwrap();
    assert!(seen.header("content-length").parse::<usize>().unwrap() > 40_000);
    assert!(seen.body.contains("feeds.0"));
}

#[tokio::test]
async fn a_call_that_is_dropped_is_given_up() {
    let (closed, is_closed) = channel();
    let closed = Mutex::new(closed);
    let (url, requests) = serve(move |_, stream| {
        let rest = stream.read(&mut [0]);
        let _ = closed.lock().unwrap().send(rest.unwrap_or(0));
    });
    let (graph, w) = square();
    let client = still(&url);
    let call = tokio::spawn(async move { client.forward(&graph, [(&w, 3.0)]).timeout(None).send().await });
    let requests = tokio::task::spawn_blocking(move || requests.recv().map(|_| requests)).await.unwrap().unwrap();
    call.abort();
    assert!(call.await.unwrap_err().is_cancelled());
    let rest = tokio::task::spawn_blocking(move || is_closed.recv()).await.unwrap();
    assert_eq!(rest, Ok(0));
    assert_eq!(requests.try_iter().count(), 0);
}

#[tokio::test]
async fn the_deadline_holds_within_an_answer() {
    let (url, _) = serve(|_, stream| begin_and_stay(stream));
    let (graph, w) = square();
    let client = Client::builder(&url).build_async().unwrap();
    let call = client.forward(&graph, [(&w, 3.0)]).timeout(Duration::from_millis(100));
    assert_eq!(call.send().await.unwrap_err().kind(), ErrorKind::Deadline);
}

#[tokio::test]
async fn what_breaks_off_is_tried_again() {
    let (url, requests) = serve(|_, stream| {
        let _ = write!(stream, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{{");
    });
    let error = still(&url).ops().send().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Connection);
    assert_eq!(requests.try_iter().count(), 3);
}

#[tokio::test]
async fn answers_are_read_as_far_as_they_may_be() {
    for length in ["Content-Length: 1000000\r\n", ""] {
        let (url, requests) = serve(move |_, stream| {
            let _ = write!(stream, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n{length}\r\n");
            while stream.write_all(&[b' '; 1000]).is_ok() {}
        });
        assert_eq!(still(&url).ops().send().await.unwrap_err().kind(), ErrorKind::TooLarge);
        assert_eq!(requests.try_iter().count(), 1);
    }
}

#[tokio::test]
async fn redirects_are_not_followed() {
    let (url, requests) = serve(|_, stream| {
        let _ = write!(stream, "HTTP/1.1 307 Elsewhere\r\nLocation: /elsewhere\r\nContent-Length: 0\r\n\r\n");
    });
    assert_eq!(still(&url).ops().send().await.unwrap_err().kind(), ErrorKind::Malformed);
    assert_eq!(requests.try_iter().count(), 1);
}

#[tokio::test]
async fn listings_go_on() {
    let (url, requests) = serve(|seen, stream| match seen.line.as_str() {
        "GET /v1/graphs" => reply(stream, 200, r#"{"graphs": [{"graph_id": "a", "node_count": 1}], "next": "a"}"#),
        _ => reply(stream, 200, r#"{"graphs": [{"graph_id": "b", "node_count": 1}]}"#),
    });
    let client = Client::builder(&url).surroundings(Still).timeout(None).build_async().unwrap();
    let mut listing = client.graphs();
    let mut ids = Vec::new();
    while let Some(graph) = listing.next().await {
        ids.push(graph.unwrap().id);
    }
    assert_eq!(ids, ["a", "b"]);
    assert_eq!(requests.try_iter().nth(1).unwrap().line, "GET /v1/graphs?after=a");
}
