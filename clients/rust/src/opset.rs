//! The opset that a graph says it is of: a server takes one that says nothing for the first, and has no more in it.

use serde_json::Value;

use crate::graph::{Inner, Stated};
use crate::{ops, Attribute, DType};

/// Of a graph that does not say.
const FIRST: usize = 1;
/// The first that has functions.
const OF_FUNCTIONS: usize = 2;

/// The first that has all that the first nodes of a graph are of, and its functions; None where nothing is to be said.
pub(crate) fn needed(graph: &Inner, count: usize) -> Option<usize> {
    let of_functions = graph.functions().map(|_| OF_FUNCTIONS);
    graph.sent(count).map(needed_by).chain(of_functions).max().filter(|&opset| opset > FIRST)
}

fn needed_by(node: &Stated) -> usize {
    let attributes = node.attrs.0.iter().map(|(name, value)| {
        let of_dtype = match value {
            Attribute::Tensor(tensor) => tensor.dtype().since(),
            Attribute::Json(Value::String(word)) if name == "dtype" => DType::from(word.as_str()).since(),
            _ => FIRST,
        };
        of_dtype.max(ops::since(&format!("{}.{name}", node.op)))
    });
    attributes.fold(ops::since(&node.op), usize::max)
}
