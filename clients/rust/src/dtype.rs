//! What the elements of tensors are.

use std::fmt;

use crate::{Error, Result};

/// What the elements of a tensor are, by the word of the wire.
///
/// Servers may know more dtypes than this client: as a word, any travels. Tensors of this client have those with a name
/// of their own here.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DType {
    /// Zeros and ones, a byte each.
    Bool,
    /// Whole numbers of 8 bits.
    Int8,
    /// Whole numbers of 8 bits, from 0 on.
    UInt8,
    /// Whole numbers of 16 bits.
    Int16,
    /// Whole numbers of 32 bits.
    Int32,
    /// Whole numbers of 32 bits, from 0 on.
    UInt32,
    /// Whole numbers of 64 bits.
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
    /// A word that this client does not know.
    Other(String),
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum ElementKind {
    Bool,
    Integer,
    Float,
    Complex,
}

/// What there is to know of a dtype that tensors have; `safetensors` is how that format spells it, empty where it lacks it,
/// and graphs have it `since` an opset.
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
    /// The word of the wire.
    pub fn as_str(&self) -> &str {
        match self {
            DType::Other(word) => word,
            known => known.row().map_or("", |row| row.word),
        }
    }

    fn row(&self) -> Option<&'static ElementType> {
        ELEMENT_TYPES.iter().find(|row| row.dtype == *self)
    }

    /// Fails for a dtype that tensors of this client cannot have.
    pub(crate) fn element_type(&self) -> Result<&'static ElementType> {
        self.row().ok_or_else(|| {
            let known = ELEMENT_TYPES.each_ref().map(|row| row.word).join(", ");
            Error::input(format!("{:?} is no dtype of this client, which has {known}", self.as_str()))
        })
    }

    /// The opset that graphs have it since; the first of words that this client does not know.
    pub(crate) fn since(&self) -> usize {
        self.row().map_or(1, |row| row.since)
    }

    /// The dtype that safetensors spells so.
    pub(crate) fn from_safetensors(spelled: &str) -> Option<Self> {
        let row = ELEMENT_TYPES.iter().find(|row| !spelled.is_empty() && row.safetensors == spelled)?;
        Some(row.dtype.clone())
    }

    /// The dtype of the numbers that an element travels as: of a complex number that of its parts.
    pub(crate) fn parts(&self) -> Self {
        match self {
            DType::Complex64 => DType::Float32,
            DType::Complex128 => DType::Float64,
            other => other.clone(),
        }
    }

    /// The dtype of complex numbers that have parts of this one.
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
