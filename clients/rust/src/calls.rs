//! The calls of a client as builders: methods set their options, and `send` sends them.

use std::future::Future;
use std::marker::PhantomData;
use std::time::Duration;

use serde_json::Value;

use crate::answers::Reader;
use crate::blocking::{self, Blocking};
use crate::client::Core;
use crate::exchange::Running;
use crate::layout::HessianLayout;
use crate::message::Asked;
pub use crate::models::{DeleteModel, GetModel, PutModel};
use crate::precision::Precision;
use crate::reduction::Reduction;
use crate::registered::Target;
use crate::request::{self, Putting};
use crate::retries::Policy;
use crate::transport::Transport;
use crate::{
    CheckAnswer, DifferentiateAnswer, Error, Feeds, Form, ForwardAnswer, GradientsAnswer, Graph, GraphSummary,
    HessianAnswer, HvpAnswer, JacobianAnswer, JvpAnswer, Node, PlanAnswer, RegisteredGraph, Resident, ResidentTensor,
    Result, Store, Tensor,
};

/// A call under construction. [`send`](Self::send) sends it. Options that you do not set are not sent.
#[must_use = "`send` sends the call"]
pub struct Call<'c, T, A> {
    core: &'c Core<T>,
    policy: Policy,
    asked: A,
}

/// A request to a client.
pub trait Ask: Send {
    /// The type of the result.
    type Answer;

    #[doc(hidden)]
    fn run<T: Transport>(self, running: &Running<'_, T>) -> impl Future<Output = Result<Self::Answer>> + Send;
}

impl<'c, T, A> Call<'c, T, A> {
    pub(crate) fn new(core: &'c Core<T>, asked: A) -> Self {
        Self { core, policy: core.policy.clone(), asked }
    }

    pub(crate) fn asked_mut(&mut self) -> &mut A {
        &mut self.asked
    }

    /// Sets the time limit for all attempts of the call together. `None` means no limit. Overrides the client's
    /// setting.
    pub fn timeout(mut self, timeout: impl Into<Option<Duration>>) -> Self {
        self.policy.timeout = timeout.into();
        self
    }

    /// Sets whether the call sends an Idempotency-Key if it stores something. Overrides the client's setting.
    pub fn idempotency(mut self, idempotency: bool) -> Self {
        self.policy.idempotency = idempotency;
        self
    }
}

impl<A: Ask> Call<'_, Blocking, A> {
    /// Sends the call and waits for the response.
    pub fn send(self) -> Result<A::Answer> {
        let running = Running::begin(self.core, self.policy);
        blocking::run(self.asked.run(&running))
    }
}

#[cfg(feature = "async")]
impl<A: Ask> Call<'_, crate::Awaiting, A> {
    /// Sends the call. To cancel it, drop the future.
    pub async fn send(self) -> Result<A::Answer> {
        let running = Running::begin(self.core, self.policy);
        self.asked.run(&running).await
    }
}

/// A kind of call on a graph.
pub trait Kind: Send {
    /// The type of the result.
    type Answer;
    #[doc(hidden)]
    const NAME: &'static str;
    #[doc(hidden)]
    fn read(reader: Reader) -> Result<Self::Answer>;
}

macro_rules! kinds {
    ($($(#[$documented:meta])* $kind:ident = $name:literal: $read:ident -> $answer:ty;)*) => {$(
        $(#[$documented])*
        #[derive(Debug)]
        pub enum $kind {}

        impl Kind for $kind {
            type Answer = $answer;
            const NAME: &'static str = $name;
            fn read(reader: Reader) -> Result<$answer> {
                reader.$read()
            }
        }
    )*};
}

kinds! {
    /// Computes values.
    Forward = "forward": forward -> ForwardAnswer;
    /// Computes values, and the gradients of one node.
    Gradients = "gradients": gradients -> GradientsAnswer;
    /// Computes vector-Jacobian products with the cotangents of outputs.
    Vjp = "vjp": gradients -> GradientsAnswer;
    /// Computes Jacobian-vector products with the tangents of leaves.
    Jvp = "jvp": jvp -> JvpAnswer;
    /// Computes full Jacobians.
    Jacobian = "jacobian": jacobian -> JacobianAnswer;
    /// Computes Hessian-vector products.
    Hvp = "hvp": hvp -> HvpAnswer;
    /// Computes full Hessians.
    Hessian = "hessian": hessian -> HessianAnswer;
    /// Runs one graph on many examples.
    Batch = "batch": batch -> GradientsAnswer;
    /// Compares gradients with central differences.
    Check = "check": check -> CheckAnswer;
    /// The dry run of a call: its estimates, without running it.
    Plan = "plan": plan -> PlanAnswer;
    /// The gradient as a graph.
    Differentiate = "differentiate": differentiate -> DifferentiateAnswer;
}

macro_rules! kinds_that {
    ($($(#[$documented:meta])* $trait:ident: $($kind:ident),*;)*) => {$(
        $(#[$documented])*
        pub trait $trait: Kind {}
        $(impl $trait for $kind {})*
    )*};
}

kinds_that! {
    /// Calls that return values.
    Runs: Forward, Gradients, Vjp, Jvp, Jacobian, Hvp, Hessian, Batch;
    /// Calls that have a memory budget.
    HasMemoryBudget: Forward, Gradients, Vjp, Jvp, Jacobian, Hvp, Hessian, Batch, Check, Plan;
    /// Calls that have a precision.
    HasPrecision: Forward, Gradients, Vjp, Jvp, Jacobian, Hvp, Hessian, Batch, Check, Plan;
    /// Calls that have outputs.
    HasOutputs: Forward, Gradients, Vjp, Jvp, Jacobian, Hvp, Hessian, Batch, Plan;
    /// Calls that differentiate one node.
    HasOf: Gradients, Hvp, Hessian, Batch, Check, Plan, Differentiate;
    /// Calls that differentiate with respect to nodes.
    HasWrt: Gradients, Vjp, Jacobian, Hvp, Hessian, Batch, Check, Plan, Differentiate;
    /// Calls on many examples.
    HasMapped: Batch, Plan;
}

/// A call of one kind on a graph.
pub struct Compute<K> {
    on: Target,
    asked: Asked,
    kind: PhantomData<fn() -> K>,
}

impl<K: Kind> Compute<K> {
    pub(crate) fn new(on: Target, asked: Asked) -> Self {
        Self { on, asked, kind: PhantomData }
    }
}

impl<K: Kind> Ask for Compute<K> {
    type Answer = K::Answer;

    async fn run<T: Transport>(self, running: &Running<'_, T>) -> Result<K::Answer> {
        let Self { on, asked, .. } = self;
        on.graph().check_sent()?;
        let is_registered = on.registered().is_some();
        let request = request::computing(K::NAME, on.graph(), on.count(), &asked, is_registered)?;
        let reply = running.compute(&on, request).await?;
        Reader::new(&reply, on.graph()).and_then(K::read).map_err(Error::of_the_answer)
    }
}

impl<T, K: Kind> Call<'_, T, Compute<K>> {
    /// Sets the encoding of tensors.
    pub fn form(mut self, form: Form) -> Self {
        self.asked.asked.form = Some(form);
        self
    }

    /// Adds a field of the request that is newer than this client.
    pub fn extra(self, name: &str, value: impl Into<Value>) -> Self {
        self.with(name, value)
    }

    fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.asked.asked.values.insert(name.to_owned(), value.into());
        self
    }

    fn with_nodes<'n>(mut self, name: &'static str, nodes: impl IntoIterator<Item = &'n Node>) -> Self {
        self.asked.asked.lists.push((name, nodes.into_iter().cloned().collect()));
        self
    }

    fn with_tensors(mut self, role: &'static str, feeds: impl Into<Feeds>) -> Self {
        self.asked.asked.tensors.push((role, feeds.into()));
        self
    }
}

impl<T, K: HasOutputs> Call<'_, T, Compute<K>> {
    /// Sets the nodes whose values are returned. The default is the last node, or the differentiated one.
    pub fn outputs<'n>(self, nodes: impl IntoIterator<Item = &'n Node>) -> Self {
        self.with_nodes("outputs", nodes)
    }
}

impl<T, K: Runs> Call<'_, T, Compute<K>> {
    /// Sets whether to report the first NaN or infinity.
    pub fn diagnose(self, diagnose: bool) -> Self {
        self.with("diagnose", diagnose)
    }

    /// Stores the value of a node as a resident tensor.
    pub fn store(mut self, node: &Node, target: impl Into<Store>) -> Self {
        self.asked.asked.store.push((node.clone(), target.into()));
        self
    }
}

impl<T, K: HasMemoryBudget> Call<'_, T, Compute<K>> {
    /// Limits the memory of the call, in bytes. The default is the server's limit.
    pub fn memory_budget(self, bytes: u64) -> Self {
        self.with("memory_budget", bytes)
    }
}

impl<T, K: HasPrecision> Call<'_, T, Compute<K>> {
    /// Sets the precision of float32 matrix products and convolutions on a GPU. The default is the server's setting.
    pub fn precision(self, precision: Precision) -> Self {
        self.with("precision", precision.word())
    }
}

impl<T, K: HasOf> Call<'_, T, Compute<K>> {
    /// Sets the node to differentiate. The default is the last node.
    pub fn of(mut self, node: &Node) -> Self {
        self.asked.asked.of = Some(node.clone());
        self
    }
}

impl<T, K: HasWrt> Call<'_, T, Compute<K>> {
    /// Sets the nodes to differentiate with respect to. The default is all parameters.
    pub fn wrt<'n>(self, nodes: impl IntoIterator<Item = &'n Node>) -> Self {
        self.with_nodes("wrt", nodes)
    }
}

impl<T, K: HasMapped> Call<'_, T, Compute<K>> {
    /// Sets the leaves whose feeds have a leading axis.
    pub fn mapped<'n>(self, nodes: impl IntoIterator<Item = &'n Node>) -> Self {
        self.with_nodes("mapped", nodes)
    }

    /// Sets how the results of the examples are combined. By default, they are not combined.
    pub fn reduce(self, reduction: Reduction) -> Self {
        self.with("reduce", reduction.word())
    }

    /// Sets how many examples are combined at a time. By default, the server chooses the block size.
    pub fn block(self, examples: u64) -> Self {
        self.with("block", examples)
    }
}

impl<T> Call<'_, T, Compute<Gradients>> {
    /// Sets the weights of the elements of the differentiated node.
    pub fn cotangent(mut self, cotangent: impl Into<Tensor>) -> Self {
        self.asked.asked.cotangent = Some(cotangent.into());
        self
    }
}

impl<T> Call<'_, T, Compute<Vjp>> {
    /// Adds the cotangents, one for each output.
    pub fn cotangents(self, cotangents: impl Into<Feeds>) -> Self {
        self.with_tensors("cotangents", cotangents)
    }

    /// Sets whether every cotangent has a leading axis.
    pub fn batched(self, batched: bool) -> Self {
        self.with("batched", batched)
    }
}

impl<T> Call<'_, T, Compute<Jvp>> {
    /// Sets tangents of leaves. Leaves without a tangent are held constant.
    pub fn tangents(self, tangents: impl Into<Feeds>) -> Self {
        self.with_tensors("tangents", tangents)
    }
}

impl<T> Call<'_, T, Compute<Hvp>> {
    /// Sets the vectors, one for each node of `wrt`.
    pub fn vectors(self, vectors: impl Into<Feeds>) -> Self {
        self.with_tensors("vectors", vectors)
    }
}

impl<T> Call<'_, T, Compute<Hessian>> {
    /// Sets the layout of the Hessian. The default is a block for each pair of nodes of `wrt`.
    pub fn layout(self, layout: HessianLayout) -> Self {
        self.with("layout", layout.word())
    }
}

impl<T> Call<'_, T, Compute<Check>> {
    /// Sets the number of directions to compare.
    pub fn directions(self, directions: u32) -> Self {
        self.with("directions", directions)
    }

    /// Sets the largest error that passes.
    pub fn tolerance(self, tolerance: f64) -> Self {
        self.with("tolerance", tolerance)
    }
}

impl<T> Call<'_, T, Compute<Plan>> {
    /// Sets the call to plan, by its API name.
    pub fn call(self, call: &str) -> Self {
        self.with("call", call)
    }
}

/// A call that stores a tensor.
pub struct Put {
    pub(crate) name: String,
    pub(crate) tensor: Tensor,
    pub(crate) asked: Putting,
}

impl Ask for Put {
    type Answer = Resident;

    async fn run<T: Transport>(self, running: &Running<'_, T>) -> Result<Resident> {
        let request = request::putting(&self.name, &self.tensor, &self.asked)?;
        running.answered(request, |answer| Resident::read(&answer)).await
    }
}

impl<T> Call<'_, T, Put> {
    /// Requires that the stored version has this etag, or any with `*`.
    pub fn if_match(mut self, etag: impl Into<String>) -> Self {
        self.asked.asked.if_match = Some(etag.into());
        self
    }

    /// Requires that the stored version does not have this etag. `*` requires that the tensor does not exist.
    pub fn if_none_match(mut self, etag: impl Into<String>) -> Self {
        self.asked.asked.if_none_match = Some(etag.into());
        self
    }

    /// Sets whether the server responds only after the tensor is on disk. The default is true.
    pub fn durable(mut self, durable: bool) -> Self {
        self.asked.asked.durable = Some(durable);
        self
    }

    /// Sets the encoding of the tensor.
    pub fn form(mut self, form: Form) -> Self {
        self.asked.asked.form = Some(form);
        self
    }
}

/// A call that downloads a tensor.
pub struct Get {
    pub(crate) name: String,
    pub(crate) if_match: Option<String>,
    pub(crate) if_none_match: Option<String>,
    pub(crate) form: Option<Form>,
}

impl Get {
    /// `None` if the stored version is the excluded one.
    async fn unless_same<T: Transport>(self, running: &Running<'_, T>) -> Result<Option<ResidentTensor>> {
        let Self { name, if_match, if_none_match, form } = self;
        let request = request::getting(&name, if_match.as_deref(), if_none_match.as_deref(), form)?;
        let reply = running.answer(request).await?;
        if if_none_match.is_some() && reply.status == 304 {
            return Ok(None);
        }
        let (etag, tensor) = reply.tensor().map_err(Error::of_the_answer)?;
        Ok(Some(ResidentTensor { resident: Resident::of(name, etag, &tensor), tensor }))
    }
}

impl Ask for Get {
    type Answer = ResidentTensor;

    async fn run<T: Transport>(self, running: &Running<'_, T>) -> Result<ResidentTensor> {
        let found = self.unless_same(running).await?;
        found.ok_or_else(|| Error::malformed("the response has no tensor"))
    }
}

impl<T> Call<'_, T, Get> {
    /// Requires that the stored version has this etag.
    pub fn if_match(mut self, etag: impl Into<String>) -> Self {
        self.asked.if_match = Some(etag.into());
        self
    }

    /// Sets the encoding of the tensor.
    pub fn form(mut self, form: Form) -> Self {
        self.asked.form = Some(form);
        self
    }
}

/// A call that downloads a tensor if its version differs from that of a handle.
pub struct GetIfChanged(pub(crate) Get);

impl Ask for GetIfChanged {
    type Answer = Option<ResidentTensor>;

    async fn run<T: Transport>(self, running: &Running<'_, T>) -> Result<Self::Answer> {
        self.0.unless_same(running).await
    }
}

/// A call that deletes a tensor.
pub struct Delete {
    pub(crate) name: String,
    pub(crate) if_match: Option<String>,
}

impl Ask for Delete {
    type Answer = Resident;

    async fn run<T: Transport>(self, running: &Running<'_, T>) -> Result<Resident> {
        let request = request::deleting(request::tensor_path(&self.name)?, self.if_match.as_deref());
        running.answered(request, |answer| Resident::read(&answer)).await
    }
}

impl<T> Call<'_, T, Delete> {
    /// Requires that the stored version has this etag, or any with `*`.
    pub fn if_match(mut self, etag: impl Into<String>) -> Self {
        self.asked.if_match = Some(etag.into());
        self
    }
}

/// A call that registers a graph.
pub struct Register {
    pub(crate) graph: Graph,
    pub(crate) description: Option<String>,
    pub(crate) form: Option<Form>,
}

impl Ask for Register {
    type Answer = RegisteredGraph;

    async fn run<T: Transport>(self, running: &Running<'_, T>) -> Result<RegisteredGraph> {
        let made = RegisteredGraph::described(&self.graph, self.description.as_deref(), self.form)?;
        running.register(&made).await?;
        Ok(made)
    }
}

impl<T> Call<'_, T, Register> {
    /// Sets the description of the graph, for people.
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.asked.description = Some(description.into());
        self
    }

    /// Sets the encoding of constants.
    pub fn form(mut self, form: Form) -> Self {
        self.asked.form = Some(form);
        self
    }
}

/// A call that fetches a registered graph.
pub struct Registered(pub(crate) String);

impl Ask for Registered {
    type Answer = RegisteredGraph;

    async fn run<T: Transport>(self, running: &Running<'_, T>) -> Result<RegisteredGraph> {
        let request = request::Request::get(request::graph_path(&self.0)?);
        running.answered(request, RegisteredGraph::read).await
    }
}

/// A call that deletes a registered graph.
pub struct Unregister(pub(crate) String);

impl Ask for Unregister {
    type Answer = GraphSummary;

    async fn run<T: Transport>(self, running: &Running<'_, T>) -> Result<GraphSummary> {
        let request = request::deleting(request::graph_path(&self.0)?, None);
        running.answered(request, |answer| GraphSummary::read(&answer)).await
    }
}
