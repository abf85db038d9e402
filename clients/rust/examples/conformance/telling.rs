//! Results and errors by their API names.

use gradserve_client::{
    Blocks, CheckAnswer, DifferentiateAnswer, Error, ErrorKind, ForwardAnswer, GradientsAnswer, HessianAnswer,
    HessianMatrix, HvpAnswer, JacobianAnswer, JvpAnswer, Model, ModelValue, Node, PlanAnswer, Refusal, Resident,
    Results, Tensor,
};
use serde_json::{json, Map, Value};

use crate::tensors::bits;

/// Returns a result.
pub trait Told {
    fn told(self) -> Value;
}

impl Told for ForwardAnswer {
    fn told(self) -> Value {
        ran(self.fields, &self.values, &self.stored).into()
    }
}

impl Told for GradientsAnswer {
    fn told(self) -> Value {
        let made = ran(self.fields, &self.values, &self.stored);
        differentiated(made, &self.gradients, &self.disconnected).into()
    }
}

impl Told for JvpAnswer {
    fn told(self) -> Value {
        let mut made = ran(self.fields, &self.values, &self.stored);
        made.insert("tangents".into(), results(&self.tangents));
        made.into()
    }
}

impl Told for JacobianAnswer {
    fn told(self) -> Value {
        let mut made = ran(self.fields, &self.values, &self.stored);
        made.insert("jacobian".into(), blocks(&self.jacobian, ["of", "wrt"]));
        made.into()
    }
}

impl Told for HvpAnswer {
    fn told(self) -> Value {
        let made = ran(self.fields, &self.values, &self.stored);
        let mut made = differentiated(made, &self.gradients, &self.disconnected);
        made.insert("hvp".into(), results(&self.hvp));
        made.into()
    }
}

impl Told for HessianAnswer {
    fn told(self) -> Value {
        let made = ran(self.fields, &self.values, &self.stored);
        let mut made = differentiated(made, &self.gradients, &self.disconnected);
        made.insert("hessian".into(), blocks(&self.hessian, ["row", "column"]));
        made.insert("matrix".into(), self.matrix.as_ref().map(matrix).into());
        made.into()
    }
}

impl Told for CheckAnswer {
    fn told(self) -> Value {
        let mut made = self.fields;
        made.insert("passed".into(), self.passed.into());
        made.into()
    }
}

impl Told for PlanAnswer {
    fn told(self) -> Value {
        let mut made = self.fields;
        made.insert("admitted".into(), self.admitted.into());
        made.into()
    }
}

impl Told for DifferentiateAnswer {
    fn told(self) -> Value {
        let mut made = self.fields;
        let gradients =
            self.gradients.iter().map(|(node, gradient)| json!({"node": node.id(), "gradient_node": gradient.id()}));
        made.insert("gradients".into(), gradients.collect());
        made.insert("disconnected".into(), ids(&self.disconnected));
        made.insert("graph".into(), self.graph.to_json().unwrap_or_default().into());
        made.into()
    }
}

impl Told for Resident {
    fn told(self) -> Value {
        let members = json!({
            "tensor_id": self.name,
            "etag": self.etag,
            "dtype": self.dtype.as_ref().map(|dtype| dtype.as_str()),
            "shape": self.shape,
            "bytes": self.bytes,
            "durable": self.durable,
            "written_within_ms": self.written_within_ms,
        });
        let Value::Object(members) = members else { unreachable!() };
        Value::Object(members.into_iter().filter(|(_, value)| !value.is_null()).collect())
    }
}

impl Told for Model {
    fn told(self) -> Value {
        let values = |list: Vec<ModelValue>| -> Value { list.into_iter().map(value).collect() };
        let bound = self.bound.into_iter().map(|leaf| {
            json!({
                "node": leaf.node,
                "tensor_id": leaf.tensor_name,
                "dtype": leaf.dtype.as_str(),
                "shape": leaf.shape,
            })
        });
        let mut made = json!({
            "name": self.name,
            "etag": self.etag,
            "graph_id": self.graph_id,
            "inputs": values(self.inputs),
            "outputs": values(self.outputs),
            "bound": bound.collect::<Value>(),
        });
        if let Some(description) = self.description {
            made["description"] = description.into();
        }
        made
    }
}

fn value(value: ModelValue) -> Value {
    json!({"name": value.name, "node": value.node, "dtype": value.dtype.as_str(), "shape": value.shape})
}

fn ran(mut made: Map<String, Value>, values: &Results<Tensor>, stored: &Results<Resident>) -> Map<String, Value> {
    made.insert("values".into(), results(values));
    let stored = stored.iter().map(|(node, resident)| {
        let mut entry = resident.clone().told();
        entry["node"] = node.id().into();
        entry
    });
    made.insert("stored".into(), stored.collect());
    made
}

fn differentiated(
    mut made: Map<String, Value>,
    gradients: &Results<Tensor>,
    disconnected: &[Node],
) -> Map<String, Value> {
    made.insert("gradients".into(), results(gradients));
    made.insert("disconnected".into(), ids(disconnected));
    made
}

fn ids(nodes: &[Node]) -> Value {
    nodes.iter().map(Node::id).collect()
}

/// Looks results up by node, as users do.
fn results(all: &Results<Tensor>) -> Value {
    all.iter().map(|(node, _)| json!({"node": node.id(), "tensor": bits(&all[node])})).collect()
}

fn blocks(all: &Blocks, [first, second]: [&str; 2]) -> Value {
    let blocks = all
        .iter()
        .map(|([row, column], _)| json!({first: row.id(), second: column.id(), "tensor": bits(&all[(row, column)])}));
    blocks.collect()
}

fn matrix(hessian: &HessianMatrix) -> Value {
    let offsets = hessian.offsets.iter().map(|(node, _)| {
        let place = hessian.offsets[node];
        json!({"node": node.id(), "offset": place.offset, "size": place.size})
    });
    json!({"offsets": offsets.collect::<Value>(), "tensor": bits(&hessian.tensor)})
}

/// An error in the form of a result.
pub fn told(error: &Error) -> Value {
    let mut made = error.refusal().map(report).unwrap_or_default();
    made.insert("type".into(), type_of(error).into());
    made.insert("message".into(), format!("{error}\n{error:?}").into());
    made.into()
}

fn type_of(error: &Error) -> &'static str {
    match error.kind() {
        ErrorKind::Input => "input",
        ErrorKind::TooLarge => "too_large",
        ErrorKind::Connection | ErrorKind::Malformed => "transport",
        ErrorKind::Deadline => "deadline",
        ErrorKind::Authentication => "authentication",
        ErrorKind::Rate => "rate",
        ErrorKind::Overload => "overload",
        ErrorKind::NotFound => "not_found",
        ErrorKind::Condition => "condition",
        ErrorKind::StoreFull => "store_full",
        ErrorKind::Server => "server",
        ErrorKind::Graph => "graph",
        _ => "unknown",
    }
}

fn report(refusal: &Refusal) -> Map<String, Value> {
    let extra = (!refusal.extra.is_empty()).then(|| Value::from(refusal.extra.clone()).to_string());
    let status = Some(refusal.status).filter(|&status| status != 0);
    let members = [
        ("status", json!(status)),
        ("code", json!(refusal.code)),
        ("detail", json!(refusal.detail)),
        ("request_id", json!(refusal.request_id)),
        ("node", json!(refusal.node)),
        ("function", json!(refusal.function)),
        ("function_node", json!(refusal.function_node)),
        ("operand", json!(refusal.operand)),
        ("expected", json!(refusal.expected)),
        ("got", json!(refusal.got)),
        ("pointer", json!(refusal.pointer)),
        ("errors", refusal.errors.iter().map(report).map(Value::from).collect()),
        ("extra", json!(extra)),
    ];
    members.into_iter().filter(|(_, value)| !value.is_null()).map(|(name, value)| (name.to_owned(), value)).collect()
}
