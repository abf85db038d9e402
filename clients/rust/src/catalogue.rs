//! The ops that a server has.

use crate::calls::Ask;
use crate::exchange::Running;
use crate::json::{self, Object};
use crate::request::Request;
use crate::transport::Transport;
use crate::Result;

/// The ops that a server has.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Catalogue {
    /// The version of the set of ops.
    pub opset: usize,
    /// The ops.
    pub ops: Vec<CatalogueOp>,
}

/// An op that a server has.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct CatalogueOp {
    /// Its name.
    pub name: String,
    /// All that the server says of it, by names on the wire.
    pub fields: Object,
}

impl Catalogue {
    fn read(answer: &Object) -> Result<Self> {
        let rows = json::objects(answer, "ops")?.into_iter();
        let ops = rows.map(|row| Ok(CatalogueOp { name: json::text(row, "name")?.to_owned(), fields: row.clone() }));
        Ok(Self { opset: json::whole(answer, "opset")?, ops: ops.collect::<Result<_>>()? })
    }
}

/// Asking for the catalogue.
pub struct Ops;

impl Ask for Ops {
    type Answer = Catalogue;

    async fn run<T: Transport>(self, running: &Running<'_, T>) -> Result<Catalogue> {
        running.answered(Request::get("/v1/ops".into()), |answer| Catalogue::read(&answer)).await
    }
}
