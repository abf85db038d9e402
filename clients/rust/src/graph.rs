//! Graphs, and handles of their nodes.

use std::collections::BTreeMap;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use serde_json::Value;

use crate::json::{self, Object};
use crate::message::Message;
use crate::{tensor_json, Attribute, Attrs, Error, Form, Result};

/// A computation graph. Clones are handles of the same one, which threads may share.
///
/// What has operands is written as methods and operators of nodes, all else as methods here; each appends a node. What
/// goes wrong is kept, and told by [`check`](Self::check) and by every call: a program looks at errors once.
#[derive(Clone, Default)]
pub struct Graph(Arc<RwLock<Inner>>);

#[derive(Default)]
pub(crate) struct Inner {
    pub(crate) opset: Option<usize>,
    pub(crate) nodes: Vec<Stated>,
    error: Option<Error>,
}

/// A node as it is sent.
pub(crate) struct Stated {
    pub(crate) op: String,
    pub(crate) operands: Vec<usize>,
    pub(crate) attrs: Attrs,
    pub(crate) name: Option<String>,
}

/// A node of a graph: the handle under which it is an operand, is fed, and has its results looked up.
///
/// Arithmetic operators make nodes: `(&x * &w - 1.0).tanh()`. Numbers in them take the dtype of the node. Equal are handles
/// of the same node.
#[derive(Clone)]
pub struct Node {
    graph: Graph,
    id: usize,
}

impl Graph {
    /// A graph without nodes, which says by itself which version of the set of ops it needs, where that is not the first.
    pub fn new() -> Self {
        Self::default()
    }

    /// A graph that says it is of this version of the set of ops.
    pub fn with_opset(opset: usize) -> Self {
        let graph = Self::new();
        graph.write().opset = Some(opset);
        graph
    }

    pub(crate) fn read(&self) -> RwLockReadGuard<'_, Inner> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Inner> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Appends any op by its name, also one that is newer than this client.
    pub fn op<'a>(&self, op: &str, operands: impl IntoIterator<Item = &'a Node>, attrs: Attrs) -> Node {
        let checked = operands.into_iter().enumerate().map(|(place, operand)| {
            let owned = self.owned(operand);
            owned.map_err(|error| error.within(format_args!("operand {place}")))
        });
        let checked = checked.collect::<Result<Vec<_>>>().and_then(|ids| attrs.check().map(|()| ids));
        let failed = checked.as_ref().err().cloned();
        let node = self.append(Stated { op: op.to_owned(), operands: checked.unwrap_or_default(), attrs, name: None });
        if let Some(error) = failed {
            node.fail(error);
        }
        node
    }

    fn append(&self, stated: Stated) -> Node {
        let mut inner = self.write();
        inner.nodes.push(stated);
        Node { graph: self.clone(), id: inner.nodes.len() - 1 }
    }

    /// The first thing that went wrong in building the graph.
    pub fn check(&self) -> Result<()> {
        self.read().error.clone().map_or(Ok(()), Err)
    }

    /// The number of nodes.
    pub fn len(&self) -> usize {
        self.read().nodes.len()
    }

    /// Whether there are no nodes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All nodes, by id.
    pub fn nodes(&self) -> impl Iterator<Item = Node> {
        let graph = self.clone();
        (0..self.len()).map(move |id| graph.handle(id))
    }

    fn handle(&self, id: usize) -> Node {
        Node { graph: self.clone(), id }
    }

    /// The node of an id, which is its place in the list of nodes. Fails where there is none.
    pub fn node(&self, id: usize) -> Result<Node> {
        let count = self.len();
        if id >= count {
            return Err(Error::input(format!("there is no node {id} in a graph of {count}")));
        }
        Ok(self.handle(id))
    }

    /// The node of a name. Fails where there is none, or there are several.
    pub fn find(&self, name: &str) -> Result<Node> {
        let mut found = self.nodes().filter(|node| node.name().as_deref() == Some(name));
        match (found.next(), found.next()) {
            (Some(node), None) => Ok(node),
            (None, _) => Err(Error::input(format!("no node of the graph is called {name:?}"))),
            (Some(one), Some(other)) => Err(Error::input(format!("{one} and {other} have the same name"))),
        }
    }

    /// The id of a node, which has to be of this graph.
    pub(crate) fn owned(&self, node: &Node) -> Result<usize> {
        if node.graph != *self {
            return Err(Error::input(format!("{node} is a node of another graph")));
        }
        Ok(node.id)
    }

    /// The graph as it would be sent, its tensors in it as base64. Fails as [`check`](Self::check) does.
    pub fn to_json(&self) -> Result<String> {
        self.check()?;
        Ok(Message::new(Form::Base64).graph(self, self.len()).to_string())
    }

    /// A graph as the wire has it, whatever its ops are. Fails with [`Malformed`](crate::ErrorKind::Malformed).
    pub fn from_json(text: &str) -> Result<Self> {
        let members = json::object(text.as_bytes());
        members.and_then(|members| graph_of(&members)).map_err(Error::of_the_answer)
    }

    pub(crate) fn set_constant(&self, id: usize, value: crate::Tensor) -> Result<()> {
        self.node(id)?;
        let attrs = &mut self.write().nodes[id].attrs.0;
        attrs.insert("value".to_owned(), value.into());
        Ok(())
    }
}

/// Fails with an error of input; that it came with an answer is for the caller to say.
pub(crate) fn graph_of(members: &Object) -> Result<Graph> {
    let graph = Graph::new();
    graph.write().opset = json::optional_whole(members, "opset")?;
    for stated in json::objects(members, "nodes")? {
        append_stated(&graph, stated).map_err(|error| error.within("a node of a graph"))?;
    }
    graph.check()?;
    Ok(graph)
}

/// Appends a node as the wire has it. Its attributes stay as they are written, but for tensors.
fn append_stated(graph: &Graph, stated: &Object) -> Result<()> {
    let ids = json::optional_wholes(stated, "operands")?.unwrap_or_default();
    let operands = ids.into_iter().map(|id| graph.node(id)).collect::<Result<Vec<_>>>()?;
    let mut attrs = Attrs::new();
    for (name, value) in json::optional_inner(stated, "attrs")?.into_iter().flatten() {
        attrs = attrs.with(name, attribute_of(value).map_err(|error| error.within(name))?);
    }
    let node = graph.op(json::text(stated, "op")?, &operands, attrs);
    if let Some(name) = json::optional_text(stated, "name")? {
        node.named(name);
    }
    Ok(())
}

fn attribute_of(value: &Value) -> Result<Attribute> {
    match value {
        Value::Object(members) if members.contains_key("dtype") && members.contains_key("shape") => {
            tensor_json::tensor_of(members).map(Attribute::Tensor)
        }
        _ => Ok(Attribute::Json(value.clone())),
    }
}

/// Handles are equal that are of the same graph.
impl PartialEq for Graph {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Graph {}

impl fmt::Debug for Graph {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Graph(of {} nodes)", self.len())
    }
}

impl Node {
    /// The graph that the node is of.
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// The place of the node in the list of nodes.
    pub fn id(&self) -> usize {
        self.id
    }

    /// The name of the node's op.
    pub fn op(&self) -> String {
        self.graph.read().nodes[self.id].op.clone()
    }

    /// A label for messages and look-ups, if there is one.
    pub fn name(&self) -> Option<String> {
        self.graph.read().nodes[self.id].name.clone()
    }

    /// Gives the node a name, which refers to nothing; an empty one takes it away.
    pub fn named(self, name: &str) -> Self {
        let name = (!name.is_empty()).then(|| name.to_owned());
        self.graph.write().nodes[self.id].name = name;
        self
    }

    /// Keeps what went wrong with the node, unless something else did before.
    fn fail(&self, error: Error) {
        let error = error.within(self);
        self.graph.write().error.get_or_insert(error);
    }
}

impl PartialEq for Node {
    fn eq(&self, other: &Self) -> bool {
        self.id == other.id && self.graph == other.graph
    }
}

impl Eq for Node {}

impl Hash for Node {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (Arc::as_ptr(&self.graph.0), self.id).hash(state);
    }
}

/// Names the node as messages do.
impl fmt::Display for Node {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let inner = self.graph.read();
        let Stated { op, name, .. } = &inner.nodes[self.id];
        match name {
            Some(name) => write!(formatter, "node {} ({op}, {name:?})", self.id),
            None => write!(formatter, "node {} ({op})", self.id),
        }
    }
}

impl fmt::Debug for Node {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Node({self})")
    }
}

/// What is stated of an op beside what is required: optional operands by their places, and attributes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Options {
    operands: BTreeMap<usize, Node>,
    attrs: Attrs,
}

impl Options {
    pub(crate) fn operand(mut self, place: usize, operand: &Node) -> Self {
        self.operands.insert(place, operand.clone());
        self
    }

    pub(crate) fn with(mut self, name: &str, value: impl Into<Attribute>) -> Self {
        self.attrs = self.attrs.with(name, value);
        self
    }

    /// The same with what becomes a value of this type.
    pub(crate) fn made<V: Into<Attribute>>(self, name: &str, value: impl Into<V>) -> Self {
        self.with(name, value.into())
    }
}

impl Graph {
    /// Appends an op of these operands and those of the options, which come behind.
    pub(crate) fn typed<'a>(&self, op: &str, operands: impl IntoIterator<Item = &'a Node>, options: Options) -> Node {
        let mut operands: Vec<_> = operands.into_iter().cloned().collect();
        let mut left_out = None;
        for (place, operand) in options.operands {
            if place > operands.len() {
                left_out = left_out.or(Some(operands.len()));
            } else {
                operands.push(operand);
            }
        }
        let node = self.op(op, &operands, options.attrs);
        if let Some(place) = left_out {
            node.fail(Error::input(format!("operand {place} is left out, and a later one is not")));
        }
        node
    }
}
