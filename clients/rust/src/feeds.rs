//! What stands for nodes in a call: tensors, handles of tensors that the server keeps, and types.

use crate::memory::Element;
use crate::{DType, Node, Resident, Rows, Tensor};

/// What stands for a node in a call: a tensor, or the name of one that the server keeps.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Feed {
    /// A tensor, which is sent.
    Tensor(Tensor),
    /// The name of a tensor that the server keeps.
    Resident(String),
    /// Rows of a tensor that the server keeps.
    Rows(Rows),
}

impl From<Tensor> for Feed {
    fn from(tensor: Tensor) -> Self {
        Feed::Tensor(tensor)
    }
}

impl From<&Tensor> for Feed {
    fn from(tensor: &Tensor) -> Self {
        Feed::Tensor(tensor.clone())
    }
}

impl From<Resident> for Feed {
    fn from(resident: Resident) -> Self {
        Feed::Resident(resident.name)
    }
}

impl From<&Resident> for Feed {
    fn from(resident: &Resident) -> Self {
        Feed::Resident(resident.name.clone())
    }
}

impl From<Rows> for Feed {
    fn from(rows: Rows) -> Self {
        Feed::Rows(rows)
    }
}

impl<T: Element> From<T> for Feed {
    fn from(element: T) -> Self {
        Feed::Tensor(element.into())
    }
}

impl<T: Element> From<Vec<T>> for Feed {
    fn from(elements: Vec<T>) -> Self {
        Feed::Tensor(elements.into())
    }
}

impl<T: Element, const N: usize> From<[T; N]> for Feed {
    fn from(elements: [T; N]) -> Self {
        Feed::Tensor(elements.into())
    }
}

/// What stands for each node: in feeds for leaves, and likewise in cotangents, tangents and vectors.
///
/// Pairs are feeds, `[(&x, 1.0), (&w, 2.0)]`; where they are of several types, `Feeds::new().with(&x, 1.0).with(&w, kept)`.
#[derive(Clone, Debug, Default)]
pub struct Feeds(pub(crate) Vec<(Node, Feed)>);

impl Feeds {
    /// No feeds.
    pub fn new() -> Self {
        Self::default()
    }

    /// The same with one more; in place of the one that the node had, if it had any.
    pub fn with(mut self, node: &Node, feed: impl Into<Feed>) -> Self {
        self.0.retain(|(other, _)| other != node);
        self.0.push((node.clone(), feed.into()));
        self
    }
}

impl<'a, F: Into<Feed>> FromIterator<(&'a Node, F)> for Feeds {
    fn from_iter<I: IntoIterator<Item = (&'a Node, F)>>(pairs: I) -> Self {
        pairs.into_iter().fold(Self::new(), |feeds, (node, feed)| feeds.with(node, feed))
    }
}

impl<F: Into<Feed>, const N: usize> From<[(&Node, F); N]> for Feeds {
    fn from(pairs: [(&Node, F); N]) -> Self {
        pairs.into_iter().collect()
    }
}

impl From<&Feeds> for Feeds {
    fn from(feeds: &Feeds) -> Self {
        feeds.clone()
    }
}

/// What each leaf would be fed: `Types::new().with(&x, DType::Float64, [2])`.
#[derive(Clone, Debug, Default)]
pub struct Types(pub(crate) Vec<(Node, DType, Vec<usize>)>);

impl Types {
    /// No types.
    pub fn new() -> Self {
        Self::default()
    }

    /// The same with one more; in place of the one that the node had, if it had any.
    pub fn with(mut self, node: &Node, dtype: impl Into<DType>, shape: impl Into<Vec<usize>>) -> Self {
        self.0.retain(|(other, ..)| other != node);
        self.0.push((node.clone(), dtype.into(), shape.into()));
        self
    }
}

impl From<&Types> for Types {
    fn from(types: &Types) -> Self {
        types.clone()
    }
}

/// Under which name a call is to keep the value of a node, or the gradient by it, and on what condition:
/// `Store::new("w").if_match(&kept.etag)`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Store {
    pub(crate) name: String,
    pub(crate) if_match: Option<String>,
    pub(crate) durable: Option<bool>,
    pub(crate) gradient: bool,
}

impl Store {
    /// Kept under this name, whatever there was.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), if_match: None, durable: None, gradient: false }
    }

    /// Only if the tensor has this etag now: `*` where any will do, an empty one where there must be none yet.
    pub fn if_match(mut self, etag: impl Into<String>) -> Self {
        self.if_match = Some(etag.into());
        self
    }

    /// Whether the value is on disk before the answer, as it is unless told otherwise.
    pub fn durable(mut self, durable: bool) -> Self {
        self.durable = Some(durable);
        self
    }

    /// Whether it is the gradient by the node that is kept, and not its value.
    pub fn gradient(mut self, gradient: bool) -> Self {
        self.gradient = gradient;
        self
    }
}

impl From<&str> for Store {
    fn from(name: &str) -> Self {
        Self::new(name)
    }
}

impl From<String> for Store {
    fn from(name: String) -> Self {
        Self::new(name)
    }
}
