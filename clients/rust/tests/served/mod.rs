//! A server that answers as a test says, each connection once.

#![allow(dead_code)] // no test uses all of it

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{channel, Receiver};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use gradserve_client::{Graph, Node, Surroundings};

/// A request as it came.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// Method, path and query.
    pub line: String,
    pub headers: Vec<String>,
    pub body: String,
}

/// The address of a server, and the requests that come.
pub fn serve(answer: impl Fn(&Seen, &mut TcpStream) + Send + Sync + 'static) -> (String, Receiver<Seen>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let (sender, requests) = channel();
    let answer = Arc::new(answer);
    thread::spawn(move || {
        for stream in listener.incoming() {
            let (answer, sender) = (Arc::clone(&answer), sender.clone());
            thread::spawn(move || {
                let mut stream = stream.unwrap();
                let seen = read(&stream);
                let _ = sender.send(seen.clone());
                answer(&seen, &mut stream);
            });
        }
    });
    (url, requests)
}

fn read(stream: &TcpStream) -> Seen {
    let mut lines = BufReader::new(stream);
    let mut seen = Seen::default();
    loop {
        let mut line = String::new();
        lines.read_line(&mut line).unwrap();
        match line.trim_end() {
            "" => break,
            stated if seen.line.is_empty() => seen.line = stated.replace(" HTTP/1.1", ""),
            stated => seen.headers.push(stated.to_owned()),
        }
    }
    let length = seen.header("content-length").parse().unwrap_or(0);
    let mut body = vec![0; length];
    lines.read_exact(&mut body).unwrap();
    seen.body = String::from_utf8_lossy(&body).into_owned();
    seen
}

impl Seen {
    pub fn header(&self, name: &str) -> &str {
        let mut stated = self.headers.iter().filter_map(|line| line.split_once(": "));
        stated.find(|(each, _)| each.eq_ignore_ascii_case(name)).map_or("", |(_, value)| value)
    }
}

/// Answers in JSON.
pub fn reply(stream: &mut TcpStream, status: u16, body: &str) {
    reply_with(stream, status, "", body);
}

/// Answers in JSON, with some lines more in the header.
pub fn reply_with(stream: &mut TcpStream, status: u16, headers: &str, body: &str) {
    let length = body.len();
    let _ = write!(
        stream,
        "HTTP/1.1 {status} Told\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\
         Connection: close\r\n{headers}\r\n{body}"
    );
}

/// Begins an answer, and waits until nobody listens any more.
pub fn begin_and_stay(stream: &mut TcpStream) {
    let _ = write!(stream, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{{");
    let _ = stream.read(&mut [0]);
}

/// What is answered to the gradients of the square of 3.
pub const SQUARE: &str = r#"{
    "values": [{"node": 1, "tensor": {"dtype": "float64", "shape": [], "data": [9]}}],
    "gradients": [{"node": 0, "tensor": {"dtype": "float64", "shape": [], "data": [6]}}],
    "disconnected": [], "stats": {"device": "cpu"}}"#;

/// A graph of two nodes, and its parameter.
pub fn square() -> (Graph, Node) {
    let graph = Graph::new();
    let w = graph.parameter("w");
    w.square().named("loss");
    (graph, w)
}

/// Waits end at once, on a clock that stands.
pub struct Still;

impl Surroundings for Still {
    fn now(&self) -> Duration {
        Duration::ZERO
    }

    fn pass(&self, _: Duration) -> bool {
        true
    }

    fn chance(&self) -> f64 {
        0.5
    }

    fn new_key(&self) -> String {
        "a-key".to_owned()
    }
}
