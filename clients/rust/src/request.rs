//! Requests: method, path, query, headers and body. Nothing here opens a connection.

use std::fmt::Write;
use std::time::Duration;

use serde_json::Value;
use ureq::http::Method;

use crate::memory::Memory;
use crate::message::{size_of_constants, Asked, Message, JSON, SAFETENSORS};
use crate::safetensors::Safetensors;
use crate::{Error, Form, Graph, Result, Tensor};

/// A request to send. A request that `keeps` (stores) something is retried only under an Idempotency-Key.
#[derive(Clone)]
pub(crate) struct Request {
    pub(crate) method: Method,
    pub(crate) path: String,
    query: Vec<(&'static str, String)>,
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) body: Vec<Memory>,
    pub(crate) keeps: bool,
}

impl Request {
    fn new(method: Method, path: String) -> Self {
        Self { method, path, query: Vec::new(), headers: Vec::new(), body: Vec::new(), keeps: false }
    }

    pub(crate) fn get(path: String) -> Self {
        Self::new(Method::GET, path)
    }

    fn with_body(mut self, (media, body): (&'static str, Vec<Memory>), accept: &str) -> Self {
        self.headers.push(("Content-Type", media.to_owned()));
        self.headers.push(("Accept", accept.to_owned()));
        self.body = body;
        self
    }

    /// Adds a condition, if there is one.
    fn condition(&mut self, name: &'static str, etag: Option<&str>) -> bool {
        let Some(etag) = etag else { return false };
        let quoted = if etag == "*" { etag.to_owned() } else { format!("\"{etag}\"") };
        self.headers.push((name, quoted));
        true
    }

    /// Returns the path and the query with the remaining time.
    pub(crate) fn target(&self, left: Option<Duration>) -> String {
        let timeout = left.map(|left| ("timeout_ms", left.as_millis().max(1).to_string()));
        let mut target = self.path.clone();
        let mut mark = '?';
        for (name, value) in self.query.iter().cloned().chain(timeout) {
            let _ = write!(target, "{mark}{name}={}", encoded(&value));
            mark = '&';
        }
        target
    }
}

/// Builds a call on the first nodes of a graph. The nodes of a registered graph are not sent.
pub(crate) fn computing(
    call: &str,
    graph: &Graph,
    count: usize,
    asked: &Asked,
    is_registered: bool,
) -> Result<Request> {
    let constants = if is_registered { 0 } else { size_of_constants(graph, count) };
    let form = asked.form.unwrap_or_else(|| Form::default_for(asked.size() + constants));
    let mut message = Message::new(form);
    if !is_registered {
        let stated = message.graph(graph, count);
        message.fields.insert("graph".into(), stated);
    }
    message.fill(asked, graph, count).map_err(|error| error.within(call))?;
    if let Some(encoding) = form.encoding() {
        message.fields.insert("encoding".into(), encoding.into());
    }
    // The response uses the encoding of the request. If a feed is a resident tensor, results may be large, so the
    // client asks for safetensors.
    let is_file = form == Form::Safetensors || asked.form.is_none() && asked.feeds_resident();
    let accept = if is_file { SAFETENSORS } else { JSON };
    let mut made = Request::new(Method::POST, format!("/v1/{call}")).with_body(message.body(), accept);
    made.keeps = !asked.store.is_empty();
    Ok(made)
}

/// Builds the request that registers a graph. Repeating it changes nothing.
pub(crate) fn registering(graph: &Graph, count: usize, description: Option<&str>, form: Option<Form>) -> Request {
    let form = form.unwrap_or_else(|| Form::default_for(size_of_constants(graph, count)));
    let mut message = Message::new(form);
    if let Some(description) = description {
        message.fields.insert("description".into(), description.into());
    }
    let stated = message.graph(graph, count);
    message.fields.insert("graph".into(), stated);
    Request::new(Method::POST, "/v1/graphs".into()).with_body(message.body(), JSON)
}

/// The options of a tensor to store.
#[derive(Default)]
pub(crate) struct Putting {
    pub(crate) if_match: Option<String>,
    pub(crate) if_none_match: Option<String>,
    pub(crate) durable: Option<bool>,
    pub(crate) form: Option<Form>,
}

/// Builds the request that stores a tensor. Without a condition, repeating it changes nothing.
pub(crate) fn putting(name: &str, tensor: &Tensor, asked: &Putting) -> Result<Request> {
    let form = asked.form.unwrap_or_else(|| Form::default_for(tensor.bytes().len()));
    let body = if form == Form::Safetensors {
        let file = Safetensors::new([("tensor".to_owned(), tensor.clone())]);
        (SAFETENSORS, file.pieces())
    } else {
        (JSON, vec![Memory::of(tensor.to_json(form).into_bytes())])
    };
    let mut made = Request::new(Method::PUT, tensor_path(name)?).with_body(body, JSON);
    made.keeps = made.condition("If-Match", asked.if_match.as_deref());
    made.keeps |= made.condition("If-None-Match", asked.if_none_match.as_deref());
    if let Some(durable) = asked.durable {
        made.query.push(("durable", durable.to_string()));
    }
    Ok(made)
}

/// Builds the request that downloads a tensor, as safetensors unless another form is given.
pub(crate) fn getting(
    name: &str,
    if_match: Option<&str>,
    if_none_match: Option<&str>,
    form: Option<Form>,
) -> Result<Request> {
    let mut made = Request::get(tensor_path(name)?);
    made.condition("If-Match", if_match);
    made.condition("If-None-Match", if_none_match);
    let encoding = form.and_then(Form::encoding);
    made.query.extend(encoding.map(|encoding| ("encoding", encoding.to_owned())));
    let accept = if encoding.is_some() { JSON } else { SAFETENSORS };
    made.headers.push(("Accept", accept.to_owned()));
    Ok(made)
}

/// Builds the request that stores a model. Without a condition, repeating it changes nothing.
pub(crate) fn putting_model(
    name: &str,
    definition: &Value,
    (if_match, if_none_match): (Option<&str>, Option<&str>),
) -> Result<Request> {
    let body = (JSON, vec![Memory::of(definition.to_string().into_bytes())]);
    let mut made = Request::new(Method::PUT, model_path(name)?).with_body(body, JSON);
    made.keeps = made.condition("If-Match", if_match);
    made.keeps |= made.condition("If-None-Match", if_none_match);
    Ok(made)
}

/// Builds the request that deletes an object.
pub(crate) fn deleting(path: String, if_match: Option<&str>) -> Request {
    let mut made = Request::new(Method::DELETE, path);
    made.condition("If-Match", if_match);
    made.keeps = true;
    made
}

/// Builds the request for a page, which starts after an entry.
pub(crate) fn listing(kind: &str, limit: Option<usize>, after: Option<&str>) -> Request {
    let mut made = Request::get(format!("/v1/{kind}"));
    made.query.extend(limit.map(|limit| ("limit", limit.to_string())));
    made.query.extend(after.map(|after| ("after", after.to_owned())));
    made
}

pub(crate) fn tensor_path(name: &str) -> Result<String> {
    path_of("tensors", name)
}

pub(crate) fn graph_path(id: &str) -> Result<String> {
    path_of("graphs", id)
}

pub(crate) fn model_path(name: &str) -> Result<String> {
    path_of("models", name)
}

/// Returns a path. Fails for an empty name, whose path would be that of the listing.
fn path_of(kind: &str, name: &str) -> Result<String> {
    if name.is_empty() {
        return Err(Error::input("the name must not be empty"));
    }
    Ok(format!("/v1/{kind}/{}", encoded(name)))
}

/// Percent-encodes a part of a path or query (RFC 3986).
fn encoded(part: &str) -> String {
    part.bytes().fold(String::new(), |mut made, byte| {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => made.push(byte.into()),
            _ => {
                let _ = write!(made, "%{byte:02X}");
            }
        }
        made
    })
}
