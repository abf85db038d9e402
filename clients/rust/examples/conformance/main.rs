//! The program that runs conformance cases with this client. It reads one case per line and writes one result per line,
//! as described in clients/conformance/README.md.

mod calls;
mod conversation;
#[path = "generated/ops.rs"]
mod ops;
mod steps;
mod telling;
mod tensors;

use std::io::{self, BufRead, Write};

use gradserve_client::{Form, Result, Safetensors, Tensor};
use serde_json::{json, Value};

fn main() -> io::Result<()> {
    let mut output = io::stdout().lock();
    for line in io::stdin().lock().lines() {
        let case: Value = serde_json::from_str(&line?)?;
        let mut result = answered(&case).unwrap_or_else(|error| json!({"error": telling::told(&error)}));
        result["id"] = case["id"].clone();
        writeln!(output, "{result}")?;
        output.flush()?;
    }
    Ok(())
}

fn answered(case: &Value) -> Result<Value> {
    match case["kind"].as_str() {
        Some("encode") => encoded(case),
        Some("decode") => decoded(case),
        Some("build") => built(case),
        _ => Ok(conversation::held(case)),
    }
}

/// Returns a tensor as the client encodes it.
fn encoded(case: &Value) -> Result<Value> {
    let tensor = tensors::read(&case["tensor"])?;
    let form = tensors::form(&case["form"]).unwrap_or_else(|| Form::default_for(tensor.bytes().len()));
    if form == Form::Safetensors {
        let file = Safetensors::new([("t".to_owned(), tensor)]).encode();
        return Ok(json!({"file": tensors::hex(&file)}));
    }
    Ok(json!({"wire": tensor.to_json(form)}))
}

/// Returns a tensor as the client decodes it.
fn decoded(case: &Value) -> Result<Value> {
    let tensor = match case["wire"].as_str() {
        Some(wire) => Tensor::from_json(wire)?,
        None => Safetensors::decode(tensors::unhex(&case["file"]))?.tensor("t")?.clone(),
    };
    Ok(json!({"tensor": tensors::bits(&tensor)}))
}

/// Returns the nodes of a graph, and its functions if there are any.
fn built(case: &Value) -> Result<Value> {
    let text = steps::graph(case)?.to_json()?;
    let graph: Value = text.parse().expect("a graph is written as JSON");
    let mut made = json!({"nodes": graph["nodes"].to_string()});
    if let Some(functions) = graph.get("functions") {
        made["functions"] = functions.to_string().into();
    }
    Ok(made)
}
