//! Registered graphs.

use std::sync::{Arc, PoisonError, RwLock};

use crate::json::{self, Object};
use crate::request::{self, Request};
use crate::{graph, Form, Graph, Result};

/// A registered graph. Pass it to calls in place of a graph: it is not sent again.
///
/// The first call that uses it registers it, unless it is registered already. If the server no longer has the graph,
/// the call registers it again. It is the graph as it was: nodes appended later are not part of it. Clones are handles
/// of the same graph, which threads and clients can share.
#[derive(Clone, Debug)]
pub struct RegisteredGraph(Arc<Inner>);

struct Inner {
    graph: Graph,
    count: usize,
    request: Request,
    /// The server's response; None until the graph is registered.
    known: RwLock<Option<Object>>,
}

impl std::fmt::Debug for Inner {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{:?}", self.graph)
    }
}

impl RegisteredGraph {
    /// Creates a handle of the graph as it is now. The first call that uses it registers it, within that call's
    /// timeout. Fails if there was an error in building the graph.
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

    /// Reads a registered graph from a response.
    pub(crate) fn read(answer: Object) -> Result<Self> {
        let graph = graph::graph_of(json::inner(&answer, "graph")?)?;
        let made = Self::described(&graph, json::optional_text(&answer, "description")?, None)?;
        made.know(answer)?;
        Ok(made)
    }

    /// Stores the server's response.
    pub(crate) fn know(&self, mut answer: Object) -> Result<()> {
        json::text(&answer, "graph_id")?;
        answer.remove("graph");
        *self.0.known.write().unwrap_or_else(PoisonError::into_inner) = Some(answer);
        Ok(())
    }

    pub(crate) fn request(&self) -> Request {
        self.0.request.clone()
    }

    /// Returns the hash of the graph; None until the graph is registered.
    pub fn id(&self) -> Option<String> {
        let fields = self.fields()?;
        json::text(&fields, "graph_id").ok().map(str::to_owned)
    }

    /// Returns the graph itself.
    pub fn graph(&self) -> &Graph {
        &self.0.graph
    }

    /// Returns the server's response by API names, without the graph; None until the graph is registered.
    pub fn fields(&self) -> Option<Object> {
        self.0.known.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// The target of a call: a [`Graph`] or a [`RegisteredGraph`].
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

    /// Returns how many nodes of the graph belong to it.
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

/// The metadata of a registered graph.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct GraphSummary {
    /// The hash of the graph.
    pub id: String,
    /// The description, for people.
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
