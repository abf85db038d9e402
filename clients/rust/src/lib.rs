//! The Rust client of gradserve: build a computation graph, send it with its tensors, and get gradients back.
//!
//! ```no_run
//! use gradserve_client::{Client, Graph};
//!
//! # fn main() -> gradserve_client::Result<()> {
//! let graph = Graph::new();
//! let (x, w) = (graph.input("x"), graph.parameter("w"));
//! (&x * &w).tanh().sum();
//!
//! let client = Client::new("http://127.0.0.1:8000")?;
//! let answer = client.gradients(&graph, [(&x, [1.0, 2.0]), (&w, [0.5, 0.5])]).send()?;
//! println!("{:?}", answer.gradients[&w].elements::<f64>()?);
//! # Ok(())
//! # }
//! ```
//!
//! # Graphs
//!
//! An op with operands is a method of [`Node`], or of [`Graph`] if it takes a list of operands, and appends a node. Ops
//! with optional arguments have a second method that takes an options struct:
//! `x.softmax_with(SoftmaxOptions::new().axis(0))`. [`Graph::op`] appends any op by name. The graph records the first
//! error, which [`Graph::check`] and every call return. [`Graph::function`] adds a [`GraphFunction`], which ops such as
//! `scan` run.
//!
//! # Tensors
//!
//! A [`Tensor`] takes ownership of the vector that it is created from. [`Tensor::elements`] returns a view of its
//! memory if alignment and byte order allow it. Values are exact in both directions. A [`Resident`] is a handle of a
//! tensor stored on the server.
//!
//! # Calls
//!
//! [`Client`] has all calls, on a [`Graph`] or on a [`RegisteredGraph`], which is sent only once. Methods set the
//! options of a call, and [`send`](calls::Call::send) sends it. Look up results by node, by name, or in order. All
//! attempts of a call share one deadline. A call that stores something is retried only under an idempotency key, which
//! the client creates.
//!
//! With the feature `async`, `ClientBuilder::build_async` creates a client with async calls.
//!
//! # Errors
//!
//! [`Error::kind`] groups errors by how to handle them. [`Error::refusal`] is the server's problem report with all of
//! its fields.

#![deny(unsafe_code)]
#![warn(missing_docs)]

mod answers;
mod attribute;
#[cfg(feature = "async")]
mod awaiting;
mod blocking;
pub mod calls;
mod catalogue;
mod client;
mod complex;
mod dtype;
mod error;
mod exchange;
mod feeds;
mod float16;
mod graph;
mod json;
mod layout;
mod listing;
mod memory;
mod message;
mod models;
mod operators;
#[path = "generated/ops.rs"]
pub mod ops;
mod opset;
mod precision;
mod reduction;
mod refusal;
mod registered;
mod request;
mod resident;
mod results;
mod retries;
mod safetensors;
mod tensor;
mod tensor_json;
mod transport;

pub use answers::{
    CheckAnswer, DifferentiateAnswer, ForwardAnswer, GradientsAnswer, HessianAnswer, HessianMatrix, HvpAnswer,
    JacobianAnswer, JvpAnswer, NodeOffset, PlanAnswer,
};
pub use attribute::{Attribute, Attrs, Number};
#[cfg(feature = "async")]
pub use awaiting::Awaiting;
pub use blocking::Blocking;
pub use catalogue::{Catalogue, CatalogueOp};
#[cfg(feature = "async")]
pub use client::AsyncClient;
pub use client::{Client, ClientBuilder};
pub use complex::Complex;
pub use dtype::DType;
pub use error::{Error, ErrorKind, Result};
pub use feeds::{Feed, Feeds, Store, Types};
pub use float16::Float16;
pub use graph::{Graph, GraphFunction, Node};
pub use layout::HessianLayout;
pub use listing::Listing;
pub use memory::Element;
pub use models::{BoundLeaf, Model, ModelValue};
pub use precision::Precision;
pub use reduction::Reduction;
pub use refusal::Refusal;
pub use registered::{GraphSummary, RegisteredGraph, Target};
pub use resident::{Resident, ResidentTensor, Rows};
pub use results::{Blocks, Results};
#[doc(hidden)]
pub use retries::Surroundings;
pub use safetensors::Safetensors;
pub use serde_json;
pub use tensor::Tensor;
pub use tensor_json::Form;
