//! Models: registered graphs with named inputs and outputs, and with their weights on the server.

use serde_json::{json, Value};

use crate::calls::{Ask, Call};
use crate::exchange::Running;
use crate::json::{self, Object};
use crate::request;
use crate::transport::Transport;
use crate::{DType, Result};

/// One version of a model on the server. It refers to nodes by id.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Model {
    /// The name.
    pub name: String,
    /// The identifier of this version, for conditions.
    pub etag: String,
    /// The hash of the graph.
    pub graph_id: String,
    /// The description, for people.
    pub description: Option<String>,
    /// The inputs, in order.
    pub inputs: Vec<ModelValue>,
    /// The outputs, in order.
    pub outputs: Vec<ModelValue>,
    /// All other leaves that the outputs need.
    pub bound: Vec<BoundLeaf>,
}

/// A named input or output of a model.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ModelValue {
    /// The name.
    pub name: String,
    /// The id of its node.
    pub node: usize,
    /// The dtype.
    pub dtype: DType,
    /// The extents of all axes. An extent of -1 is free: each call can use another size.
    pub shape: Vec<i64>,
}

/// A leaf that is bound to a resident tensor. Each call reads the current version of the tensor.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct BoundLeaf {
    /// The id of the leaf.
    pub node: usize,
    /// The name of the tensor.
    pub tensor_name: String,
    /// The dtype that the tensor must have.
    pub dtype: DType,
    /// The shape that the tensor must have.
    pub shape: Vec<usize>,
}

impl Model {
    pub(crate) fn read(stated: &Object) -> Result<Self> {
        Ok(Self {
            name: json::text(stated, "name")?.to_owned(),
            etag: json::text(stated, "etag")?.to_owned(),
            graph_id: json::text(stated, "graph_id")?.to_owned(),
            description: json::optional_text(stated, "description")?.map(str::to_owned),
            inputs: entries(stated, "inputs", ModelValue::read)?,
            outputs: entries(stated, "outputs", ModelValue::read)?,
            bound: entries(stated, "bound", BoundLeaf::read)?,
        })
    }
}

fn entries<E>(stated: &Object, name: &str, read: fn(&Object) -> Result<E>) -> Result<Vec<E>> {
    json::objects(stated, name)?.into_iter().map(read).collect()
}

impl ModelValue {
    fn read(stated: &Object) -> Result<Self> {
        Ok(Self {
            name: json::text(stated, "name")?.to_owned(),
            node: json::whole(stated, "node")?,
            dtype: json::text(stated, "dtype")?.into(),
            shape: json::extents(stated, "shape")?,
        })
    }
}

impl BoundLeaf {
    fn read(stated: &Object) -> Result<Self> {
        Ok(Self {
            node: json::whole(stated, "node")?,
            tensor_name: json::text(stated, "tensor_id")?.to_owned(),
            dtype: json::text(stated, "dtype")?.into(),
            shape: json::wholes(stated, "shape")?,
        })
    }
}

/// A call that stores a model: a registered graph with names for its inputs and outputs.
pub struct PutModel {
    pub(crate) name: String,
    pub(crate) graph_id: String,
    description: Option<String>,
    inputs: Vec<Value>,
    outputs: Vec<Value>,
    bound: Vec<Value>,
    if_match: Option<String>,
    if_none_match: Option<String>,
}

impl PutModel {
    pub(crate) fn new(name: String, graph_id: String) -> Self {
        Self {
            name,
            graph_id,
            description: None,
            inputs: Vec::new(),
            outputs: Vec::new(),
            bound: Vec::new(),
            if_match: None,
            if_none_match: None,
        }
    }

    fn definition(&self) -> Value {
        let mut made = json!({
            "graph_id": self.graph_id,
            "inputs": self.inputs,
            "outputs": self.outputs,
            "bound": self.bound,
        });
        if let Some(description) = &self.description {
            made["description"] = description.as_str().into();
        }
        made
    }
}

impl Ask for PutModel {
    type Answer = Model;

    async fn run<T: Transport>(self, running: &Running<'_, T>) -> Result<Model> {
        let conditions = (self.if_match.as_deref(), self.if_none_match.as_deref());
        let request = request::putting_model(&self.name, &self.definition(), conditions)?;
        running.answered(request, |answer| Model::read(&answer)).await
    }
}

impl<T> Call<'_, T, PutModel> {
    /// Adds an input: a leaf by id, with dtype and shape. An extent of -1 is free.
    pub fn input(mut self, name: &str, node: usize, dtype: impl Into<DType>, shape: &[i64]) -> Self {
        let dtype = dtype.into();
        self.asked_mut().inputs.push(json!({"name": name, "node": node, "dtype": dtype.as_str(), "shape": shape}));
        self
    }

    /// Adds an output: any node by id.
    pub fn output(mut self, name: &str, node: usize) -> Self {
        self.asked_mut().outputs.push(json!({"name": name, "node": node}));
        self
    }

    /// Binds a leaf to a resident tensor, whose current version each call reads.
    pub fn bound(mut self, node: usize, tensor_name: &str) -> Self {
        self.asked_mut().bound.push(json!({"node": node, "tensor_id": tensor_name}));
        self
    }

    /// Sets the description of the model, for people.
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.asked_mut().description = Some(description.into());
        self
    }

    /// Requires that the stored version has this etag, or any with `*`.
    pub fn if_match(mut self, etag: impl Into<String>) -> Self {
        self.asked_mut().if_match = Some(etag.into());
        self
    }

    /// Requires that the stored version does not have this etag. `*` requires that the model does not exist.
    pub fn if_none_match(mut self, etag: impl Into<String>) -> Self {
        self.asked_mut().if_none_match = Some(etag.into());
        self
    }
}

/// A call that fetches a model.
pub struct GetModel(pub(crate) String);

impl Ask for GetModel {
    type Answer = Model;

    async fn run<T: Transport>(self, running: &Running<'_, T>) -> Result<Model> {
        let request = request::Request::get(request::model_path(&self.0)?);
        running.answered(request, |answer| Model::read(&answer)).await
    }
}

/// A call that deletes a model.
pub struct DeleteModel {
    pub(crate) name: String,
    pub(crate) if_match: Option<String>,
}

impl Ask for DeleteModel {
    type Answer = Model;

    async fn run<T: Transport>(self, running: &Running<'_, T>) -> Result<Model> {
        let request = request::deleting(request::model_path(&self.name)?, self.if_match.as_deref());
        running.answered(request, |answer| Model::read(&answer)).await
    }
}

impl<T> Call<'_, T, DeleteModel> {
    /// Requires that the stored version has this etag, or any with `*`.
    pub fn if_match(mut self, etag: impl Into<String>) -> Self {
        self.asked_mut().if_match = Some(etag.into());
        self
    }
}
