//! Layouts of Hessians.

/// The layout of a Hessian.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum HessianLayout {
    /// A block for each pair of nodes of `wrt`.
    Blocks,
    /// One square matrix over the elements of all nodes of `wrt`, which must have the same dtype.
    Matrix,
}

impl HessianLayout {
    /// Returns the API name.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Blocks => "blocks",
            Self::Matrix => "matrix",
        }
    }
}
