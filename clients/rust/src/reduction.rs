//! Reductions.

/// How the results of many examples are combined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reduction {
    /// Not combined.
    None,
    /// The sum.
    Sum,
    /// The mean.
    Mean,
}

impl Reduction {
    /// Returns the API name.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Sum => "sum",
            Self::Mean => "mean",
        }
    }
}
