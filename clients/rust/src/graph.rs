//! Graphs and their nodes.

use std::collections::BTreeMap;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use serde_json::Value;

use crate::json::{self, Object};
use crate::message::Message;
use crate::{tensor_json, Attribute, Attrs, Error, Form, Result};

/// A computation graph. Clones are handles of the same graph, which threads can share.
///
/// Ops with operands are methods and operators of nodes, other ops are methods of the graph. Each appends a node. The
/// graph records the first error, which [`check`](Self::check) and every call return, so you check for errors once.
///
/// The body of a [function](Self::function) is also a graph, which is sent with the enclosing one.
#[derive(Clone)]
pub struct Graph {
    inner: Arc<RwLock<Inner>>,
    /// The index of this graph's body.
    place: usize,
}

/// A graph and its functions.
#[derive(Default)]
pub(crate) struct Inner {
    pub(crate) opset: Option<usize>,
    /// The body of the graph itself, then those of functions in the order in which they were begun.
    bodies: Vec<Body>,
    /// The indices of complete bodies, in the order in which they are sent: a function can only use those before it.
    functions: Vec<usize>,
    error: Option<Error>,
}

/// The contents of a graph or a function.
#[derive(Default)]
pub(crate) struct Body {
    pub(crate) name: Option<String>,
    pub(crate) nodes: Vec<Stated>,
    /// The outputs of a complete function.
    pub(crate) outputs: Option<Vec<usize>>,
}

/// A node in the form in which it is sent.
pub(crate) struct Stated {
    pub(crate) op: String,
    pub(crate) operands: Vec<usize>,
    pub(crate) attrs: Attrs,
    pub(crate) name: Option<String>,
}

/// A node of a graph: a handle to use as an operand, as a key of feeds, and to look up results.
///
/// Arithmetic operators append nodes: `(&x * &w - 1.0).tanh()`. Numbers take the dtype of the node. Handles of the same
/// node are equal.
#[derive(Clone)]
pub struct Node {
    graph: Graph,
    id: usize,
}

/// A function of a graph. Pass it to the ops that run it, such as `scan`. Created by [`Graph::function`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GraphFunction {
    body: Graph,
    index: usize,
}

/// The index of the body of the graph itself.
const ITSELF: usize = 0;

impl Inner {
    /// Returns the body of the graph itself.
    pub(crate) fn itself(&self) -> &Body {
        &self.bodies[ITSELF]
    }

    /// Returns the functions in the order in which they are sent.
    pub(crate) fn functions(&self) -> impl Iterator<Item = &Body> {
        self.functions.iter().map(|&place| &self.bodies[place])
    }

    /// Iterates over the first nodes of the graph, and over all nodes of functions.
    pub(crate) fn sent(&self, count: usize) -> impl Iterator<Item = &Stated> {
        self.itself().nodes.iter().take(count).chain(self.functions().flat_map(|body| &body.nodes))
    }
}

impl Default for Graph {
    fn default() -> Self {
        let inner = Inner { bodies: vec![Body::default()], ..Inner::default() };
        Self { inner: Arc::new(RwLock::new(inner)), place: ITSELF }
    }
}

impl Graph {
    /// Creates a graph without nodes. The client sends the lowest opset that has everything the graph uses.
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates a graph of this opset.
    pub fn with_opset(opset: usize) -> Self {
        let graph = Self::new();
        graph.write().opset = Some(opset);
        graph
    }

    pub(crate) fn read(&self) -> RwLockReadGuard<'_, Inner> {
        self.inner.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Inner> {
        self.inner.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Appends any op by name, including ops that are newer than this client.
    pub fn op<'a>(&self, op: &str, operands: impl IntoIterator<Item = &'a Node>, attrs: Attrs) -> Node {
        let checked = operands.into_iter().enumerate().map(|(place, operand)| {
            let owned = self.owned(operand);
            owned.map_err(|error| error.within(format_args!("operand {place}")))
        });
        let checked = checked.collect::<Result<_>>().and_then(|ids| Ok((ids, attrs.settled(self)?)));
        let failed = checked.as_ref().err().cloned();
        let (operands, attrs) = checked.unwrap_or_default();
        let node = self.append(Stated { op: op.to_owned(), operands, attrs, name: None });
        if let Some(error) = failed {
            node.fail(error);
        }
        node
    }

    fn append(&self, stated: Stated) -> Node {
        let (id, is_late) = {
            let mut inner = self.write();
            let body = &mut inner.bodies[self.place];
            body.nodes.push(stated);
            (body.nodes.len() - 1, body.outputs.is_some())
        };
        let node = self.handle(id);
        if is_late {
            node.fail(Error::input("the function is complete"));
        }
        node
    }

    /// Adds a function that ops such as `scan` run: the nodes that `body` appends, and the outputs that it returns.
    /// With an empty `name`, the function has no name.
    ///
    /// `body` receives a graph of its own. Its inputs are the parameters, in order. It cannot use nodes of other
    /// graphs. It can use functions that were added before it, and define functions itself.
    ///
    /// ```
    /// # use gradserve_client::Graph;
    /// let graph = Graph::new();
    /// let euler = graph.function("euler", |body| {
    ///     let (k, y) = (body.input("k"), body.input("y"));
    ///     let next = &y - &k * &y * 0.5;
    ///     [next.clone(), next]
    /// });
    /// assert_eq!((euler.parameters().len(), euler.outputs().len()), (2, 2));
    /// ```
    pub fn function<O>(&self, name: &str, body: impl FnOnce(&Graph) -> O) -> GraphFunction
    where
        O: IntoIterator<Item = Node>,
    {
        let begun = self.begin(name);
        let outputs = body(&begun);
        begun.complete(outputs)
    }

    /// Creates the body of a new function.
    fn begin(&self, name: &str) -> Graph {
        let mut inner = self.write();
        inner.bodies.push(Body { name: (!name.is_empty()).then(|| name.to_owned()), ..Body::default() });
        Graph { inner: Arc::clone(&self.inner), place: inner.bodies.len() - 1 }
    }

    /// Completes the function with this body.
    fn complete(&self, outputs: impl IntoIterator<Item = Node>) -> GraphFunction {
        let owned = |(place, node)| self.owned(&node).map_err(|error| error.within(format_args!("output {place}")));
        let checked = outputs.into_iter().enumerate().map(owned).collect::<Result<_>>();
        let failed = checked.as_ref().err().cloned();
        let told = self.to_string();
        let mut inner = self.write();
        inner.bodies[self.place].outputs = Some(checked.unwrap_or_default());
        inner.functions.push(self.place);
        if let Some(error) = failed {
            inner.error.get_or_insert(error.within(told));
        }
        GraphFunction { body: self.clone(), index: inner.functions.len() - 1 }
    }

    /// Returns the functions by index.
    pub fn functions(&self) -> impl Iterator<Item = GraphFunction> {
        let places = self.read().functions.clone();
        let inner = Arc::clone(&self.inner);
        let body = move |place| Graph { inner: Arc::clone(&inner), place };
        places.into_iter().enumerate().map(move |(index, place)| GraphFunction { body: body(place), index })
    }

    /// Returns the first error in building the graph.
    pub fn check(&self) -> Result<()> {
        self.read().error.clone().map_or(Ok(()), Err)
    }

    /// Does the same as [`check`](Self::check), and also fails for the body of a function.
    pub(crate) fn check_sent(&self) -> Result<()> {
        if self.place != ITSELF {
            return Err(Error::input(format!("{self} cannot be sent by itself; send the graph that contains it")));
        }
        self.check()
    }

    /// Returns the number of nodes.
    pub fn len(&self) -> usize {
        self.read().bodies[self.place].nodes.len()
    }

    /// Returns whether there are no nodes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns all nodes by id.
    pub fn nodes(&self) -> impl Iterator<Item = Node> {
        let graph = self.clone();
        (0..self.len()).map(move |id| graph.handle(id))
    }

    fn handle(&self, id: usize) -> Node {
        Node { graph: self.clone(), id }
    }

    /// Returns the node with an id, which is its position in the graph. Fails if there is none.
    pub fn node(&self, id: usize) -> Result<Node> {
        let count = self.len();
        if id >= count {
            return Err(Error::input(format!("the graph has no node {id} (number of nodes: {count})")));
        }
        Ok(self.handle(id))
    }

    /// Returns the node with a name. Fails if there is none, or several.
    pub fn find(&self, name: &str) -> Result<Node> {
        let mut found = self.nodes().filter(|node| node.name().as_deref() == Some(name));
        match (found.next(), found.next()) {
            (Some(node), None) => Ok(node),
            (None, _) => Err(Error::input(format!("the graph has no node named {name:?}"))),
            (Some(one), Some(other)) => Err(Error::input(format!("{one} and {other} have the same name"))),
        }
    }

    /// Returns whether both belong to the same graph, as the graph itself or as one of its functions.
    fn is_with(&self, other: &Graph) -> bool {
        Arc::ptr_eq(&self.inner, &other.inner)
    }

    /// Returns the id of a node. Fails if the node belongs to another graph.
    pub(crate) fn owned(&self, node: &Node) -> Result<usize> {
        if node.graph == *self {
            return Ok(node.id);
        }
        Err(Error::input(if !self.is_with(&node.graph) {
            format!("{node} belongs to another graph")
        } else if self.place == ITSELF {
            format!("{node} is inside a function, and only the function's results can be used outside it")
        } else {
            format!("{node} is outside this function, which can use only the operands passed to it")
        }))
    }

    /// Returns the index of a function. Fails if the function belongs to another graph.
    pub(crate) fn owned_index(&self, function: &GraphFunction) -> Result<usize> {
        if !self.is_with(&function.body) {
            return Err(Error::input(format!("{function} belongs to another graph")));
        }
        Ok(function.index)
    }

    /// Returns the graph in the JSON form of the API, with tensors as base64. Fails as [`check`](Self::check) does.
    pub fn to_json(&self) -> Result<String> {
        self.check_sent()?;
        Ok(Message::new(Form::Base64).graph(self, self.len()).to_string())
    }

    /// Reads a graph in the JSON form of the API. Ops can be unknown to this client. Fails with
    /// [`Malformed`](crate::ErrorKind::Malformed).
    pub fn from_json(text: &str) -> Result<Self> {
        let members = json::object(text.as_bytes());
        members.and_then(|members| graph_of(&members)).map_err(Error::of_the_answer)
    }

    pub(crate) fn set_constant(&self, id: usize, value: crate::Tensor) -> Result<()> {
        self.node(id)?;
        let attrs = &mut self.write().bodies[self.place].nodes[id].attrs.0;
        attrs.insert("value".to_owned(), value.into());
        Ok(())
    }
}

/// Fails with an input error. If the value is part of a response, the caller converts the error.
pub(crate) fn graph_of(members: &Object) -> Result<Graph> {
    let graph = Graph::new();
    graph.write().opset = json::optional_whole(members, "opset")?;
    for (index, stated) in json::optional_objects(members, "functions")?.into_iter().flatten().enumerate() {
        read_function(&graph, stated).map_err(|error| error.within(format_args!("function {index}")))?;
    }
    read_nodes(&graph, members)?;
    graph.check()?;
    Ok(graph)
}

fn read_function(graph: &Graph, stated: &Object) -> Result<()> {
    let body = graph.begin(json::optional_text(stated, "name")?.unwrap_or_default());
    read_nodes(&body, stated)?;
    let outputs = json::optional_wholes(stated, "outputs")?.unwrap_or_default();
    body.complete(outputs.into_iter().map(|id| body.node(id)).collect::<Result<Vec<_>>>()?);
    Ok(())
}

fn read_nodes(graph: &Graph, members: &Object) -> Result<()> {
    for (id, stated) in json::objects(members, "nodes")?.into_iter().enumerate() {
        append_stated(graph, stated).map_err(|error| error.within(format_args!("node {id}")))?;
    }
    Ok(())
}

/// Appends a node in the JSON form of the API. Attributes stay JSON, except tensors.
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

/// Handles of the same graph are equal.
impl PartialEq for Graph {
    fn eq(&self, other: &Self) -> bool {
        self.is_with(other) && self.place == other.place
    }
}

impl Eq for Graph {}

/// Formats the graph, or the function with this body, as messages name it.
impl fmt::Display for Graph {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.read().bodies[self.place] {
            _ if self.place == ITSELF => formatter.write_str("the graph"),
            Body { name: Some(name), .. } => write!(formatter, "the function {name:?}"),
            Body { name: None, .. } => formatter.write_str("a function"),
        }
    }
}

impl fmt::Debug for Graph {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Graph(of {} nodes)", self.len())
    }
}

impl Node {
    /// Returns the graph of the node.
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// Returns the position of the node in the graph.
    pub fn id(&self) -> usize {
        self.id
    }

    /// Returns the name of the node's op.
    pub fn op(&self) -> String {
        self.graph.read().bodies[self.graph.place].nodes[self.id].op.clone()
    }

    /// Returns the label for messages and lookups, if there is one.
    pub fn name(&self) -> Option<String> {
        self.graph.read().bodies[self.graph.place].nodes[self.id].name.clone()
    }

    /// Gives the node a name, for messages and lookups. An empty name removes it.
    pub fn named(self, name: &str) -> Self {
        let name = (!name.is_empty()).then(|| name.to_owned());
        self.graph.write().bodies[self.graph.place].nodes[self.id].name = name;
        self
    }

    /// Records an error of the node, unless the graph has an error already.
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
        (Arc::as_ptr(&self.graph.inner), self.graph.place, self.id).hash(state);
    }
}

/// Formats the node as messages name it.
impl fmt::Display for Node {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let told = {
            let inner = self.graph.read();
            let Stated { op, name, .. } = &inner.bodies[self.graph.place].nodes[self.id];
            let name = name.as_ref().map_or(String::new(), |name| format!(", {name:?}"));
            format!("node {} ({op}{name})", self.id)
        };
        formatter.write_str(&told)?;
        match self.graph.place {
            ITSELF => Ok(()),
            _ => write!(formatter, " of {}", self.graph),
        }
    }
}

impl fmt::Debug for Node {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Node({self})")
    }
}

impl GraphFunction {
    /// Returns the index of the function in the graph.
    pub fn index(&self) -> usize {
        self.index
    }

    /// Returns the function's own graph. Nothing can be appended to it.
    pub fn body(&self) -> &Graph {
        &self.body
    }

    /// Returns the label for messages, if there is one.
    pub fn name(&self) -> Option<String> {
        self.body.read().bodies[self.body.place].name.clone()
    }

    /// Returns the parameters, in the order of the operands: the inputs of the body.
    pub fn parameters(&self) -> Vec<Node> {
        self.body.nodes().filter(|node| node.op() == "input").collect()
    }

    /// Returns the outputs, in the order of the results: nodes of the body, which may repeat.
    pub fn outputs(&self) -> Vec<Node> {
        let ids = self.body.read().bodies[self.body.place].outputs.clone().unwrap_or_default();
        ids.into_iter().map(|id| self.body.handle(id)).collect()
    }
}

/// Formats the function as messages name it.
impl fmt::Display for GraphFunction {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => write!(formatter, "function {} ({name:?})", self.index),
            None => write!(formatter, "function {}", self.index),
        }
    }
}

/// The optional arguments of an op: operands by position, and attributes.
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

    /// Adds an attribute, converted to this type.
    pub(crate) fn made<V: Into<Attribute>>(self, name: &str, value: impl Into<V>) -> Self {
        self.with(name, value.into())
    }
}

impl Graph {
    /// Appends an op with these operands, followed by the optional ones.
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
            node.fail(Error::input(format!("operand {place} is left out, but a later operand is given")));
        }
        node
    }
}
