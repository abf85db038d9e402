//! Precisions.

/// How products and convolutions may read float32 on a GPU, the most exact first; a processor computes float32.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Precision {
    /// As IEEE 754 has it, all 24 bits of the significand.
    Float32,
    /// In two parts of TF32, by three products: about as exact as float32.
    Tf32x3,
    /// Rounded to 11 bits of the significand.
    Tf32,
    /// Rounded to 8 bits of the significand.
    BFloat16,
}

impl Precision {
    /// Its word on the wire.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Float32 => "float32",
            Self::Tf32x3 => "tf32x3",
            Self::Tf32 => "tf32",
            Self::BFloat16 => "bfloat16",
        }
    }
}
