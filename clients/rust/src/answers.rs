//! Results of calls on graphs.

use std::collections::BTreeMap;

use crate::json::{self, Object};
use crate::transport::Reply;
use crate::{graph, tensor_json, Blocks, Error, Graph, Node, Resident, Result, Results, Tensor};

/// Values of nodes.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ForwardAnswer {
    /// The values of the outputs.
    pub values: Results<Tensor>,
    /// Handles of the tensors that the call stored.
    pub stored: Results<Resident>,
    /// The members of the response by their API names, except tensors. `stats` holds the run statistics.
    pub fields: Object,
}

/// Values and gradients. Results of a batch have a leading axis, and gradients may be empty. If `of` has several
/// elements, in a graph of opset 2, gradients of a batch are Jacobians: the shape of `of` followed by the shape of the
/// node.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct GradientsAnswer {
    /// The values of the outputs.
    pub values: Results<Tensor>,
    /// The gradients by node of `wrt`, each with the shape of its node.
    pub gradients: Results<Tensor>,
    /// The nodes of `wrt` that have no path to the differentiated node. Their gradients are zero.
    pub disconnected: Vec<Node>,
    /// Handles of the tensors that the call stored.
    pub stored: Results<Resident>,
    /// The members of the response by their API names, except tensors. `stats` holds the run statistics.
    pub fields: Object,
}

/// Values, and their derivatives along tangents.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct JvpAnswer {
    /// The values of the outputs.
    pub values: Results<Tensor>,
    /// The tangents by output.
    pub tangents: Results<Tensor>,
    /// Handles of the tensors that the call stored.
    pub stored: Results<Resident>,
    /// The members of the response by their API names, except tensors. `stats` holds the run statistics.
    pub fields: Object,
}

/// Values and Jacobians.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct JacobianAnswer {
    /// The values of the outputs.
    pub values: Results<Tensor>,
    /// The blocks by output and node of `wrt`: the shape of the output followed by the shape of the node.
    pub jacobian: Blocks,
    /// Handles of the tensors that the call stored.
    pub stored: Results<Resident>,
    /// The members of the response by their API names, except tensors. `stats` holds the run statistics.
    pub fields: Object,
}

/// Values, gradients and Hessian-vector products.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct HvpAnswer {
    /// The values of the outputs.
    pub values: Results<Tensor>,
    /// The gradients by node of `wrt`, each with the shape of its node.
    pub gradients: Results<Tensor>,
    /// The nodes of `wrt` that have no path to the differentiated node.
    pub disconnected: Vec<Node>,
    /// The products by node of `wrt`.
    pub hvp: Results<Tensor>,
    /// Handles of the tensors that the call stored.
    pub stored: Results<Resident>,
    /// The members of the response by their API names, except tensors. `stats` holds the run statistics.
    pub fields: Object,
}

/// Values, gradients and Hessians.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct HessianAnswer {
    /// The values of the outputs.
    pub values: Results<Tensor>,
    /// The gradients by node of `wrt`, each with the shape of its node.
    pub gradients: Results<Tensor>,
    /// The nodes of `wrt` that have no path to the differentiated node.
    pub disconnected: Vec<Node>,
    /// The blocks by pairs of nodes of `wrt`: the shape of the row's node followed by the shape of the column's. There
    /// are none with [`HessianLayout::Matrix`](crate::HessianLayout::Matrix).
    pub hessian: Blocks,
    /// All blocks as one matrix. `None` unless the call had [`HessianLayout::Matrix`](crate::HessianLayout::Matrix).
    pub matrix: Option<HessianMatrix>,
    /// Handles of the tensors that the call stored.
    pub stored: Results<Resident>,
    /// The members of the response by their API names, except tensors. `stats` holds the run statistics.
    pub fields: Object,
}

/// A Hessian as one square matrix over the elements of all nodes of `wrt`. Nodes are in the order of `wrt`, the
/// elements of a node in row-major order.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct HessianMatrix {
    /// The matrix.
    pub tensor: Tensor,
    /// The place of each node.
    pub offsets: Results<NodeOffset>,
}

/// The place of a node in a matrix: it has `size` rows and columns (the number of its elements), starting at `offset`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct NodeOffset {
    /// The first row and column.
    pub offset: usize,
    /// The number of rows and columns.
    pub size: usize,
}

impl NodeOffset {
    fn read(entry: &Object) -> Result<Self> {
        Ok(Self { offset: json::whole(entry, "offset")?, size: json::whole(entry, "size")? })
    }

    /// Returns the rows, or columns.
    pub fn range(self) -> std::ops::Range<usize> {
        self.offset..self.offset.saturating_add(self.size)
    }
}

/// The result of a gradient check: how far gradients are from central differences.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct CheckAnswer {
    /// Whether every node was compared and is within the tolerance.
    pub passed: bool,
    /// Relative errors, by node, of the nodes that were compared.
    pub errors: Results<f64>,
    /// Reasons, by node, why the other nodes were not compared.
    pub uncertified: Results<String>,
    /// The members of the response by their API names. `stats` holds the run statistics.
    pub fields: Object,
}

/// The dry run of a call: its estimates, without running it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct PlanAnswer {
    /// Whether the call is within the server's limits.
    pub admitted: bool,
    /// The members of the response by their API names.
    pub fields: Object,
}

/// The gradient as a graph.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct DifferentiateAnswer {
    /// The graph. Its first nodes are those of the graph that was sent.
    pub graph: Graph,
    /// The nodes that compute the gradients, by node of `wrt` in the graph that was sent.
    pub gradients: Results<Node>,
    /// The nodes of `wrt`, in the graph that was sent, that have no path to the differentiated node.
    pub disconnected: Vec<Node>,
    /// The members of the response by their API names, except the graph.
    pub fields: Object,
    sent: Graph,
}

impl DifferentiateAnswer {
    /// Returns the node of this graph that corresponds to a node of the graph that was sent. Fails for a node of
    /// another graph.
    pub fn find(&self, node: &Node) -> Result<Node> {
        self.graph.node(self.sent.owned(node)?)
    }
}

/// Reads the response to a call on a graph.
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

    /// Returns the entries of a member with their nodes.
    fn results<R>(&self, name: &str, read: impl Fn(&Object) -> Result<R>) -> Result<Results<R>> {
        self.results_in(&self.fields, name, read)
    }

    fn results_in<R>(&self, fields: &Object, name: &str, read: impl Fn(&Object) -> Result<R>) -> Result<Results<R>> {
        let entries = json::objects(fields, name)?.into_iter();
        let read = |entry| Ok((self.node(entry, "node")?, read(entry)?));
        let results = entries.map(read).collect::<Result<_>>();
        Ok(Results(results.map_err(|error| error.within(name))?))
    }

    fn node(&self, entry: &Object, name: &str) -> Result<Node> {
        self.graph.node(json::whole(entry, name)?)
    }

    /// Takes the tensors of a member out of its entries, or from beside the JSON.
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

    /// Takes the matrix of a Hessian, if there is one.
    fn matrix(&mut self, name: &str) -> Result<Option<HessianMatrix>> {
        let read = |stated| {
            let offsets = self.results_in(stated, "offsets", NodeOffset::read)?;
            Ok(HessianMatrix { tensor: self.tensor(stated, name, &[])?, offsets })
        };
        let stated = json::optional_inner(&self.fields, name)?;
        let matrix = stated.map(read).transpose().map_err(|error: Error| error.within(name))?;
        self.fields.remove(name);
        Ok(matrix)
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
        beside.ok_or_else(|| Error::input(format!("the tensor {place:?} is missing")))
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

    /// Returns gradients, which are absent if there is nothing to differentiate with respect to.
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
            matrix: self.matrix("matrix")?,
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

/// Puts tensors that were sent beside the JSON into the nodes of a graph. Ignores tensors whose role it does not know.
fn place_constants(graph: &Graph, beside: BTreeMap<String, Tensor>) -> Result<()> {
    for (place, tensor) in beside {
        let unknown = || Error::input(format!("the tensor {place:?} does not belong to a node of the graph"));
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
