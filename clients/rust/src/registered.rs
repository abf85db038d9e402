//! Graphs that the server keeps.

use std::sync::{Arc, PoisonError, RwLock};

use crate::json::{self, Object};
use crate::request::{self, Request};
use crate::{graph, Form, Graph, Result};

/// A graph that the server keeps, and that stands wherever a call takes a graph: it is not sent again.
///
/// It is registered by the first call that needs it, unless it is already, and once more by one that finds it forgotten. It
/// is the graph as it was: nodes that are appended later are not part of it. Clones are handles of the same one, which
/// threads and clients may share.
#[derive(Clone, Debug)]
pub struct RegisteredGraph(Arc<Inner>);

struct Inner {
    graph: Graph,
    count: usize,
    request: Request,
    /// What the server answered; None as long as it was not asked.
    known: RwLock<Option<Object>>,
}

impl std::fmt::Debug for Inner {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{:?}", self.graph)
    }
}

impl RegisteredGraph {
    /// A graph as it is now, which the first call that needs it registers, within its own time. Fails where something went
    /// wrong in building the graph.
    pub fn new(graph: &Graph) -> Result<Self> {
        Self::described(graph, None, None)
    }

    pub(crate) fn described(graph: &Graph, description: Option<&str>, form: Option<Form>) -> Result<Self> {
        graph.check_sent()?;
        let count = graph.len();
        Ok(Self(Arc::new(Inner {
            graph: graph.clone(),
            count,
            request: request::registering(graph, count, description, form),
            known: RwLock::default(),
        })))
    }

    /// A graph as the server answers it.
    pub(crate) fn read(answer: Object) -> Result<Self> {
        let graph = graph::graph_of(json::inner(&answer, "graph")?)?;
        let made = Self::described(&graph, json::optional_text(&answer, "description")?, None)?;
        made.know(answer)?;
        Ok(made)
    }

    /// Keeps what the server answered.
    pub(crate) fn know(&self, mut answer: Object) -> Result<()> {
        json::text(&answer, "graph_id")?;
        answer.remove("graph");
        *self.0.known.write().unwrap_or_else(PoisonError::into_inner) = Some(answer);
        Ok(())
    }

    pub(crate) fn request(&self) -> Request {
        self.0.request.clone()
    }

    /// The hash of the graph; None as long as the server was not asked.
    pub fn id(&self) -> Option<String> {
        let fields = self.fields()?;
        json::text(&fields, "graph_id").ok().map(str::to_owned)
    }

    /// The graph itself.
    pub fn graph(&self) -> &Graph {
        &self.0.graph
    }

    /// What the server answered, by names on the wire, but for the graph; None as long as it was not asked.
    pub fn fields(&self) -> Option<Object> {
        self.0.known.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// What calls are made on: a [`Graph`], or a [`RegisteredGraph`].
#[derive(Clone, Debug)]
pub struct Target(Stated);

#[derive(Clone, Debug)]
enum Stated {
    Graph(Graph),
    Registered(RegisteredGraph),
}

impl Target {
    pub(crate) fn graph(&self) -> &Graph {
        match &self.0 {
            Stated::Graph(graph) => graph,
            Stated::Registered(registered) => registered.graph(),
        }
    }

    /// How many nodes of the graph belong to it.
    pub(crate) fn count(&self) -> usize {
        match &self.0 {
            Stated::Graph(graph) => graph.len(),
            Stated::Registered(registered) => registered.0.count,
        }
    }

    pub(crate) fn registered(&self) -> Option<&RegisteredGraph> {
        match &self.0 {
            Stated::Graph(_) => None,
            Stated::Registered(registered) => Some(registered),
        }
    }
}

impl From<&Graph> for Target {
    fn from(graph: &Graph) -> Self {
        Self(Stated::Graph(graph.clone()))
    }
}

impl From<&RegisteredGraph> for Target {
    fn from(registered: &RegisteredGraph) -> Self {
        Self(Stated::Registered(registered.clone()))
    }
}

/// A graph that the server keeps, without itself.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct GraphSummary {
    /// The hash of the graph.
    pub id: String,
    /// What it is, for people.
    pub description: Option<String>,
    /// The number of nodes.
    pub node_count: usize,
}

impl GraphSummary {
    pub(crate) fn read(stated: &Object) -> Result<Self> {
        Ok(Self {
            id: json::text(stated, "graph_id")?.to_owned(),
            description: json::optional_text(stated, "description")?.map(str::to_owned),
            node_count: json::whole(stated, "node_count")?,
        })
    }
}
