//! What people use: a client, and what it is made with.

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

/// The variable that has the key, where the client is not given one.
const KEY_VARIABLE: &str = "GRADSERVE_API_KEY";
const USUAL_TIMEOUT: Duration = Duration::from_secs(60);
const USUAL_RETRIES: u32 = 2;
const USUAL_MOST: usize = 256 << 20;

/// A connection to a server, which threads may share, as they may clones.
///
/// Its methods state calls, which are done by [`send`](Call::send).
pub struct Client<T = Blocking>(Arc<Core<T>>);

/// A client whose calls are awaited, within tokio: made by [`ClientBuilder::build_async`].
#[cfg(feature = "async")]
pub type AsyncClient = Client<crate::Awaiting>;

/// What a client consists of.
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

/// What a client is made with.
#[derive(Clone)]
#[must_use = "a client is made by `build`"]
pub struct ClientBuilder {
    url: String,
    key: Option<String>,
    policy: Policy,
    most: usize,
}

/// Shows neither the key nor the URL, which nobody has looked at for a password yet.
impl fmt::Debug for ClientBuilder {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("ClientBuilder").finish_non_exhaustive()
    }
}

impl ClientBuilder {
    /// The key, which else is that of the environment, `GRADSERVE_API_KEY`. It is in no error.
    pub fn api_key(mut self, key: impl Into<String>) -> Self {
        self.key = Some(key.into());
        self
    }

    /// How long a call may take, over all of its tries; None is without end. Usually it is a minute.
    pub fn timeout(mut self, timeout: impl Into<Option<Duration>>) -> Self {
        self.policy.timeout = timeout.into();
        self
    }

    /// How often a call is repeated at most. Usually it is twice.
    pub fn retries(mut self, retries: u32) -> Self {
        self.policy.retries = retries;
        self
    }

    /// Whether calls that keep something get an Idempotency-Key, without which they are not repeated.
    pub fn idempotency(mut self, idempotency: bool) -> Self {
        self.policy.idempotency = idempotency;
        self
    }

    /// How long an answer may be to be read. Usually it is 256 MiB.
    pub fn max_response_bytes(mut self, most: usize) -> Self {
        self.most = most;
        self
    }

    /// Hands in clock, chance and keys.
    #[doc(hidden)]
    pub fn surroundings(mut self, surroundings: impl Surroundings + 'static) -> Self {
        self.policy.surroundings = Arc::new(surroundings);
        self
    }

    /// The client. Fails for a URL or a key that cannot be one.
    pub fn build(self) -> Result<Client> {
        self.over(Blocking::new())
    }

    /// The client whose calls are awaited. Fails for a URL or a key that cannot be one.
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
    /// A client of the server at a URL, that is as usual. Fails for a URL or a key that cannot be one.
    pub fn new(url: impl Into<String>) -> Result<Self> {
        Self::builder(url).build()
    }

    /// What a client of the server at a URL is made with.
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

    /// Values of nodes, by default of the last one.
    pub fn forward(&self, on: impl Into<Target>, feeds: impl Into<Feeds>) -> Call<'_, T, Compute<Forward>> {
        self.fed(on, feeds)
    }

    /// Values, and the gradients of one node.
    pub fn gradients(&self, on: impl Into<Target>, feeds: impl Into<Feeds>) -> Call<'_, T, Compute<Gradients>> {
        self.fed(on, feeds)
    }

    /// Cotangents of outputs times the Jacobian.
    pub fn vjp(&self, on: impl Into<Target>, feeds: impl Into<Feeds>) -> Call<'_, T, Compute<Vjp>> {
        self.fed(on, feeds)
    }

    /// The Jacobian times tangents of leaves.
    pub fn jvp(&self, on: impl Into<Target>, feeds: impl Into<Feeds>) -> Call<'_, T, Compute<Jvp>> {
        self.fed(on, feeds)
    }

    /// Whole Jacobians, a block for each output and node to differentiate by.
    pub fn jacobian(&self, on: impl Into<Target>, feeds: impl Into<Feeds>) -> Call<'_, T, Compute<Jacobian>> {
        self.fed(on, feeds)
    }

    /// The Hessian times vectors, exactly.
    pub fn hvp(&self, on: impl Into<Target>, feeds: impl Into<Feeds>) -> Call<'_, T, Compute<Hvp>> {
        self.fed(on, feeds)
    }

    /// Whole Hessians, a block for each pair of nodes to differentiate by.
    pub fn hessian(&self, on: impl Into<Target>, feeds: impl Into<Feeds>) -> Call<'_, T, Compute<Hessian>> {
        self.fed(on, feeds)
    }

    /// One graph on many examples: values and gradients of each.
    pub fn batch(&self, on: impl Into<Target>, feeds: impl Into<Feeds>) -> Call<'_, T, Compute<Batch>> {
        self.fed(on, feeds)
    }

    /// Compares gradients with central differences.
    pub fn check(&self, on: impl Into<Target>, feeds: impl Into<Feeds>) -> Call<'_, T, Compute<Check>> {
        self.fed(on, feeds)
    }

    /// Says what a call would take. Nothing is run.
    pub fn plan(&self, on: impl Into<Target>, types: impl Into<Types>) -> Call<'_, T, Compute<Plan>> {
        self.typed(on, types)
    }

    /// The gradient as a graph. Nothing is run.
    pub fn differentiate(&self, on: impl Into<Target>, types: impl Into<Types>) -> Call<'_, T, Compute<Differentiate>> {
        self.typed(on, types)
    }

    /// Has the server keep a tensor, which calls may name from then on.
    pub fn put(&self, name: impl Into<String>, tensor: impl Into<Tensor>) -> Call<'_, T, Put> {
        self.call(Put { name: name.into(), tensor: tensor.into(), asked: Putting::default() })
    }

    /// A tensor that the server keeps, as it is now.
    pub fn get(&self, name: impl Into<String>) -> Call<'_, T, Get> {
        self.call(Get { name: name.into(), if_match: None, if_none_match: None, form: None })
    }

    /// The tensor, where it is another version by now than this one.
    pub fn get_if_changed(&self, than: &Resident) -> Call<'_, T, GetIfChanged> {
        self.call(GetIfChanged(Get {
            name: than.name.clone(),
            if_match: None,
            if_none_match: Some(than.etag.clone()),
            form: None,
        }))
    }

    /// Has the server keep a tensor no more. The answer is what there was.
    pub fn delete(&self, name: impl Into<String>) -> Call<'_, T, Delete> {
        self.call(Delete { name: name.into(), if_match: None })
    }

    /// All tensors that the server keeps, by name, a page at a time.
    pub fn tensors(&self) -> Listing<'_, T, Resident> {
        Listing::new(&self.0, "tensors", Resident::read)
    }

    /// Has the server keep a graph as it is now.
    pub fn register(&self, graph: &Graph) -> Call<'_, T, Register> {
        self.call(Register { graph: graph.clone(), description: None, form: None })
    }

    /// A graph that the server keeps already. Its nodes are found by their names and ids.
    pub fn registered(&self, id: impl Into<String>) -> Call<'_, T, Registered> {
        self.call(Registered(id.into()))
    }

    /// Has the server forget a graph.
    pub fn unregister(&self, id: impl Into<String>) -> Call<'_, T, Unregister> {
        self.call(Unregister(id.into()))
    }

    /// All graphs that the server keeps, in the order in which they came, a page at a time.
    pub fn graphs(&self) -> Listing<'_, T, GraphSummary> {
        Listing::new(&self.0, "graphs", GraphSummary::read)
    }

    /// Has the server keep a model of the registered graph of this id: what it consists of is stated by methods.
    pub fn put_model(&self, name: impl Into<String>, graph_id: impl Into<String>) -> Call<'_, T, PutModel> {
        self.call(PutModel::new(name.into(), graph_id.into()))
    }

    /// A model that the server keeps, as it is now.
    pub fn model(&self, name: impl Into<String>) -> Call<'_, T, GetModel> {
        self.call(GetModel(name.into()))
    }

    /// Has the server keep a model no more; its graph and its tensors stay. The answer is what there was.
    pub fn delete_model(&self, name: impl Into<String>) -> Call<'_, T, DeleteModel> {
        self.call(DeleteModel { name: name.into(), if_match: None })
    }

    /// All models that the server keeps, by name, a page at a time.
    pub fn models(&self) -> Listing<'_, T, Model> {
        Listing::new(&self.0, "models", Model::read)
    }

    /// The ops that the server has.
    pub fn ops(&self) -> Call<'_, T, Ops> {
        self.call(Ops)
    }
}
