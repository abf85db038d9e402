//! The ops of a server.

use crate::calls::Ask;
use crate::exchange::Running;
use crate::json::{self, Object};
use crate::request::Request;
use crate::transport::Transport;
use crate::Result;

/// The ops of a server.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Catalogue {
    /// The version of the op set.
    pub opset: usize,
    /// The ops.
    pub ops: Vec<CatalogueOp>,
}

/// An op of a server.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct CatalogueOp {
    /// The name.
    pub name: String,
    /// The description of the op by API names.
    pub fields: Object,
}

impl Catalogue {
    fn read(answer: &Object) -> Result<Self> {
        let rows = json::objects(answer, "ops")?.into_iter();
        let ops = rows.map(|row| Ok(CatalogueOp { name: json::text(row, "name")?.to_owned(), fields: row.clone() }));
        Ok(Self { opset: json::whole(answer, "opset")?, ops: ops.collect::<Result<_>>()? })
    }
}

/// A call that returns the op catalogue.
pub struct Ops;

impl Ask for Ops {
    type Answer = Catalogue;

    async fn run<T: Transport>(self, running: &Running<'_, T>) -> Result<Catalogue> {
        running.answered(Request::get("/v1/ops".into()), |answer| Catalogue::read(&answer)).await
    }
}
