//! Complex numbers, which Rust has no type for.

use std::fmt;

/// A complex number of its parts: elements of `complex64` are `Complex<f32>`, and of `complex128` `Complex<f64>`.
///
/// It has the layout of C and of the crate `num-complex`: the real part, then the imaginary one.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[repr(C)]
pub struct Complex<T> {
    /// The real part.
    pub re: T,
    /// The imaginary part.
    pub im: T,
}

impl<T> Complex<T> {
    /// The number that has these parts.
    pub const fn new(re: T, im: T) -> Self {
        Self { re, im }
    }
}

impl<T> From<(T, T)> for Complex<T> {
    fn from((re, im): (T, T)) -> Self {
        Self { re, im }
    }
}

/// Such as `1.5-2i`.
impl<T: fmt::Display> fmt::Display for Complex<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}{:+}i", self.re, self.im)
    }
}
