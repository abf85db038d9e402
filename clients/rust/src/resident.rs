//! Tensors that the server keeps.

use crate::json::{self, Object};
use crate::{DType, Result, Tensor};

/// A version of a tensor that the server keeps, which may stand wherever a call takes a tensor.
///
/// A call reads the version that is there when it comes: [`etag`](Self::etag) says which one this was, for conditions. What
/// the server did not say is `None`: dtype, shape and bytes are known of what is put and listed, not of what is stored.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Resident {
    /// The name that it is kept under.
    pub name: String,
    /// Which version this is.
    pub etag: String,
    /// What the elements are.
    pub dtype: Option<DType>,
    /// The extents of all axes.
    pub shape: Option<Vec<usize>>,
    /// How many bytes the elements have.
    pub bytes: Option<usize>,
    /// Whether it was on disk before the answer.
    pub durable: Option<bool>,
    /// Within how many milliseconds it will be on disk, where it was not.
    pub written_within_ms: Option<usize>,
}

/// Part of a tensor that the server keeps: what lies from `start` to before `stop` on its leading axis.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Rows {
    /// The name that the tensor is kept under.
    pub name: String,
    /// The first row.
    pub start: usize,
    /// The row behind the last one.
    pub stop: usize,
}

/// A tensor that the server keeps, with its elements.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ResidentTensor {
    /// Its handle.
    pub resident: Resident,
    /// Its elements.
    pub tensor: Tensor,
}

impl Resident {
    /// A handle of whatever is kept under a name, without an etag.
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

    /// The part of it in this range of its leading axis, which may stand where it may: `kept.rows(0..128)`.
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
