//! Resident tensors: tensors stored on the server.

use crate::json::{self, Object};
use crate::{DType, Result, Tensor};

/// A handle of one version of a resident tensor. Pass it to calls in place of a tensor.
///
/// A call reads the version that is stored when it runs. [`etag`](Self::etag) identifies the version of this handle,
/// for conditions. Fields that the server did not report are `None`: dtype, shape and size are known for tensors that
/// were put or listed, not for tensors that a call stored.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Resident {
    /// The name.
    pub name: String,
    /// The identifier of the version.
    pub etag: String,
    /// The dtype of the elements.
    pub dtype: Option<DType>,
    /// The extents of all axes.
    pub shape: Option<Vec<usize>>,
    /// The size of the elements in bytes.
    pub bytes: Option<usize>,
    /// Whether the tensor was on disk before the response.
    pub durable: Option<bool>,
    /// The time in milliseconds within which the tensor will be on disk, if it was not.
    pub written_within_ms: Option<usize>,
}

/// Rows `start` to `stop` (exclusive) of a resident tensor, along its leading axis.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Rows {
    /// The name of the tensor.
    pub name: String,
    /// The first row.
    pub start: usize,
    /// The end of the rows, exclusive.
    pub stop: usize,
}

/// A resident tensor with its elements.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ResidentTensor {
    /// The handle.
    pub resident: Resident,
    /// The elements.
    pub tensor: Tensor,
}

impl Resident {
    /// Creates a handle of the current version of a tensor, without an etag.
    pub fn named(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            etag: String::new(),
            dtype: None,
            shape: None,
            bytes: None,
            durable: None,
            written_within_ms: None,
        }
    }

    /// Returns rows of the leading axis, which calls accept in place of a tensor: `kept.rows(0..128)`.
    pub fn rows(&self, range: std::ops::Range<usize>) -> Rows {
        Rows { name: self.name.clone(), start: range.start, stop: range.end }
    }

    pub(crate) fn read(stated: &Object) -> Result<Self> {
        Ok(Self {
            name: json::text(stated, "tensor_id")?.to_owned(),
            etag: json::text(stated, "etag")?.to_owned(),
            dtype: json::optional_text(stated, "dtype")?.map(DType::from),
            shape: json::optional_wholes(stated, "shape")?,
            bytes: json::optional_whole(stated, "bytes")?,
            durable: json::optional_truth(stated, "durable")?,
            written_within_ms: json::optional_whole(stated, "written_within_ms")?,
        })
    }

    pub(crate) fn of(name: String, etag: String, tensor: &Tensor) -> Self {
        Self {
            etag,
            dtype: Some(tensor.dtype().clone()),
            shape: Some(tensor.shape().to_vec()),
            bytes: Some(tensor.bytes().len()),
            ..Self::named(name)
        }
    }
}
