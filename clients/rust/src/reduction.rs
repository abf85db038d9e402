//! Reductions.

/// What is made of many examples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reduction {
    /// Nothing: each is by itself.
    None,
    /// Their sum.
    Sum,
    /// Their mean.
    Mean,
}

impl Reduction {
    /// Its word on the wire.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Sum => "sum",
            Self::Mean => "mean",
        }
    }
}
