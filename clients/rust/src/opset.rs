//! The opset that a graph says it is of: a server takes one that says nothing for the first, and has no more in it.

use serde_json::Value;

use crate::graph::Stated;
use crate::{ops, Attribute, DType};

/// Of a graph that does not say.
const FIRST: usize = 1;

/// The first that has all ops and dtypes of some nodes; None where nothing is to be said.
pub(crate) fn needed<'a>(nodes: impl IntoIterator<Item = &'a Stated>) -> Option<usize> {
    nodes.into_iter().map(needed_by).max().filter(|&opset| opset > FIRST)
}

fn needed_by(node: &Stated) -> usize {
    let dtypes = node.attrs.0.iter().map(|(name, value)| match value {
        Attribute::Tensor(tensor) => tensor.dtype().since(),
        Attribute::Json(Value::String(word)) if name == "dtype" => DType::from(word.as_str()).since(),
        _ => FIRST,
    });
    dtypes.fold(ops::since(&node.op), usize::max)
}
