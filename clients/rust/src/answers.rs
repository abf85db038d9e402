//! What calls on graphs are answered.

use std::collections::BTreeMap;

use crate::json::{self, Object};
use crate::transport::Reply;
use crate::{graph, tensor_json, Blocks, Error, Graph, Node, Resident, Result, Results, Tensor};

/// Values of nodes.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ForwardAnswer {
    /// Those of the outputs.
    pub values: Results<Tensor>,
    /// Handles of what the call had the server keep.
    pub stored: Results<Resident>,
    /// What came, by names on the wire, but for tensors: `stats` is the receipt.
    pub fields: Object,
}

/// Values and gradients. Of a batch, all have a leading axis, and gradients may be none; where `of`
/// has several elements, in a graph of opset 2, these are Jacobians: its shape, then the node's.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct GradientsAnswer {
    /// Those of the outputs.
    pub values: Results<Tensor>,
    /// By the nodes to differentiate by, each of its node's shape.
    pub gradients: Results<Tensor>,
    /// The nodes to differentiate by without a path to what was differentiated; their gradients are zeros.
    pub disconnected: Vec<Node>,
    /// Handles of what the call had the server keep.
    pub stored: Results<Resident>,
    /// What came, by names on the wire, but for tensors: `stats` is the receipt.
    pub fields: Object,
}

/// Values, and their derivatives along tangents.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct JvpAnswer {
    /// Those of the outputs.
    pub values: Results<Tensor>,
    /// By outputs.
    pub tangents: Results<Tensor>,
    /// Handles of what the call had the server keep.
    pub stored: Results<Resident>,
    /// What came, by names on the wire, but for tensors: `stats` is the receipt.
    pub fields: Object,
}

/// Values and Jacobians.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct JacobianAnswer {
    /// Those of the outputs.
    pub values: Results<Tensor>,
    /// By output and node to differentiate by: of the shape of the one, then that of the other.
    pub jacobian: Blocks,
    /// Handles of what the call had the server keep.
    pub stored: Results<Resident>,
    /// What came, by names on the wire, but for tensors: `stats` is the receipt.
    pub fields: Object,
}

/// Values, gradients, and the Hessian times vectors.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct HvpAnswer {
    /// Those of the outputs.
    pub values: Results<Tensor>,
    /// By the nodes to differentiate by, each of its node's shape.
    pub gradients: Results<Tensor>,
    /// The nodes to differentiate by without a path to what was differentiated.
    pub disconnected: Vec<Node>,
    /// By the nodes to differentiate by.
    pub hvp: Results<Tensor>,
    /// Handles of what the call had the server keep.
    pub stored: Results<Resident>,
    /// What came, by names on the wire, but for tensors: `stats` is the receipt.
    pub fields: Object,
}

/// Values, gradients and Hessians.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct HessianAnswer {
    /// Those of the outputs.
    pub values: Results<Tensor>,
    /// By the nodes to differentiate by, each of its node's shape.
    pub gradients: Results<Tensor>,
    /// The nodes to differentiate by without a path to what was differentiated.
    pub disconnected: Vec<Node>,
    /// By pairs of nodes to differentiate by: of the shape of the one, then that of the other.
    pub hessian: Blocks,
    /// Handles of what the call had the server keep.
    pub stored: Results<Resident>,
    /// What came, by names on the wire, but for tensors: `stats` is the receipt.
    pub fields: Object,
}

/// How far gradients are from central differences.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct CheckAnswer {
    /// Whether every node was compared, and is within the tolerance.
    pub passed: bool,
    /// Relative ones, by the nodes that were compared.
    pub errors: Results<f64>,
    /// Why the others were not.
    pub uncertified: Results<String>,
    /// What came, by names on the wire: `stats` is the receipt.
    pub fields: Object,
}

/// What a call would take.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct PlanAnswer {
    /// Whether the call would be within the server's limits.
    pub admitted: bool,
    /// What came, by names on the wire.
    pub fields: Object,
}

/// The gradient as a graph.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct DifferentiateAnswer {
    /// Its first nodes are those that were sent.
    pub graph: Graph,
    /// By the nodes to differentiate by, as they were sent: the nodes of the graph where they are computed.
    pub gradients: Results<Node>,
    /// The nodes to differentiate by, as they were sent, without a path to what was differentiated.
    pub disconnected: Vec<Node>,
    /// What came, by names on the wire, but for the graph.
    pub fields: Object,
    sent: Graph,
}

impl DifferentiateAnswer {
    /// What a node of the graph that was sent is in this one. Fails for a node of another graph.
    pub fn find(&self, node: &Node) -> Result<Node> {
        self.graph.node(self.sent.owned(node)?)
    }
}

/// Reads an answer to a call on a graph.
pub struct Reader {
    graph: Graph,
    fields: Object,
    beside: BTreeMap<String, Tensor>,
}

impl Reader {
    pub(crate) fn new(reply: &Reply, graph: &Graph) -> Result<Self> {
        let (fields, file) = reply.parts()?;
        Ok(Self { graph: graph.clone(), fields, beside: file.tensors })
    }

    /// The entries of a member, each with its node.
    fn results<R>(&self, name: &str, read: impl Fn(&Object) -> Result<R>) -> Result<Results<R>> {
        let entries = json::objects(&self.fields, name)?.into_iter();
        let read = |entry| Ok((self.node(entry, "node")?, read(entry)?));
        let results = entries.map(read).collect::<Result<_>>();
        Ok(Results(results.map_err(|error| error.within(name))?))
    }

    fn node(&self, entry: &Object, name: &str) -> Result<Node> {
        self.graph.node(json::whole(entry, name)?)
    }

    /// Tensors of a member, each in its entry or beside the answer; they are not kept in the fields.
    fn tensors(&mut self, name: &str) -> Result<Results<Tensor>> {
        let results = self.results(name, |entry| self.tensor(entry, name, &["node"]))?;
        self.fields.remove(name);
        Ok(results)
    }

    fn blocks(&mut self, name: &str, [first, second]: [&str; 2]) -> Result<Blocks> {
        let read = |entry| {
            let pair = [self.node(entry, first)?, self.node(entry, second)?];
            Ok((pair, self.tensor(entry, name, &[first, second])?))
        };
        let entries = json::objects(&self.fields, name)?.into_iter();
        let blocks = entries.map(read).collect::<Result<_>>().map_err(|error: Error| error.within(name))?;
        self.fields.remove(name);
        Ok(Blocks(blocks))
    }

    fn tensor(&self, entry: &Object, name: &str, nodes: &[&str]) -> Result<Tensor> {
        if let Some(stated) = json::optional_inner(entry, "tensor")? {
            return tensor_json::tensor_of(stated);
        }
        let mut place = name.to_owned();
        for node in nodes {
            place = format!("{place}.{}", json::whole(entry, node)?);
        }
        let beside = self.beside.get(&place).cloned();
        beside.ok_or_else(|| Error::input(format!("there is no tensor {place}")))
    }

    fn disconnected(&self) -> Result<Vec<Node>> {
        let ids = json::optional_wholes(&self.fields, "disconnected")?.unwrap_or_default();
        ids.into_iter().map(|id| self.graph.node(id)).collect()
    }

    fn stored(&self) -> Result<Results<Resident>> {
        match json::member(&self.fields, "stored") {
            None => Ok(Results::default()),
            Some(_) => self.results("stored", Resident::read),
        }
    }

    pub(crate) fn forward(mut self) -> Result<ForwardAnswer> {
        Ok(ForwardAnswer { values: self.tensors("values")?, stored: self.stored()?, fields: self.fields })
    }

    pub(crate) fn gradients(mut self) -> Result<GradientsAnswer> {
        Ok(GradientsAnswer {
            values: self.tensors("values")?,
            gradients: self.tensors("gradients")?,
            disconnected: self.disconnected()?,
            stored: self.stored()?,
            fields: self.fields,
        })
    }

    /// Gradients that may be none, where there is nothing to differentiate by.
    pub(crate) fn batch(mut self) -> Result<GradientsAnswer> {
        self.fields.entry("gradients").or_insert_with(|| Vec::<Object>::new().into());
        self.gradients()
    }

    pub(crate) fn jvp(mut self) -> Result<JvpAnswer> {
        Ok(JvpAnswer {
            values: self.tensors("values")?,
            tangents: self.tensors("tangents")?,
            stored: self.stored()?,
            fields: self.fields,
        })
    }

    pub(crate) fn jacobian(mut self) -> Result<JacobianAnswer> {
        Ok(JacobianAnswer {
            values: self.tensors("values")?,
            jacobian: self.blocks("jacobian", ["of", "wrt"])?,
            stored: self.stored()?,
            fields: self.fields,
        })
    }

    pub(crate) fn hvp(mut self) -> Result<HvpAnswer> {
        Ok(HvpAnswer {
            values: self.tensors("values")?,
            gradients: self.tensors("gradients")?,
            disconnected: self.disconnected()?,
            hvp: self.tensors("hvp")?,
            stored: self.stored()?,
            fields: self.fields,
        })
    }

    pub(crate) fn hessian(mut self) -> Result<HessianAnswer> {
        Ok(HessianAnswer {
            values: self.tensors("values")?,
            gradients: self.tensors("gradients")?,
            disconnected: self.disconnected()?,
            hessian: self.blocks("hessian", ["row", "column"])?,
            stored: self.stored()?,
            fields: self.fields,
        })
    }

    pub(crate) fn check(self) -> Result<CheckAnswer> {
        Ok(CheckAnswer {
            passed: json::truth(&self.fields, "passed")?,
            errors: self.results("errors", |entry| json::float(entry, "relative_error"))?,
            uncertified: self.results("uncertified", |entry| Ok(json::text(entry, "reason")?.to_owned()))?,
            fields: self.fields,
        })
    }

    pub(crate) fn plan(self) -> Result<PlanAnswer> {
        Ok(PlanAnswer { admitted: json::truth(&self.fields, "admitted")?, fields: self.fields })
    }

    pub(crate) fn differentiate(mut self) -> Result<DifferentiateAnswer> {
        let graph = graph::graph_of(json::inner(&self.fields, "graph")?)?;
        self.fields.remove("graph");
        place_constants(&graph, std::mem::take(&mut self.beside))?;
        Ok(DifferentiateAnswer {
            gradients: self.results("gradients", |entry| graph.node(json::whole(entry, "gradient_node")?))?,
            disconnected: self.disconnected()?,
            graph,
            sent: self.graph,
            fields: self.fields,
        })
    }
}

/// Puts the tensors beside a graph where they belong. Those whose role is not known are passed over.
fn place_constants(graph: &Graph, beside: BTreeMap<String, Tensor>) -> Result<()> {
    for (place, tensor) in beside {
        let unknown = || Error::input(format!("there is a tensor {place:?} beside it"));
        let whole = |stated: &str| stated.parse().map_err(|_| unknown());
        match place.split('.').collect::<Vec<_>>()[..] {
            ["constants", id] => graph.set_constant(whole(id)?, tensor)?,
            ["functions", index, "constants", id] => {
                let function = graph.functions().nth(whole(index)?).ok_or_else(unknown)?;
                function.body().set_constant(whole(id)?, tensor)?;
            }
            _ => {}
        }
    }
    Ok(())
}
