//! What a client is asked: what each call takes, by methods, until it is sent.

use std::future::Future;
use std::marker::PhantomData;
use std::time::Duration;

use serde_json::Value;

use crate::answers::Reader;
use crate::blocking::{self, Blocking};
use crate::client::Core;
use crate::exchange::Running;
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

/// A call that is being stated: nothing is sent before [`send`](Self::send). What is not stated is not sent.
#[must_use = "a call is not sent before `send`"]
pub struct Call<'c, T, A> {
    core: &'c Core<T>,
    policy: Policy,
    asked: A,
}

/// Something that a client is asked.
pub trait Ask: Send {
    /// What it is answered.
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

    /// How long the call may take, over all of its tries, in place of what the client has; None is without end.
    pub fn timeout(mut self, timeout: impl Into<Option<Duration>>) -> Self {
        self.policy.timeout = timeout.into();
        self
    }

    /// Whether the call gets an Idempotency-Key where it keeps something, in place of what the client has.
    pub fn idempotency(mut self, idempotency: bool) -> Self {
        self.policy.idempotency = idempotency;
        self
    }
}

impl<A: Ask> Call<'_, Blocking, A> {
    /// Sends the call, and waits for the answer.
    pub fn send(self) -> Result<A::Answer> {
        let running = Running::begin(self.core, self.policy);
        blocking::run(self.asked.run(&running))
    }
}

#[cfg(feature = "async")]
impl<A: Ask> Call<'_, crate::Awaiting, A> {
    /// Sends the call. Where the future is dropped before it is done, the call is given up.
    pub async fn send(self) -> Result<A::Answer> {
        let running = Running::begin(self.core, self.policy);
        self.asked.run(&running).await
    }
}

/// One of the calls on graphs.
pub trait Kind: Send {
    /// What it is answered.
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
    /// Values.
    Forward = "forward": forward -> ForwardAnswer;
    /// Values, and the gradients of one node.
    Gradients = "gradients": gradients -> GradientsAnswer;
    /// Cotangents of outputs times the Jacobian.
    Vjp = "vjp": gradients -> GradientsAnswer;
    /// The Jacobian times tangents of leaves.
    Jvp = "jvp": jvp -> JvpAnswer;
    /// Whole Jacobians.
    Jacobian = "jacobian": jacobian -> JacobianAnswer;
    /// The Hessian times vectors.
    Hvp = "hvp": hvp -> HvpAnswer;
    /// Whole Hessians.
    Hessian = "hessian": hessian -> HessianAnswer;
    /// One graph on many examples.
    Batch = "batch": batch -> GradientsAnswer;
    /// Gradients compared with central differences.
    Check = "check": check -> CheckAnswer;
    /// What a call would take.
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
    /// Calls that give values back.
    Runs: Forward, Gradients, Vjp, Jvp, Jacobian, Hvp, Hessian, Batch;
    /// Calls that take memory for what they compute, and those that are planned.
    HasMemoryBudget: Forward, Gradients, Vjp, Jvp, Jacobian, Hvp, Hessian, Batch, Check, Plan;
    /// Calls that compute, and those that are planned.
    HasPrecision: Forward, Gradients, Vjp, Jvp, Jacobian, Hvp, Hessian, Batch, Check, Plan;
    /// Calls that have outputs.
    HasOutputs: Forward, Gradients, Vjp, Jvp, Jacobian, Hvp, Hessian, Batch, Plan;
    /// Calls that differentiate one node.
    HasOf: Gradients, Hvp, Hessian, Batch, Check, Plan, Differentiate;
    /// Calls that differentiate by nodes.
    HasWrt: Gradients, Vjp, Jacobian, Hvp, Hessian, Batch, Check, Plan, Differentiate;
    /// Calls on many examples.
    HasMapped: Batch, Plan;
}

/// A call of some kind on a graph.
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
    /// How tensors travel.
    pub fn form(mut self, form: Form) -> Self {
        self.asked.asked.form = Some(form);
        self
    }

    /// A field of the request that is newer than this client.
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
    /// The nodes whose values come back; by default the last one, or the one that is differentiated.
    pub fn outputs<'n>(self, nodes: impl IntoIterator<Item = &'n Node>) -> Self {
        self.with_nodes("outputs", nodes)
    }
}

impl<T, K: Runs> Call<'_, T, Compute<K>> {
    /// Whether the server looks for the first NaN or infinity.
    pub fn diagnose(self, diagnose: bool) -> Self {
        self.with("diagnose", diagnose)
    }

    /// Has the value of a node kept as a resident tensor.
    pub fn store(mut self, node: &Node, target: impl Into<Store>) -> Self {
        self.asked.asked.store.push((node.clone(), target.into()));
        self
    }
}

impl<T, K: HasMemoryBudget> Call<'_, T, Compute<K>> {
    /// How many bytes the call may take at most; by default as the server has it.
    pub fn memory_budget(self, bytes: u64) -> Self {
        self.with("memory_budget", bytes)
    }
}

impl<T, K: HasPrecision> Call<'_, T, Compute<K>> {
    /// How products and convolutions may read float32 on a GPU; by default as the server has it.
    pub fn precision(self, precision: Precision) -> Self {
        self.with("precision", precision.word())
    }
}

impl<T, K: HasOf> Call<'_, T, Compute<K>> {
    /// The node that is differentiated; by default the last one.
    pub fn of(mut self, node: &Node) -> Self {
        self.asked.asked.of = Some(node.clone());
        self
    }
}

impl<T, K: HasWrt> Call<'_, T, Compute<K>> {
    /// The nodes to differentiate by; by default all parameters.
    pub fn wrt<'n>(self, nodes: impl IntoIterator<Item = &'n Node>) -> Self {
        self.with_nodes("wrt", nodes)
    }
}

impl<T, K: HasMapped> Call<'_, T, Compute<K>> {
    /// The leaves whose feeds have a leading axis.
    pub fn mapped<'n>(self, nodes: impl IntoIterator<Item = &'n Node>) -> Self {
        self.with_nodes("mapped", nodes)
    }

    /// What is made of the examples; by default each is by itself.
    pub fn reduce(self, reduction: Reduction) -> Self {
        self.with("reduce", reduction.word())
    }

    /// How many examples are added up at a time; by default as many as the server finds right.
    pub fn block(self, examples: u64) -> Self {
        self.with("block", examples)
    }
}

impl<T> Call<'_, T, Compute<Gradients>> {
    /// The weights of the elements of what is differentiated.
    pub fn cotangent(mut self, cotangent: impl Into<Tensor>) -> Self {
        self.asked.asked.cotangent = Some(cotangent.into());
        self
    }
}

impl<T> Call<'_, T, Compute<Vjp>> {
    /// A cotangent for each output.
    pub fn cotangents(self, cotangents: impl Into<Feeds>) -> Self {
        self.with_tensors("cotangents", cotangents)
    }

    /// Whether every cotangent has a leading axis.
    pub fn batched(self, batched: bool) -> Self {
        self.with("batched", batched)
    }
}

impl<T> Call<'_, T, Compute<Jvp>> {
    /// Tangents of leaves; others stay.
    pub fn tangents(self, tangents: impl Into<Feeds>) -> Self {
        self.with_tensors("tangents", tangents)
    }
}

impl<T> Call<'_, T, Compute<Hvp>> {
    /// A vector for each node to differentiate by.
    pub fn vectors(self, vectors: impl Into<Feeds>) -> Self {
        self.with_tensors("vectors", vectors)
    }
}

impl<T> Call<'_, T, Compute<Check>> {
    /// How many directions are compared.
    pub fn directions(self, directions: u32) -> Self {
        self.with("directions", directions)
    }

    /// How far apart they may be.
    pub fn tolerance(self, tolerance: f64) -> Self {
        self.with("tolerance", tolerance)
    }
}

impl<T> Call<'_, T, Compute<Plan>> {
    /// The call to plan, by its name on the wire.
    pub fn call(self, call: &str) -> Self {
        self.with("call", call)
    }
}

/// Having the server keep a tensor.
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
    /// The etag that there has to be, `*` for any.
    pub fn if_match(mut self, etag: impl Into<String>) -> Self {
        self.asked.asked.if_match = Some(etag.into());
        self
    }

    /// The etag that there may not be: `*` demands that there is no tensor.
    pub fn if_none_match(mut self, etag: impl Into<String>) -> Self {
        self.asked.asked.if_none_match = Some(etag.into());
        self
    }

    /// Whether the tensor is on disk before the answer, as it is unless told otherwise.
    pub fn durable(mut self, durable: bool) -> Self {
        self.asked.asked.durable = Some(durable);
        self
    }

    /// How the tensor travels.
    pub fn form(mut self, form: Form) -> Self {
        self.asked.asked.form = Some(form);
        self
    }
}

/// Asking for a tensor that the server keeps.
pub struct Get {
    pub(crate) name: String,
    pub(crate) if_match: Option<String>,
    pub(crate) if_none_match: Option<String>,
    pub(crate) form: Option<Form>,
}

impl Get {
    /// None where it is the version that the server was told of.
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
        found.ok_or_else(|| Error::malformed("the answer has no tensor"))
    }
}

impl<T> Call<'_, T, Get> {
    /// The etag that there has to be.
    pub fn if_match(mut self, etag: impl Into<String>) -> Self {
        self.asked.if_match = Some(etag.into());
        self
    }

    /// How the tensor travels.
    pub fn form(mut self, form: Form) -> Self {
        self.asked.form = Some(form);
        self
    }
}

/// Asking for a tensor that the server keeps, where it is another version by now.
pub struct GetIfChanged(pub(crate) Get);

impl Ask for GetIfChanged {
    type Answer = Option<ResidentTensor>;

    async fn run<T: Transport>(self, running: &Running<'_, T>) -> Result<Self::Answer> {
        self.0.unless_same(running).await
    }
}

/// Having the server keep a tensor no more.
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
    /// The etag that there has to be, `*` for any.
    pub fn if_match(mut self, etag: impl Into<String>) -> Self {
        self.asked.if_match = Some(etag.into());
        self
    }
}

/// Having the server keep a graph.
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
    /// What the graph is, for people.
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.asked.description = Some(description.into());
        self
    }

    /// How constants travel.
    pub fn form(mut self, form: Form) -> Self {
        self.asked.form = Some(form);
        self
    }
}

/// Asking for a graph that the server keeps already.
pub struct Registered(pub(crate) String);

impl Ask for Registered {
    type Answer = RegisteredGraph;

    async fn run<T: Transport>(self, running: &Running<'_, T>) -> Result<RegisteredGraph> {
        let request = request::Request::get(request::graph_path(&self.0)?);
        running.answered(request, RegisteredGraph::read).await
    }
}

/// Having the server forget a graph.
pub struct Unregister(pub(crate) String);

impl Ask for Unregister {
    type Answer = GraphSummary;

    async fn run<T: Transport>(self, running: &Running<'_, T>) -> Result<GraphSummary> {
        let request = request::deleting(request::graph_path(&self.0)?, None);
        running.answered(request, |answer| GraphSummary::read(&answer)).await
    }
}
