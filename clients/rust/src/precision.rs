//! Precisions.

/// The precision of float32 matrix products and convolutions on a GPU, most exact first. CPUs always compute in
/// float32.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Precision {
    /// IEEE 754 float32: a significand of 24 bits.
    Float32,
    /// Three products of TF32 parts: about as exact as float32.
    Tf32x3,
    /// A significand of 11 bits.
    Tf32,
    /// A significand of 8 bits.
    BFloat16,
}

impl Precision {
    /// Returns the API name.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Float32 => "float32",
            Self::Tf32x3 => "tf32x3",
            Self::Tf32 => "tf32",
            Self::BFloat16 => "bfloat16",
        }
    }
}
