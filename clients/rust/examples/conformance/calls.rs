//! Calls on graphs.

use gradserve_client::calls::{
    Call, Compute, HasMapped, HasMemoryBudget, HasOf, HasOutputs, HasPrecision, HasWrt, Kind, Runs,
};
use gradserve_client::{
    Blocking, Client, Feed, Feeds, Graph, HessianLayout, Precision, Reduction, Resident, Result, Store, Target, Types,
};
use serde_json::Value;

use crate::steps::{node, nodes};
use crate::telling::Told;
use crate::tensors;

type Stated<'c, K> = Call<'c, Blocking, Compute<K>>;

/// A call of a case on a graph.
struct Asked<'a> {
    stated: &'a Value,
    graph: &'a Graph,
}

pub fn computed(client: &Client, on: &Target, graph: &Graph, stated: &Value) -> Result<Value> {
    let asked = Asked { stated, graph };
    let feeds = asked.feeds("feeds")?;
    match stated["do"].as_str().unwrap_or_default() {
        "forward" => sent(asked.running(client.forward(on.clone(), feeds))?),
        "gradients" => {
            let mut call = asked.of(asked.wrt(asked.running(client.gradients(on.clone(), feeds))?)?)?;
            if stated["cotangent"].is_object() {
                call = call.cotangent(tensors::read(&stated["cotangent"])?);
            }
            sent(call)
        }
        "vjp" => {
            let call = asked.wrt(asked.running(client.vjp(on.clone(), feeds))?)?;
            let call = call.cotangents(asked.feeds("cotangents")?);
            sent(match stated["batched"].as_bool() {
                Some(batched) => call.batched(batched),
                None => call,
            })
        }
        "jvp" => sent(asked.running(client.jvp(on.clone(), feeds))?.tangents(asked.feeds("tangents")?)),
        "jacobian" => sent(asked.wrt(asked.running(client.jacobian(on.clone(), feeds))?)?),
        "hvp" => {
            let call = asked.of(asked.wrt(asked.running(client.hvp(on.clone(), feeds))?)?)?;
            sent(call.vectors(asked.feeds("vectors")?))
        }
        "hessian" => {
            let call = asked.of(asked.wrt(asked.running(client.hessian(on.clone(), feeds))?)?)?;
            sent(match stated["layout"].as_str() {
                Some("matrix") => call.layout(HessianLayout::Matrix),
                Some(_) => call.layout(HessianLayout::Blocks),
                None => call,
            })
        }
        "batch" => sent(asked.mapped(asked.of(asked.wrt(asked.running(client.batch(on.clone(), feeds))?)?)?)?),
        "check" => {
            let mut call = asked.of(asked.wrt(asked.formed(client.check(on.clone(), feeds)))?)?;
            if let Some(directions) = stated["directions"].as_u64() {
                call = call.directions(directions as u32);
            }
            if let Some(tolerance) = stated["tolerance"].as_f64() {
                call = call.tolerance(tolerance);
            }
            sent(asked.bounded(call))
        }
        "plan" => {
            let call = asked.outputs(asked.bounded(asked.formed(client.plan(on.clone(), asked.types()?))))?;
            let call = asked.mapped(asked.of(asked.wrt(call)?)?)?;
            sent(match stated["call"].as_str() {
                Some(planned) => call.call(planned),
                None => call,
            })
        }
        _ => sent(asked.of(asked.wrt(asked.formed(client.differentiate(on.clone(), asked.types()?)))?)?),
    }
}

/// A resident tensor, or rows of it.
fn kept(resident: Resident, rows: &Value) -> Feed {
    match rows.as_array() {
        Some(_) => resident.rows(tensors::places(rows)[0]..tensors::places(rows)[1]).into(),
        None => resident.into(),
    }
}

fn sent<K: Kind>(call: Stated<'_, K>) -> Result<Value>
where
    K::Answer: Told,
{
    Ok(call.send()?.told())
}

impl Asked<'_> {
    fn entries(&self, name: &str) -> impl Iterator<Item = &Value> {
        self.stated[name].as_array().into_iter().flatten()
    }

    fn feeds(&self, role: &str) -> Result<Feeds> {
        self.entries(role).try_fold(Feeds::new(), |feeds, entry| {
            let feed = match entry["tensor_id"].as_str() {
                Some(name) => kept(Resident::named(name), &entry["rows"]),
                None => Feed::from(tensors::read(&entry["tensor"])?),
            };
            Ok(feeds.with(&node(self.graph, &entry["node"])?, feed))
        })
    }

    fn types(&self) -> Result<Types> {
        self.entries("types").try_fold(Types::new(), |types, entry| {
            let dtype = entry["dtype"].as_str().unwrap_or_default();
            Ok(types.with(&node(self.graph, &entry["node"])?, dtype, tensors::places(&entry["shape"])))
        })
    }

    fn formed<'c, K: Kind>(&self, call: Stated<'c, K>) -> Stated<'c, K> {
        match tensors::form(&self.stated["form"]) {
            Some(form) => call.form(form),
            None => call,
        }
    }

    fn running<'c, K>(&self, call: Stated<'c, K>) -> Result<Stated<'c, K>>
    where
        K: Runs + HasOutputs + HasMemoryBudget + HasPrecision,
    {
        let mut call = self.outputs(self.formed(call))?;
        if let Some(diagnose) = self.stated["diagnose"].as_bool() {
            call = call.diagnose(diagnose);
        }
        call = self.bounded(call);
        for entry in self.entries("store") {
            let mut target = Store::new(entry["tensor_id"].as_str().unwrap_or_default());
            if let Some(etag) = entry["if_match"].as_str() {
                target = target.if_match(etag);
            }
            if let Some(durable) = entry["durable"].as_bool() {
                target = target.durable(durable);
            }
            if let Some(gradient) = entry["gradient"].as_bool() {
                target = target.gradient(gradient);
            }
            call = call.store(&node(self.graph, &entry["node"])?, target);
        }
        Ok(call)
    }

    fn bounded<'c, K: HasMemoryBudget + HasPrecision>(&self, call: Stated<'c, K>) -> Stated<'c, K> {
        self.precision(match self.stated["memory_budget"].as_u64() {
            Some(bytes) => call.memory_budget(bytes),
            None => call,
        })
    }

    fn precision<'c, K: HasPrecision>(&self, call: Stated<'c, K>) -> Stated<'c, K> {
        match self.stated["precision"].as_str() {
            None => call,
            Some("tf32x3") => call.precision(Precision::Tf32x3),
            Some("tf32") => call.precision(Precision::Tf32),
            Some("bfloat16") => call.precision(Precision::BFloat16),
            Some(_) => call.precision(Precision::Float32),
        }
    }

    fn outputs<'c, K: HasOutputs>(&self, call: Stated<'c, K>) -> Result<Stated<'c, K>> {
        match &self.stated["outputs"] {
            Value::Null => Ok(call),
            places => Ok(call.outputs(&nodes(self.graph, places)?)),
        }
    }

    fn of<'c, K: HasOf>(&self, call: Stated<'c, K>) -> Result<Stated<'c, K>> {
        match &self.stated["of"] {
            Value::Null => Ok(call),
            place => Ok(call.of(&node(self.graph, place)?)),
        }
    }

    fn wrt<'c, K: HasWrt>(&self, call: Stated<'c, K>) -> Result<Stated<'c, K>> {
        match &self.stated["wrt"] {
            Value::Null => Ok(call),
            places => Ok(call.wrt(&nodes(self.graph, places)?)),
        }
    }

    fn mapped<'c, K: HasMapped>(&self, call: Stated<'c, K>) -> Result<Stated<'c, K>> {
        let call = match self.stated["reduce"].as_str() {
            Some("mean") => call.reduce(Reduction::Mean),
            Some("sum") => call.reduce(Reduction::Sum),
            Some(_) => call.reduce(Reduction::None),
            None => call,
        };
        let call = match self.stated["block"].as_u64() {
            Some(examples) => call.block(examples),
            None => call,
        };
        match &self.stated["mapped"] {
            Value::Null => Ok(call),
            places => Ok(call.mapped(&nodes(self.graph, places)?)),
        }
    }
}
