//! Complex numbers, for which Rust has no type.

use std::fmt;

/// A complex number. Elements of `complex64` are `Complex<f32>`, those of `complex128` are `Complex<f64>`.
///
/// It has the same layout as in C and in the crate `num-complex`: the real part followed by the imaginary part.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[repr(C)]
pub struct Complex<T> {
    /// The real part.
    pub re: T,
    /// The imaginary part.
    pub im: T,
}

impl<T> Complex<T> {
    /// Creates a complex number from its parts.
    pub const fn new(re: T, im: T) -> Self {
        Self { re, im }
    }
}

impl<T> From<(T, T)> for Complex<T> {
    fn from((re, im): (T, T)) -> Self {
        Self { re, im }
    }
}

/// Formats a number as in `1.5-2i`.
impl<T: fmt::Display> fmt::Display for Complex<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}{:+}i", self.re, self.im)
    }
}
