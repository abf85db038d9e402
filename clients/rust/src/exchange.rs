//! Calls from beginning to end: requests, attempts and waits, with any transport.

use crate::client::Core;
use crate::json::Object;
use crate::registered::{RegisteredGraph, Target};
use crate::request::{self, Request};
use crate::retries::{Deadline, Policy, Tries};
use crate::transport::{self, Reply, Transport};
use crate::{Error, ErrorKind, Graph, Refusal, Result};

const KEY: &str = "Idempotency-Key";

/// A call in progress: all of its requests and attempts until its deadline.
pub struct Running<'c, T> {
    core: &'c Core<T>,
    policy: Policy,
    deadline: Deadline,
}

impl<'c, T: Transport> Running<'c, T> {
    /// Starts a call.
    pub(crate) fn begin(core: &'c Core<T>, policy: Policy) -> Self {
        let deadline = Deadline::new(&policy);
        Self { core, policy, deadline }
    }

    /// Sends a request and returns the response.
    pub(crate) async fn answer(&self, request: Request) -> Result<Reply> {
        Exchange::new(self, request).run().await
    }

    /// Sends a request and reads the JSON object of its response.
    pub(crate) async fn answered<A>(&self, request: Request, read: impl FnOnce(Object) -> Result<A>) -> Result<A> {
        let reply = self.answer(request).await?;
        read(reply.object()?).map_err(Error::of_the_answer)
    }

    /// Makes a call on a graph or a registered graph, which it registers first if the server does not have it.
    pub(crate) async fn compute(&self, on: &Target, request: Request) -> Result<Reply> {
        let mut exchange = Exchange::new(self, request);
        let answer = match on.registered() {
            Some(registered) => exchange.run_on(registered).await,
            None => exchange.run().await,
        };
        answer.map_err(|error| explained(error, on.graph(), exchange.has_key))
    }

    /// Registers a graph on the server.
    pub(crate) async fn register(&self, registered: &RegisteredGraph) -> Result<()> {
        self.keep(registered).await.map_err(|error| explained(error, registered.graph(), false))
    }

    async fn keep(&self, registered: &RegisteredGraph) -> Result<()> {
        self.answered(registered.request(), |answer| registered.know(answer)).await
    }
}

/// A request with all of its attempts, under one idempotency key.
struct Exchange<'r, T> {
    running: &'r Running<'r, T>,
    request: Request,
    tries: Tries,
    has_key: bool,
}

impl<'r, T: Transport> Exchange<'r, T> {
    fn new(running: &'r Running<'_, T>, mut request: Request) -> Self {
        let policy = &running.policy;
        let has_key = request.keeps && policy.idempotency;
        if has_key {
            request.headers.push((KEY, policy.surroundings.new_key()));
        }
        Self { tries: Tries::new(policy, has_key || !request.keeps), running, request, has_key }
    }

    /// Sends the request, and retries until there is a response. Fails with the error of the last attempt.
    async fn run(&mut self) -> Result<Reply> {
        let Running { core, policy, deadline } = self.running;
        loop {
            let error = match transport::answer(*core, &self.request, deadline).await {
                Ok(reply) => return Ok(reply),
                Err(error) => error,
            };
            let wait = self.tries.after(error, policy, deadline)?;
            if !policy.surroundings.pass(wait) {
                core.transport.sleep(wait).await;
            }
        }
    }

    /// Makes a call on a registered graph. If the server does not have the graph, registers it and repeats the call.
    async fn run_on(&mut self, registered: &RegisteredGraph) -> Result<Reply> {
        let id = match registered.id() {
            Some(id) => id,
            None => self.registered(registered).await?,
        };
        let call = self.request.path.clone();
        self.request.path = on_graph(&call, &id)?;
        match self.run().await {
            Err(error) if is_of_the_graph(&error) => {
                let id = self.registered(registered).await?;
                self.request.path = on_graph(&call, &id)?;
                self.run().await
            }
            answer => answer,
        }
    }

    async fn registered(&self, registered: &RegisteredGraph) -> Result<String> {
        self.running.keep(registered).await?;
        Ok(registered.id().unwrap_or_default())
    }
}

/// Returns the path of a call on a registered graph.
fn on_graph(call: &str, id: &str) -> Result<String> {
    let call = call.trim_start_matches("/v1");
    Ok(request::graph_path(id).map_err(Error::of_the_answer)? + call)
}

/// Returns whether the graph itself is missing. A missing tensor is reported with its node.
fn is_of_the_graph(error: &Error) -> bool {
    error.refusal().is_some_and(|refusal| {
        let is_missing = error.kind() == ErrorKind::NotFound && refusal.code.as_deref() == Some("not_found");
        is_missing && refusal.node.is_none() && refusal.pointer.is_none()
    })
}

/// Adds to an error what only the client knows: the node, and that it sent an Idempotency-Key.
fn explained(error: Error, graph: &Graph, has_key: bool) -> Error {
    let Some(refusal) = error.refusal() else {
        return error;
    };
    let is_over = has_key && refusal.status == 413 && refusal.code.as_deref() == Some("over_budget");
    let places = places_of(refusal, graph);
    let error = if places.is_empty() { error } else { error.remarked(&format!("at {}", places.join(": "))) };
    if !is_over {
        return error;
    }
    error.remarked(
        "the client sent an Idempotency-Key, so that a retry does nothing twice; if the response is too long to be \
         stored for the key, send none: idempotency(false)",
    )
}

/// Describes the node of a problem report, and its place in a function.
fn places_of(refusal: &Refusal, graph: &Graph) -> Vec<String> {
    let node = refusal.node.and_then(|id| graph.node(id).ok()).map(|node| node.to_string());
    let function = refusal.function.and_then(|index| graph.functions().nth(index));
    let inside = function.map(|function| match refusal.function_node.and_then(|id| function.body().node(id).ok()) {
        Some(node) => node.to_string(),
        None => function.to_string(),
    });
    node.into_iter().chain(inside).collect()
}
