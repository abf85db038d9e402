//! The opset of a graph. The server treats a graph without one as opset 1, and rejects newer ops in it.

use serde_json::Value;

use crate::graph::{Inner, Stated};
use crate::{ops, Attribute, DType};

/// The opset of a graph that states none.
const FIRST: usize = 1;
/// The first opset with functions.
const OF_FUNCTIONS: usize = 2;

/// Returns the lowest opset with everything that the first nodes of a graph and its functions use. None if the graph
/// need not state it.
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
