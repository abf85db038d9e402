//! The client and its settings.

use std::env;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::blocking::Blocking;
use crate::calls::{
    Batch, Call, Check, Compute, Delete, Differentiate, Forward, Get, GetIfChanged, Gradients, Hessian, Hvp, Jacobian,
    Jvp, Kind, Plan, Put, Register, Registered, Unregister, Vjp,
};
use crate::catalogue::Ops;
use crate::listing::Listing;
use crate::message::Asked;
use crate::models::{DeleteModel, GetModel, PutModel};
use crate::registered::Target;
use crate::request::Putting;
use crate::retries::{Policy, Surroundings, Usual};
use crate::transport::Address;
use crate::{Feeds, Graph, GraphSummary, Model, Resident, Result, Tensor, Types};

/// The environment variable with the default API key.
const KEY_VARIABLE: &str = "GRADSERVE_API_KEY";
const USUAL_TIMEOUT: Duration = Duration::from_secs(60);
const USUAL_RETRIES: u32 = 2;
const USUAL_MOST: usize = 256 << 20;

/// A client of one server. Threads can share it or use clones of it.
///
/// Its methods create calls, which [`send`](Call::send) sends.
pub struct Client<T = Blocking>(Arc<Core<T>>);

/// A client with async calls, within tokio. Created by [`ClientBuilder::build_async`].
#[cfg(feature = "async")]
pub type AsyncClient = Client<crate::Awaiting>;

/// The parts of a client.
pub struct Core<T> {
    pub(crate) transport: T,
    pub(crate) address: Address,
    pub(crate) policy: Policy,
    pub(crate) most: usize,
}

impl<T> Clone for Client<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

/// Does not show the key.
impl<T> fmt::Debug for Client<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Client").field("url", &self.0.address.base()).finish_non_exhaustive()
    }
}

/// The settings of a client.
#[derive(Clone)]
#[must_use = "`build` creates the client"]
pub struct ClientBuilder {
    url: String,
    key: Option<String>,
    policy: Policy,
    most: usize,
}

/// Shows neither the key nor the URL, which may contain a password.
impl fmt::Debug for ClientBuilder {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("ClientBuilder").finish_non_exhaustive()
    }
}

impl ClientBuilder {
    /// Sets the API key. The default is the environment variable `GRADSERVE_API_KEY`. Errors never contain the key.
    pub fn api_key(mut self, key: impl Into<String>) -> Self {
        self.key = Some(key.into());
        self
    }

    /// Sets the time limit for all attempts of a call together. `None` means no limit. The default is a minute.
    pub fn timeout(mut self, timeout: impl Into<Option<Duration>>) -> Self {
        self.policy.timeout = timeout.into();
        self
    }

    /// Sets the maximum number of retries of a call. The default is 2.
    pub fn retries(mut self, retries: u32) -> Self {
        self.policy.retries = retries;
        self
    }

    /// Sets whether calls that store something send an Idempotency-Key. Without one they are not retried.
    pub fn idempotency(mut self, idempotency: bool) -> Self {
        self.policy.idempotency = idempotency;
        self
    }

    /// Sets the maximum size of a response. The default is 256 MiB.
    pub fn max_response_bytes(mut self, most: usize) -> Self {
        self.most = most;
        self
    }

    /// Replaces clock, randomness and key generation.
    #[doc(hidden)]
    pub fn surroundings(mut self, surroundings: impl Surroundings + 'static) -> Self {
        self.policy.surroundings = Arc::new(surroundings);
        self
    }

    /// Creates the client. Fails if the URL or the key is invalid.
    pub fn build(self) -> Result<Client> {
        self.over(Blocking::new())
    }

    /// Creates the async client. Fails if the URL or the key is invalid.
    #[cfg(feature = "async")]
    pub fn build_async(self) -> Result<AsyncClient> {
        self.over(crate::Awaiting::new())
    }

    fn over<T>(self, transport: T) -> Result<Client<T>> {
        let key = self.key.or_else(|| env::var(KEY_VARIABLE).ok());
        Ok(Client(Arc::new(Core {
            transport,
            address: Address::new(&self.url, key.as_deref())?,
            policy: self.policy,
            most: self.most,
        })))
    }
}

impl Client {
    /// Creates a client of the server at a URL, with default settings. Fails if the URL or the key is invalid.
    pub fn new(url: impl Into<String>) -> Result<Self> {
        Self::builder(url).build()
    }

    /// Returns a builder for a client of the server at a URL.
    pub fn builder(url: impl Into<String>) -> ClientBuilder {
        ClientBuilder {
            url: url.into(),
            key: None,
            policy: Policy {
                timeout: Some(USUAL_TIMEOUT),
                retries: USUAL_RETRIES,
                idempotency: true,
                surroundings: Arc::new(Usual::new()),
            },
            most: USUAL_MOST,
        }
    }
}

impl<T> Client<T> {
    fn call<A>(&self, asked: A) -> Call<'_, T, A> {
        Call::new(&self.0, asked)
    }

    fn fed<K: Kind>(&self, on: impl Into<Target>, feeds: impl Into<Feeds>) -> Call<'_, T, Compute<K>> {
        let asked = Asked { tensors: vec![("feeds", feeds.into())], ..Asked::default() };
        self.call(Compute::new(on.into(), asked))
    }

    fn typed<K: Kind>(&self, on: impl Into<Target>, types: impl Into<Types>) -> Call<'_, T, Compute<K>> {
        let asked = Asked { types: types.into(), ..Asked::default() };
        self.call(Compute::new(on.into(), asked))
    }

    /// Computes the values of nodes, by default of the last one.
    pub fn forward(&self, on: impl Into<Target>, feeds: impl Into<Feeds>) -> Call<'_, T, Compute<Forward>> {
        self.fed(on, feeds)
    }

    /// Computes values, and the gradients of one node.
    pub fn gradients(&self, on: impl Into<Target>, feeds: impl Into<Feeds>) -> Call<'_, T, Compute<Gradients>> {
        self.fed(on, feeds)
    }

    /// Computes vector-Jacobian products with the cotangents of outputs.
    pub fn vjp(&self, on: impl Into<Target>, feeds: impl Into<Feeds>) -> Call<'_, T, Compute<Vjp>> {
        self.fed(on, feeds)
    }

    /// Computes Jacobian-vector products with the tangents of leaves.
    pub fn jvp(&self, on: impl Into<Target>, feeds: impl Into<Feeds>) -> Call<'_, T, Compute<Jvp>> {
        self.fed(on, feeds)
    }

    /// Computes full Jacobians, one block for each output and node of `wrt`.
    pub fn jacobian(&self, on: impl Into<Target>, feeds: impl Into<Feeds>) -> Call<'_, T, Compute<Jacobian>> {
        self.fed(on, feeds)
    }

    /// Computes exact Hessian-vector products.
    pub fn hvp(&self, on: impl Into<Target>, feeds: impl Into<Feeds>) -> Call<'_, T, Compute<Hvp>> {
        self.fed(on, feeds)
    }

    /// Computes full Hessians, one block for each pair of nodes of `wrt`, or
    /// [one matrix](crate::HessianLayout::Matrix).
    pub fn hessian(&self, on: impl Into<Target>, feeds: impl Into<Feeds>) -> Call<'_, T, Compute<Hessian>> {
        self.fed(on, feeds)
    }

    /// Runs one graph on many examples, and computes the values and gradients of each.
    pub fn batch(&self, on: impl Into<Target>, feeds: impl Into<Feeds>) -> Call<'_, T, Compute<Batch>> {
        self.fed(on, feeds)
    }

    /// Compares gradients with central differences.
    pub fn check(&self, on: impl Into<Target>, feeds: impl Into<Feeds>) -> Call<'_, T, Compute<Check>> {
        self.fed(on, feeds)
    }

    /// Estimates the cost of a call (a dry run), without running it.
    pub fn plan(&self, on: impl Into<Target>, types: impl Into<Types>) -> Call<'_, T, Compute<Plan>> {
        self.typed(on, types)
    }

    /// Returns the gradient as a graph, without running anything.
    pub fn differentiate(&self, on: impl Into<Target>, types: impl Into<Types>) -> Call<'_, T, Compute<Differentiate>> {
        self.typed(on, types)
    }

    /// Stores a tensor on the server and returns a handle that calls accept in place of a tensor.
    pub fn put(&self, name: impl Into<String>, tensor: impl Into<Tensor>) -> Call<'_, T, Put> {
        self.call(Put { name: name.into(), tensor: tensor.into(), asked: Putting::default() })
    }

    /// Downloads the current version of a tensor.
    pub fn get(&self, name: impl Into<String>) -> Call<'_, T, Get> {
        self.call(Get { name: name.into(), if_match: None, if_none_match: None, form: None })
    }

    /// Downloads a tensor if its version differs from this handle's.
    pub fn get_if_changed(&self, than: &Resident) -> Call<'_, T, GetIfChanged> {
        self.call(GetIfChanged(Get {
            name: than.name.clone(),
            if_match: None,
            if_none_match: Some(than.etag.clone()),
            form: None,
        }))
    }

    /// Deletes a tensor from the server and returns the metadata of the deleted version.
    pub fn delete(&self, name: impl Into<String>) -> Call<'_, T, Delete> {
        self.call(Delete { name: name.into(), if_match: None })
    }

    /// Iterates over all resident tensors by name, page by page.
    pub fn tensors(&self) -> Listing<'_, T, Resident> {
        Listing::new(&self.0, "tensors", Resident::read)
    }

    /// Registers a graph on the server as it is now.
    pub fn register(&self, graph: &Graph) -> Call<'_, T, Register> {
        self.call(Register { graph: graph.clone(), description: None, form: None })
    }

    /// Fetches a registered graph. Look up its nodes by name or id.
    pub fn registered(&self, id: impl Into<String>) -> Call<'_, T, Registered> {
        self.call(Registered(id.into()))
    }

    /// Deletes a registered graph from the server.
    pub fn unregister(&self, id: impl Into<String>) -> Call<'_, T, Unregister> {
        self.call(Unregister(id.into()))
    }

    /// Iterates over all registered graphs in order of registration, page by page.
    pub fn graphs(&self) -> Listing<'_, T, GraphSummary> {
        Listing::new(&self.0, "graphs", GraphSummary::read)
    }

    /// Stores a model of the registered graph with this id. Methods of the call add inputs, outputs and bound leaves.
    pub fn put_model(&self, name: impl Into<String>, graph_id: impl Into<String>) -> Call<'_, T, PutModel> {
        self.call(PutModel::new(name.into(), graph_id.into()))
    }

    /// Fetches the current version of a model.
    pub fn model(&self, name: impl Into<String>) -> Call<'_, T, GetModel> {
        self.call(GetModel(name.into()))
    }

    /// Deletes a model and returns the metadata of the deleted version. Its graph and tensors stay.
    pub fn delete_model(&self, name: impl Into<String>) -> Call<'_, T, DeleteModel> {
        self.call(DeleteModel { name: name.into(), if_match: None })
    }

    /// Iterates over all models by name, page by page.
    pub fn models(&self) -> Listing<'_, T, Model> {
        Listing::new(&self.0, "models", Model::read)
    }

    /// Returns the server's op catalogue.
    pub fn ops(&self) -> Call<'_, T, Ops> {
        self.call(Ops)
    }
}
