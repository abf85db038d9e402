//! Dtypes: the types of tensors' elements.

use std::fmt;

use crate::{Error, Result};

/// The type of a tensor's elements.
///
/// Servers may support more dtypes than this client: `Other` holds any name. Tensors of this client have one of the
/// other dtypes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DType {
    /// Booleans, one byte each: 0 or 1.
    Bool,
    /// Signed 8-bit integers.
    Int8,
    /// Unsigned 8-bit integers.
    UInt8,
    /// Signed 16-bit integers.
    Int16,
    /// Signed 32-bit integers.
    Int32,
    /// Unsigned 32-bit integers.
    UInt32,
    /// Signed 64-bit integers.
    Int64,
    /// IEEE 754 binary16.
    Float16,
    /// IEEE 754 binary32.
    Float32,
    /// IEEE 754 binary64.
    Float64,
    /// Pairs of Float32: see [`Complex`](crate::Complex).
    Complex64,
    /// Pairs of Float64.
    Complex128,
    /// A name that this client does not know.
    Other(String),
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum ElementKind {
    Bool,
    Integer,
    Float,
    Complex,
}

/// The properties of a dtype. `safetensors` is its name in the safetensors format, empty if the format lacks it.
/// `since` is the first opset with it.
pub(crate) struct ElementType {
    dtype: DType,
    word: &'static str,
    pub(crate) safetensors: &'static str,
    pub(crate) kind: ElementKind,
    pub(crate) size: usize,
    since: usize,
}

const fn row(
    dtype: DType,
    word: &'static str,
    safetensors: &'static str,
    kind: ElementKind,
    size: usize,
    since: usize,
) -> ElementType {
    ElementType { dtype, word, safetensors, kind, size, since }
}

static ELEMENT_TYPES: [ElementType; 12] = [
    row(DType::Bool, "bool", "BOOL", ElementKind::Bool, 1, 1),
    row(DType::Int8, "int8", "I8", ElementKind::Integer, 1, 1),
    row(DType::UInt8, "uint8", "U8", ElementKind::Integer, 1, 1),
    row(DType::Int16, "int16", "I16", ElementKind::Integer, 2, 2),
    row(DType::Int32, "int32", "I32", ElementKind::Integer, 4, 1),
    row(DType::UInt32, "uint32", "U32", ElementKind::Integer, 4, 2),
    row(DType::Int64, "int64", "I64", ElementKind::Integer, 8, 1),
    row(DType::Float16, "float16", "F16", ElementKind::Float, 2, 1),
    row(DType::Float32, "float32", "F32", ElementKind::Float, 4, 1),
    row(DType::Float64, "float64", "F64", ElementKind::Float, 8, 1),
    row(DType::Complex64, "complex64", "C64", ElementKind::Complex, 8, 2),
    row(DType::Complex128, "complex128", "", ElementKind::Complex, 16, 2),
];

impl DType {
    /// Returns the API name.
    pub fn as_str(&self) -> &str {
        match self {
            DType::Other(word) => word,
            known => known.row().map_or("", |row| row.word),
        }
    }

    fn row(&self) -> Option<&'static ElementType> {
        ELEMENT_TYPES.iter().find(|row| row.dtype == *self)
    }

    /// Fails for a dtype that this client does not support in tensors.
    pub(crate) fn element_type(&self) -> Result<&'static ElementType> {
        self.row().ok_or_else(|| {
            let known = ELEMENT_TYPES.each_ref().map(|row| row.word).join(", ");
            Error::input(format!("unsupported dtype {:?}: this client supports {known}", self.as_str()))
        })
    }

    /// Returns the first opset with this dtype; opset 1 for names that this client does not know.
    pub(crate) fn since(&self) -> usize {
        self.row().map_or(1, |row| row.since)
    }

    /// Returns the dtype with this name in the safetensors format.
    pub(crate) fn from_safetensors(spelled: &str) -> Option<Self> {
        let row = ELEMENT_TYPES.iter().find(|row| !spelled.is_empty() && row.safetensors == spelled)?;
        Some(row.dtype.clone())
    }

    /// Returns the dtype of the numbers that an element is sent as: its own, or that of its parts if it is complex.
    pub(crate) fn parts(&self) -> Self {
        match self {
            DType::Complex64 => DType::Float32,
            DType::Complex128 => DType::Float64,
            other => other.clone(),
        }
    }

    /// Returns the complex dtype whose parts have this dtype.
    pub(crate) fn of_parts(&self) -> Option<Self> {
        let complex = ELEMENT_TYPES.iter().filter(|row| row.kind == ElementKind::Complex);
        complex.map(|row| &row.dtype).find(|dtype| dtype.parts() == *self).cloned()
    }
}

impl From<&str> for DType {
    fn from(word: &str) -> Self {
        match ELEMENT_TYPES.iter().find(|row| row.word == word) {
            Some(row) => row.dtype.clone(),
            None => DType::Other(word.to_owned()),
        }
    }
}

impl fmt::Display for DType {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}
