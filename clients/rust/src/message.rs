//! Messages: requests in JSON, with their tensors in the JSON or beside it.

use std::collections::BTreeMap;

use serde_json::{json, Value};

use crate::graph::{Body, Stated};
use crate::json::Object;
use crate::memory::Memory;
use crate::safetensors::Safetensors;
use crate::{opset, Attribute, Feed, Feeds, Form, Graph, Node, Result, Store, Tensor, Types};

pub(crate) const JSON: &str = "application/json";
pub(crate) const PROBLEM: &str = "application/problem+json";
pub(crate) const SAFETENSORS: &str = "application/vnd.safetensors";
pub(crate) const BYTES: &str = "application/octet-stream";

/// A request in JSON, and the tensors beside it if the form puts them there.
pub(crate) struct Message {
    form: Form,
    pub(crate) fields: Object,
    beside: BTreeMap<String, Tensor>,
}

impl Message {
    pub(crate) fn new(form: Form) -> Self {
        Self { form, fields: Object::new(), beside: BTreeMap::new() }
    }

    /// Adds a tensor: it is `place` in a safetensors file, or a member of `holder` in JSON.
    fn place(&mut self, tensor: &Tensor, place: String, holder: &mut Object, key: &str) {
        if self.form == Form::Safetensors {
            self.beside.insert(place, tensor.clone());
        } else {
            holder.insert(key.to_owned(), tensor.to_value(self.form));
        }
    }

    /// Returns the media type and the body.
    pub(crate) fn body(self) -> (&'static str, Vec<Memory>) {
        let text = Value::Object(self.fields).to_string();
        if self.form != Form::Safetensors {
            return (JSON, vec![Memory::of(text.into_bytes())]);
        }
        let file = Safetensors { tensors: self.beside, metadata: BTreeMap::from([("request".to_owned(), text)]) };
        (SAFETENSORS, file.pieces())
    }

    /// Returns the first nodes of a graph, and its functions, in the JSON form of the API.
    pub(crate) fn graph(&mut self, graph: &Graph, count: usize) -> Value {
        let inner = graph.read();
        let mut stated = Object::new();
        if let Some(opset) = inner.opset.or_else(|| opset::needed(&inner, count)) {
            stated.insert("opset".into(), opset.into());
        }
        let functions: Vec<_> = inner.functions().enumerate().map(|(index, body)| self.function(index, body)).collect();
        if !functions.is_empty() {
            stated.insert("functions".into(), functions.into());
        }
        let nodes = inner.itself().nodes.iter().take(count);
        stated.insert("nodes".into(), self.nodes("constants", nodes));
        stated.into()
    }

    fn function(&mut self, index: usize, body: &Body) -> Value {
        let nodes = self.nodes(&format!("functions.{index}.constants"), &body.nodes);
        let mut stated = Object::from_iter([("nodes".to_owned(), nodes), ("outputs".to_owned(), json!(body.outputs))]);
        if let Some(name) = &body.name {
            stated.insert("name".into(), json!(name));
        }
        stated.into()
    }

    fn nodes<'a>(&mut self, constants: &str, nodes: impl IntoIterator<Item = &'a Stated>) -> Value {
        nodes.into_iter().enumerate().map(|(id, node)| self.node(node, format!("{constants}.{id}"))).collect()
    }

    /// Returns a node. Its tensor is named `constant` if it is beside the JSON.
    fn node(&mut self, node: &Stated, constant: String) -> Value {
        let mut stated = Object::new();
        stated.insert("op".into(), json!(node.op));
        if !node.operands.is_empty() {
            stated.insert("operands".into(), json!(node.operands));
        }
        if let Some(name) = &node.name {
            stated.insert("name".into(), json!(name));
        }
        let mut attrs = Object::new();
        for (name, value) in &node.attrs.0 {
            if let Attribute::Tensor(tensor) = value {
                self.place(tensor, constant.clone(), &mut attrs, name);
            } else {
                attrs.insert(name.clone(), value.to_json());
            }
        }
        if !attrs.is_empty() {
            stated.insert("attrs".into(), attrs.into());
        }
        stated.into()
    }

    /// Writes the arguments of a call on the first nodes of a graph.
    pub(crate) fn fill(&mut self, asked: &Asked, graph: &Graph, count: usize) -> Result<()> {
        if let Some(of) = &asked.of {
            let id = graph.owned(of).map_err(|error| error.within("of"))?;
            self.fields.insert("of".into(), id.into());
        }
        for (name, nodes) in &asked.lists {
            let ids: Result<Vec<_>> = nodes.iter().map(|node| graph.owned(node)).collect();
            self.fields.insert((*name).into(), json!(ids.map_err(|error| error.within(name))?));
        }
        for (role, feeds) in &asked.tensors {
            self.fill_tensors(role, feeds, graph).map_err(|error| error.within(role))?;
        }
        if let Some(cotangent) = &asked.cotangent {
            let of = asked.of.as_ref().map_or(count.saturating_sub(1), Node::id);
            let mut fields = std::mem::take(&mut self.fields);
            self.place(cotangent, format!("cotangents.{of}"), &mut fields, "cotangent");
            self.fields = fields;
        }
        self.fill_store(&asked.store, graph).map_err(|error| error.within("store"))?;
        self.fill_types(&asked.types, graph).map_err(|error| error.within("types"))?;
        self.fields.extend(asked.values.clone());
        Ok(())
    }

    fn fill_tensors(&mut self, role: &str, feeds: &Feeds, graph: &Graph) -> Result<()> {
        let mut entries = Vec::new();
        for (node, feed) in &feeds.0 {
            let id = graph.owned(node)?;
            let mut entry = Object::from_iter([("node".to_owned(), id.into())]);
            match feed {
                Feed::Resident(name) => {
                    entry.insert("tensor_id".into(), json!(name));
                }
                Feed::Rows(rows) => {
                    entry.insert("tensor_id".into(), json!(rows.name));
                    entry.insert("rows".into(), json!([rows.start, rows.stop]));
                }
                Feed::Tensor(tensor) => self.place(tensor, format!("{role}.{id}"), &mut entry, "tensor"),
            }
            entries.push(entry);
        }
        self.fields.insert(role.to_owned(), json!(entries));
        Ok(())
    }

    fn fill_store(&mut self, store: &[(Node, Store)], graph: &Graph) -> Result<()> {
        let entries = store.iter().map(|(node, target)| {
            let mut entry = json!({"node": graph.owned(node)?, "tensor_id": target.name});
            if let Some(etag) = &target.if_match {
                entry["if_match"] = json!(etag);
            }
            if let Some(durable) = target.durable {
                entry["durable"] = json!(durable);
            }
            if target.gradient {
                entry["gradient"] = json!(true);
            }
            Ok(entry)
        });
        self.set_list("store", entries.collect::<Result<_>>()?);
        Ok(())
    }

    fn fill_types(&mut self, types: &Types, graph: &Graph) -> Result<()> {
        let entries = types.0.iter().map(|(node, dtype, shape)| {
            Ok(json!({"node": graph.owned(node)?, "dtype": dtype.as_str(), "shape": shape}))
        });
        self.set_list("types", entries.collect::<Result<_>>()?);
        Ok(())
    }

    fn set_list(&mut self, name: &str, entries: Vec<Value>) {
        if !entries.is_empty() {
            self.fields.insert(name.to_owned(), entries.into());
        }
    }
}

/// The arguments of a call except the graph, by API names.
#[derive(Default)]
pub(crate) struct Asked {
    /// Feeds and other tensors by node.
    pub(crate) tensors: Vec<(&'static str, Feeds)>,
    pub(crate) cotangent: Option<Tensor>,
    pub(crate) types: Types,
    pub(crate) store: Vec<(Node, Store)>,
    pub(crate) of: Option<Node>,
    /// Lists of nodes.
    pub(crate) lists: Vec<(&'static str, Vec<Node>)>,
    /// Arguments that are sent unchanged.
    pub(crate) values: Object,
    pub(crate) form: Option<Form>,
}

impl Asked {
    /// Returns the size in bytes of all tensors that are sent beside a graph.
    pub(crate) fn size(&self) -> usize {
        let fed = self.tensors.iter().flat_map(|(_, feeds)| &feeds.0);
        let sent = fed.filter_map(|(_, feed)| match feed {
            Feed::Tensor(tensor) => Some(tensor),
            Feed::Resident(_) | Feed::Rows(_) => None,
        });
        sent.chain(&self.cotangent).map(|tensor| tensor.bytes().len()).sum()
    }

    /// Returns whether a leaf is fed a resident tensor.
    pub(crate) fn feeds_resident(&self) -> bool {
        let mut fed = self.tensors.iter().filter(|(role, _)| *role == "feeds");
        fed.any(|(_, feeds)| feeds.0.iter().any(|(_, feed)| matches!(feed, Feed::Resident(_) | Feed::Rows(_))))
    }
}

/// Returns the size in bytes of all tensors in the first nodes of a graph and in its functions.
pub(crate) fn size_of_constants(graph: &Graph, count: usize) -> usize {
    let inner = graph.read();
    let values = inner.sent(count).flat_map(|node| node.attrs.0.values());
    let sizes = values.map(|value| match value {
        Attribute::Tensor(tensor) => tensor.bytes().len(),
        _ => 0,
    });
    sizes.sum()
}
