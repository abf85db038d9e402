//! The calls of a case, made by one client whose clock advances only when it waits.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use gradserve_client::{Client, Graph, GraphSummary, RegisteredGraph, Result, Surroundings, Target};
use serde_json::{json, Value};

use crate::telling::{told, Told};
use crate::{calls, steps, tensors};

/// The environment that a case injects.
#[derive(Clone, Default)]
struct Script(Arc<Mutex<Scripted>>);

#[derive(Default)]
struct Scripted {
    now: Duration,
    waits: Vec<f64>,
    keys: usize,
}

impl Surroundings for Script {
    fn now(&self) -> Duration {
        self.0.lock().unwrap().now
    }

    fn pass(&self, wait: Duration) -> bool {
        let mut script = self.0.lock().unwrap();
        script.now += wait;
        script.waits.push((wait.as_secs_f64() * 1e3).round());
        true
    }

    fn chance(&self) -> f64 {
        0.5
    }

    fn new_key(&self) -> String {
        let mut script = self.0.lock().unwrap();
        script.keys += 1;
        format!("case-{}", script.keys)
    }
}

/// Returns the results of a case.
pub fn held(case: &Value) -> Value {
    let script = Script::default();
    let client = client_of(case, &script);
    let mut graphs = Graphs::default();
    let calls = case["calls"].as_array().into_iter().flatten();
    let results = calls.map(|call| {
        let answer = client.as_ref().map_err(Clone::clone).and_then(|client| done(client, &mut graphs, call));
        match answer {
            Ok(returned) => json!({"returned": returned}),
            Err(error) => json!({"raised": told(&error)}),
        }
    });
    let results: Value = results.collect();
    let waits: Vec<_> = script.0.lock().unwrap().waits.iter().map(|&wait| wait as u64).collect();
    json!({"results": results, "waits": waits})
}

/// If the server is scripted, injects clock, randomness and keys.
fn client_of(case: &Value, script: &Script) -> Result<Client> {
    let stated = &case["client"];
    let timeout = stated["timeout_ms"].as_u64().map(Duration::from_millis);
    let mut builder = Client::builder(case["url"].as_str().unwrap_or_default()).timeout(timeout);
    if case["kind"] == "exchange" {
        builder = builder.surroundings(script.clone());
    }
    if let Some(key) = stated["api_key"].as_str() {
        builder = builder.api_key(key);
    }
    if let Some(retries) = stated["retries"].as_u64() {
        builder = builder.retries(retries as u32);
    }
    if let Some(idempotency) = stated["idempotency"].as_bool() {
        builder = builder.idempotency(idempotency);
    }
    if let Some(most) = stated["max_response_bytes"].as_u64() {
        builder = builder.max_response_bytes(most as usize);
    }
    builder.build()
}

/// Graphs by steps, functions and opset. Equal ones are the same graph.
#[derive(Default)]
struct Graphs {
    built: HashMap<String, Graph>,
    registered: HashMap<String, RegisteredGraph>,
}

impl Graphs {
    fn built(&mut self, stated: &Value) -> Result<Graph> {
        let known = key(stated);
        if !self.built.contains_key(&known) {
            self.built.insert(known.clone(), steps::graph(stated)?);
        }
        Ok(self.built[&known].clone())
    }

    /// The graph or registered graph that a call runs on.
    fn target(&mut self, stated: &Value, graph: &Graph) -> Result<Target> {
        if stated["registered"] != true {
            return Ok(graph.into());
        }
        let known = key(stated);
        if !self.registered.contains_key(&known) {
            self.registered.insert(known.clone(), RegisteredGraph::new(graph)?);
        }
        Ok((&self.registered[&known]).into())
    }
}

/// Returns a key that equal graphs of a case share.
fn key(stated: &Value) -> String {
    json!([stated["steps"], stated["functions"], stated["opset"]]).to_string()
}

/// Makes one call.
fn done(client: &Client, graphs: &mut Graphs, call: &Value) -> Result<Value> {
    let name = call["name"].as_str().unwrap_or_default();
    match call["do"].as_str().unwrap_or_default() {
        "register" => registered(client, graphs, call),
        "put" => put(client, name, call),
        "get" => {
            let get = client.get(name);
            let found = match tensors::form(&call["form"]) {
                Some(form) => get.form(form).send()?,
                None => get.send()?,
            };
            let (kept, bits) = (found.resident, tensors::bits(&found.tensor));
            Ok(json!({"tensor_id": kept.name, "etag": kept.etag, "tensor": bits}))
        }
        "delete" => {
            let delete = client.delete(name);
            let deleted = match call["if_match"].as_str() {
                Some(etag) => delete.if_match(etag).send()?,
                None => delete.send()?,
            };
            Ok(deleted.told())
        }
        "list_tensors" => {
            let listed = limited(client.tensors(), call).map(|entry| Ok(entry?.told()));
            Ok(json!({"tensors": listed.collect::<Result<Vec<_>>>()?}))
        }
        "list_graphs" => {
            let listed = limited(client.graphs(), call).map(|entry| {
                let graph = entry?;
                Ok(summary(&graph))
            });
            Ok(json!({"graphs": listed.collect::<Result<Vec<_>>>()?}))
        }
        "put_model" => put_model(client, graphs, name, call),
        "get_model" => Ok(client.model(name).send()?.told()),
        "delete_model" => {
            let delete = client.delete_model(name);
            let deleted = match call["if_match"].as_str() {
                Some(etag) => delete.if_match(etag).send()?,
                None => delete.send()?,
            };
            Ok(deleted.told())
        }
        "list_models" => {
            let listed = limited(client.models(), call).map(|entry| Ok(entry?.told()));
            Ok(json!({"models": listed.collect::<Result<Vec<_>>>()?}))
        }
        "delete_graph" => Ok(summary(&client.unregister(kept(client, graphs, call)?).send()?)),
        "ops" => {
            let catalogue = client.ops().send()?;
            let ops: Vec<_> = catalogue.ops.into_iter().map(|op| op.fields).collect();
            Ok(json!({"opset": catalogue.opset, "ops": ops}))
        }
        _ => {
            let graph = graphs.built(&call["graph"])?;
            let on = graphs.target(&call["graph"], &graph)?;
            calls::computed(client, &on, &graph, call)
        }
    }
}

fn limited<'c, E>(
    listing: gradserve_client::Listing<'c, gradserve_client::Blocking, E>,
    call: &Value,
) -> gradserve_client::Listing<'c, gradserve_client::Blocking, E> {
    match call["limit"].as_u64() {
        Some(limit) => listing.limit(limit as usize),
        None => listing,
    }
}

fn registered(client: &Client, graphs: &mut Graphs, call: &Value) -> Result<Value> {
    let graph = graphs.built(call)?;
    let mut register = client.register(&graph);
    if let Some(description) = call["description"].as_str() {
        register = register.description(description);
    }
    let made = register.send()?;
    let fields = made.fields().unwrap_or_default();
    graphs.registered.insert(key(call), made);
    Ok(fields.into())
}

/// Returns an entry of a listing of graphs.
fn summary(graph: &GraphSummary) -> Value {
    json!({"graph_id": graph.id, "description": graph.description, "node_count": graph.node_count})
}

/// Returns the id of a model's graph, which the first call that needs it registers.
fn kept(client: &Client, graphs: &mut Graphs, call: &Value) -> Result<String> {
    if let Some(id) = call["graph_id"].as_str() {
        return Ok(id.to_owned());
    }
    let known = key(&call["graph"]);
    if !graphs.registered.contains_key(&known) {
        registered(client, graphs, &call["graph"])?;
    }
    Ok(graphs.registered[&known].id().unwrap_or_default())
}

fn put_model(client: &Client, graphs: &mut Graphs, name: &str, call: &Value) -> Result<Value> {
    let mut put = client.put_model(name, kept(client, graphs, call)?);
    let entries = |role: &str| call[role].as_array().cloned().unwrap_or_default();
    let (text, node) = (
        |value: &Value| value.as_str().unwrap_or_default().to_owned(),
        |entry: &Value| entry["node"].as_u64().unwrap_or_default() as usize,
    );
    for entry in entries("inputs") {
        let shape: Vec<_> = entry["shape"].as_array().into_iter().flatten().filter_map(Value::as_i64).collect();
        put = put.input(&text(&entry["name"]), node(&entry), text(&entry["dtype"]).as_str(), &shape);
    }
    for entry in entries("outputs") {
        put = put.output(&text(&entry["name"]), node(&entry));
    }
    for entry in entries("bound") {
        put = put.bound(node(&entry), &text(&entry["tensor_id"]));
    }
    if let Some(description) = call["description"].as_str() {
        put = put.description(description);
    }
    if let Some(etag) = call["if_match"].as_str() {
        put = put.if_match(etag);
    }
    if let Some(etag) = call["if_none_match"].as_str() {
        put = put.if_none_match(etag);
    }
    Ok(put.send()?.told())
}

fn put(client: &Client, name: &str, call: &Value) -> Result<Value> {
    let mut put = client.put(name, tensors::read(&call["tensor"])?);
    if let Some(etag) = call["if_match"].as_str() {
        put = put.if_match(etag);
    }
    if let Some(etag) = call["if_none_match"].as_str() {
        put = put.if_none_match(etag);
    }
    if let Some(form) = tensors::form(&call["form"]) {
        put = put.form(form);
    }
    Ok(put.send()?.told())
}
