//! The client of gradserve in Rust: write a computation graph, send it with its tensors, and get gradients back.
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
//! Every op that has operands is a method of [`Node`], or of [`Graph`] where these are a list, and appends a node. What an op
//! takes beside what is required is stated in the second method that it has:
//! `x.softmax_with(SoftmaxOptions::new().axis(0))`. [`Graph::op`] appends any op by its name. What goes wrong is kept by the
//! graph, and told by [`Graph::check`] and by every call. A [`GraphFunction`] is written inside of its graph, by
//! [`Graph::function`], and run by ops such as `scan`.
//!
//! # Tensors
//!
//! A [`Tensor`] takes the memory of the vector that it is made from, and [`Tensor::elements`] shows it, wherever the machine
//! allows that. Values are exact both ways. A [`Resident`] stands for a tensor that the server keeps.
//!
//! # Calls
//!
//! [`Client`] has all calls, on a [`Graph`] or on a [`RegisteredGraph`], which is sent once. A call is stated by methods, and
//! done by [`send`](calls::Call::send). Results are looked up by node, by name, or in order. A call is done within one
//! deadline, over all of its tries; what keeps something is repeated only under a key of idempotency, which the client makes.
//!
//! With the feature `async`, `ClientBuilder::build_async` makes a client whose calls are awaited.
//!
//! # Errors
//!
//! [`Error::kind`] tells errors apart by what one does about them, and [`Error::refusal`] is the server's report with all of
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
    CheckAnswer, DifferentiateAnswer, ForwardAnswer, GradientsAnswer, HessianAnswer, HvpAnswer, JacobianAnswer,
    JvpAnswer, PlanAnswer,
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
