//! Steps of the builder, and what they state.

use gradserve_client::{Attribute, Attrs, DType, Graph, Node, Number, Result, Tensor};
use serde_json::{Map, Value};

use crate::{ops, tensors};

/// One call of the builder, its operands being nodes.
pub struct Step {
    pub op: String,
    pub nodes: Vec<Node>,
    pub name: String,
    attrs: Map<String, Value>,
}

/// The graph that steps give.
pub fn graph(stated: &Value) -> Result<Graph> {
    let graph = stated["opset"].as_u64().map_or_else(Graph::new, |opset| Graph::with_opset(opset as usize));
    for stated in stated["steps"].as_array().into_iter().flatten() {
        let step = Step {
            op: stated["op"].as_str().unwrap_or_default().to_owned(),
            nodes: nodes(&graph, &stated["operands"])?,
            name: stated["name"].as_str().unwrap_or_default().to_owned(),
            attrs: stated["attrs"].as_object().cloned().unwrap_or_default(),
        };
        let appended = match step.nodes.first() {
            // Its method would append to the graph that it is of.
            Some(node) if *node.graph() != graph => step.any(&graph)?,
            _ => ops::appended(&graph, &step)?,
        };
        appended.named(&step.name);
    }
    Ok(graph)
}

/// A node by its place, or one of another graph.
pub fn node(graph: &Graph, place: &Value) -> Result<Node> {
    match place.as_u64() {
        Some(id) => graph.node(id as usize),
        None => Ok(Graph::new().input("other")),
    }
}

pub fn nodes(graph: &Graph, places: &Value) -> Result<Vec<Node>> {
    places.as_array().into_iter().flatten().map(|place| node(graph, place)).collect()
}

impl Step {
    pub fn operand(&self, place: usize) -> &Node {
        &self.nodes[place]
    }

    /// States an operand, if there is one.
    pub fn set_operand<O>(&self, options: O, place: usize, set: impl FnOnce(O, &Node) -> O) -> O {
        match self.nodes.get(place) {
            Some(node) => set(options, node),
            None => options,
        }
    }

    /// States an attribute, if the step does.
    pub fn set<O, V: Read>(&self, options: O, name: &str, set: impl FnOnce(O, V) -> O) -> Result<O> {
        match self.attrs.get(name) {
            Some(value) => Ok(set(options, V::read(value)?)),
            None => Ok(options),
        }
    }

    pub fn attr<V: Read>(&self, name: &str) -> Result<V> {
        V::read(self.attrs.get(name).unwrap_or(&Value::Null))
    }

    /// Appends an op by its name.
    pub fn any(&self, graph: &Graph) -> Result<Node> {
        let mut attrs = Attrs::new();
        for (name, value) in &self.attrs {
            attrs = attrs.with(name, Attribute::read(value)?);
        }
        Ok(graph.op(&self.op, &self.nodes, attrs))
    }
}

/// What attributes are read as.
pub trait Read: Sized {
    fn read(stated: &Value) -> Result<Self>;
}

impl Read for bool {
    fn read(stated: &Value) -> Result<Self> {
        Ok(stated.as_bool().unwrap_or_default())
    }
}

impl Read for String {
    fn read(stated: &Value) -> Result<Self> {
        Ok(stated.as_str().unwrap_or_default().to_owned())
    }
}

impl Read for DType {
    fn read(stated: &Value) -> Result<Self> {
        Ok(stated.as_str().unwrap_or_default().into())
    }
}

impl Read for Tensor {
    fn read(stated: &Value) -> Result<Self> {
        tensors::read(stated)
    }
}

impl Read for i64 {
    fn read(stated: &Value) -> Result<Self> {
        Ok(match stated["int"].as_str() {
            Some(digits) => digits.parse().unwrap_or_default(),
            None => stated.as_i64().unwrap_or_default(),
        })
    }
}

impl Read for f64 {
    fn read(stated: &Value) -> Result<Self> {
        Ok(match stated["float"].as_str() {
            Some(digits) => digits.parse().unwrap_or_default(),
            None => stated.as_f64().unwrap_or_default(),
        })
    }
}

impl Read for Number {
    fn read(stated: &Value) -> Result<Self> {
        if stated.is_i64() || stated.get("int").is_some() {
            return i64::read(stated).map(Number::from);
        }
        f64::read(stated).map(Number::from)
    }
}

impl Read for Vec<i64> {
    fn read(stated: &Value) -> Result<Self> {
        stated.as_array().into_iter().flatten().map(i64::read).collect()
    }
}

impl Read for Attribute {
    fn read(stated: &Value) -> Result<Self> {
        match stated {
            Value::Array(entries) => {
                let entries: Result<Vec<_>> = entries.iter().map(Attribute::read).collect();
                entries.map(Attribute::from)
            }
            Value::Object(members) if members.contains_key("int") => i64::read(stated).map(Attribute::from),
            Value::Object(members) if members.contains_key("float") => f64::read(stated).map(Attribute::from),
            Value::Object(members) if members.contains_key("hex") => tensors::read(stated).map(Attribute::from),
            plain => Ok(Attribute::from(plain.clone())),
        }
    }
}
