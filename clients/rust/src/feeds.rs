//! Arguments of calls by node: tensors, handles of resident tensors, and types.

use crate::memory::Element;
use crate::{DType, Node, Resident, Rows, Tensor};

/// The value for a node in a call: a tensor, or the name of a resident tensor.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Feed {
    /// A tensor, which is sent.
    Tensor(Tensor),
    /// The name of a resident tensor.
    Resident(String),
    /// Rows of a resident tensor.
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

/// Values by node: feeds of leaves, and likewise cotangents, tangents and vectors.
///
/// Pairs convert to feeds: `[(&x, 1.0), (&w, 2.0)]`. If values have different types, use
/// `Feeds::new().with(&x, 1.0).with(&w, kept)`.
#[derive(Clone, Debug, Default)]
pub struct Feeds(pub(crate) Vec<(Node, Feed)>);

impl Feeds {
    /// Returns empty feeds.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a value, or replaces that of the node.
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

/// Types of leaves: `Types::new().with(&x, DType::Float64, [2])`.
#[derive(Clone, Debug, Default)]
pub struct Types(pub(crate) Vec<(Node, DType, Vec<usize>)>);

impl Types {
    /// Returns an empty set of types.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a value, or replaces that of the node.
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

/// The tensor that a call stores the value of a node as, or the gradient with respect to it:
/// `Store::new("w").if_match(&kept.etag)`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Store {
    pub(crate) name: String,
    pub(crate) if_match: Option<String>,
    pub(crate) durable: Option<bool>,
    pub(crate) gradient: bool,
}

impl Store {
    /// Stores under this name, unconditionally.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), if_match: None, durable: None, gradient: false }
    }

    /// Requires that the tensor has this etag now, any with `*`. An empty etag requires that it does not exist.
    pub fn if_match(mut self, etag: impl Into<String>) -> Self {
        self.if_match = Some(etag.into());
        self
    }

    /// Sets whether the server responds only after the value is on disk. The default is true.
    pub fn durable(mut self, durable: bool) -> Self {
        self.durable = Some(durable);
        self
    }

    /// Sets whether to store the gradient with respect to the node instead of its value.
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
