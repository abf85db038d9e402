//! Steps of the builder, and their arguments.

use gradserve_client::{Attribute, Attrs, DType, Graph, GraphFunction, Node, Number, Result, Tensor};
use serde_json::{Map, Value};

use crate::{ops, tensors};

/// A call of the builder. Its operands are nodes.
pub struct Step {
    pub op: String,
    pub nodes: Vec<Node>,
    pub name: String,
    attrs: Map<String, Value>,
    functions: Vec<GraphFunction>,
}

/// Builds the graph of some steps.
pub fn graph(stated: &Value) -> Result<Graph> {
    let graph = stated["opset"].as_u64().map_or_else(Graph::new, |opset| Graph::with_opset(opset as usize));
    for function in stated["functions"].as_array().into_iter().flatten() {
        append_function(&graph, function)?;
    }
    append(&graph, &graph, &stated["steps"])?;
    Ok(graph)
}

fn append_function(graph: &Graph, stated: &Value) -> Result<()> {
    let mut appended = Ok(());
    graph.function(stated["name"].as_str().unwrap_or_default(), |body| {
        appended = append(body, graph, &stated["steps"]);
        let outputs: Result<Vec<_>> = places(&stated["outputs"]).map(|place| operand(body, graph, place)).collect();
        outputs.unwrap_or_default()
    });
    appended
}

/// Appends steps to a graph, or to a function of the enclosing graph.
fn append(graph: &Graph, around: &Graph, steps: &Value) -> Result<()> {
    for stated in steps.as_array().into_iter().flatten() {
        let nodes: Result<_> = places(&stated["operands"]).map(|place| operand(graph, around, place)).collect();
        let step = Step {
            op: stated["op"].as_str().unwrap_or_default().to_owned(),
            nodes: nodes?,
            name: stated["name"].as_str().unwrap_or_default().to_owned(),
            attrs: stated["attrs"].as_object().cloned().unwrap_or_default(),
            functions: graph.functions().collect(),
        };
        let appended = match step.nodes.first() {
            // The method of a node of another graph would append to that graph.
            Some(node) if node.graph() != graph => step.any(graph)?,
            _ => ops::appended(graph, &step)?,
        };
        appended.named(&step.name);
    }
    Ok(())
}

/// Returns the node at a position, or a node of another graph.
fn operand(graph: &Graph, around: &Graph, place: &Value) -> Result<Node> {
    match place.as_str() {
        Some("outer") => Ok(around.input("outer")),
        _ => node(graph, place),
    }
}

/// Returns the node at a position, or a node of another graph.
pub fn node(graph: &Graph, place: &Value) -> Result<Node> {
    match place.as_u64() {
        Some(id) => graph.node(id as usize),
        None => Ok(Graph::new().input("other")),
    }
}

pub fn nodes(graph: &Graph, stated: &Value) -> Result<Vec<Node>> {
    places(stated).map(|place| node(graph, place)).collect()
}

fn places(stated: &Value) -> impl Iterator<Item = &Value> {
    stated.as_array().into_iter().flatten()
}

impl Step {
    pub fn operand(&self, place: usize) -> &Node {
        &self.nodes[place]
    }

    /// Sets an operand, if there is one.
    pub fn set_operand<O>(&self, options: O, place: usize, set: impl FnOnce(O, &Node) -> O) -> O {
        match self.nodes.get(place) {
            Some(node) => set(options, node),
            None => options,
        }
    }

    /// Sets an attribute, if the step has it.
    pub fn set<O, V: Read>(&self, options: O, name: &str, set: impl FnOnce(O, V) -> O) -> Result<O> {
        match self.attrs.get(name) {
            Some(value) => Ok(set(options, V::read(self, value)?)),
            None => Ok(options),
        }
    }

    pub fn attr<V: Read>(&self, name: &str) -> Result<V> {
        V::read(self, self.attrs.get(name).unwrap_or(&Value::Null))
    }

    /// Appends an op by name.
    pub fn any(&self, graph: &Graph) -> Result<Node> {
        let mut attrs = Attrs::new();
        for (name, value) in &self.attrs {
            attrs = attrs.with(name, Attribute::read(self, value)?);
        }
        Ok(graph.op(&self.op, &self.nodes, attrs))
    }
}

/// Types that attributes of a step are read as.
pub trait Read: Sized {
    fn read(step: &Step, stated: &Value) -> Result<Self>;
}

impl Read for bool {
    fn read(_: &Step, stated: &Value) -> Result<Self> {
        Ok(stated.as_bool().unwrap_or_default())
    }
}

impl Read for String {
    fn read(_: &Step, stated: &Value) -> Result<Self> {
        Ok(stated.as_str().unwrap_or_default().to_owned())
    }
}

impl Read for DType {
    fn read(_: &Step, stated: &Value) -> Result<Self> {
        Ok(stated.as_str().unwrap_or_default().into())
    }
}

impl Read for Tensor {
    fn read(_: &Step, stated: &Value) -> Result<Self> {
        tensors::read(stated)
    }
}

impl Read for i64 {
    fn read(_: &Step, stated: &Value) -> Result<Self> {
        Ok(match stated["int"].as_str() {
            Some(digits) => digits.parse().unwrap_or_default(),
            None => stated.as_i64().unwrap_or_default(),
        })
    }
}

impl Read for f64 {
    fn read(_: &Step, stated: &Value) -> Result<Self> {
        Ok(match stated["float"].as_str() {
            Some(digits) => digits.parse().unwrap_or_default(),
            None => stated.as_f64().unwrap_or_default(),
        })
    }
}

/// Returns a function by index, or a function of another graph.
impl Read for GraphFunction {
    fn read(step: &Step, stated: &Value) -> Result<Self> {
        Ok(match stated["function"].as_u64() {
            Some(index) => step.functions[index as usize].clone(),
            None => Graph::new().function("", |body| [body.input("")]),
        })
    }
}

impl Read for Number {
    fn read(step: &Step, stated: &Value) -> Result<Self> {
        if stated.is_i64() || stated.get("int").is_some() {
            return i64::read(step, stated).map(Number::from);
        }
        f64::read(step, stated).map(Number::from)
    }
}

impl Read for Vec<i64> {
    fn read(step: &Step, stated: &Value) -> Result<Self> {
        stated.as_array().into_iter().flatten().map(|entry| i64::read(step, entry)).collect()
    }
}

impl Read for Attribute {
    fn read(step: &Step, stated: &Value) -> Result<Self> {
        match stated {
            Value::Array(entries) => {
                let entries: Result<Vec<_>> = entries.iter().map(|entry| Attribute::read(step, entry)).collect();
                entries.map(Attribute::from)
            }
            Value::Object(members) if members.contains_key("int") => i64::read(step, stated).map(Attribute::from),
            Value::Object(members) if members.contains_key("float") => f64::read(step, stated).map(Attribute::from),
            Value::Object(members) if members.contains_key("function") => {
                GraphFunction::read(step, stated).map(Attribute::from)
            }
            Value::Object(members) if members.contains_key("hex") => tensors::read(stated).map(Attribute::from),
            plain => Ok(Attribute::from(plain.clone())),
        }
    }
}
