//! Bytes that tensors share with the vectors and responses that they are created from.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use crate::{Complex, DType, Float16};

/// Types of a tensor's elements: `bool`, `i8`, `u8`, `i16`, `i32`, `u32`, `i64`, [`Float16`], `f32`, `f64`,
/// [`Complex<f32>`](Complex) and `Complex<f64>`.
pub trait Element: plain::Plain {
    /// The dtype of tensors with these elements.
    const DTYPE: DType;
}

mod plain {
    /// Types without padding, which can be viewed as bytes and vice versa.
    ///
    /// For `bool`, only the bytes 0 and 1 are valid. Tensors check this on creation.
    pub trait Plain: Copy + Send + Sync + 'static {
        fn from_le(bytes: &[u8]) -> Self;
        #[cfg(target_endian = "big")]
        fn swapped(self) -> Self;
    }
}
use plain::Plain;

macro_rules! elements {
    ($($element:ty: $dtype:ident = $from:expr, $swapped:expr;)*) => {$(
        impl Plain for $element {
            fn from_le(bytes: &[u8]) -> Self {
                let bytes = bytes.try_into().expect("the size of an element");
                ($from)(bytes)
            }
            #[cfg(target_endian = "big")]
            fn swapped(self) -> Self {
                ($swapped)(self)
            }
        }
        impl Element for $element {
            const DTYPE: DType = DType::$dtype;
        }
    )*};
}

elements! {
    bool: Bool = |bytes: [u8; 1]| bytes[0] == 1, |element| element;
    i8: Int8 = i8::from_le_bytes, i8::swap_bytes;
    u8: UInt8 = u8::from_le_bytes, u8::swap_bytes;
    i16: Int16 = i16::from_le_bytes, i16::swap_bytes;
    i32: Int32 = i32::from_le_bytes, i32::swap_bytes;
    u32: UInt32 = u32::from_le_bytes, u32::swap_bytes;
    i64: Int64 = i64::from_le_bytes, i64::swap_bytes;
    Float16: Float16 = |bytes| Float16::from_bits(u16::from_le_bytes(bytes)),
        |element: Float16| Float16::from_bits(element.to_bits().swap_bytes());
    f32: Float32 = f32::from_le_bytes, |element: f32| f32::from_bits(element.to_bits().swap_bytes());
    f64: Float64 = f64::from_le_bytes, |element: f64| f64::from_bits(element.to_bits().swap_bytes());
    Complex<f32>: Complex64 = |bytes: [u8; 8]| Complex::new(f32::from_le(&bytes[..4]), f32::from_le(&bytes[4..])),
        |z: Complex<f32>| Complex::new(z.re.swapped(), z.im.swapped());
    Complex<f64>: Complex128 = |bytes: [u8; 16]| Complex::new(f64::from_le(&bytes[..8]), f64::from_le(&bytes[8..])),
        |z: Complex<f64>| Complex::new(z.re.swapped(), z.im.swapped());
}

/// A vector that is viewed as bytes.
struct Elements<T>(Vec<T>);

impl<T: Plain> AsRef<[u8]> for Elements<T> {
    #[allow(unsafe_code)]
    fn as_ref(&self) -> &[u8] {
        let elements = self.0.as_slice();
        // SAFETY: elements have no padding, so all of their bytes are initialized, and the vector keeps them alive.
        unsafe { std::slice::from_raw_parts(elements.as_ptr().cast(), size_of_val(elements)) }
    }
}

/// Bytes with their owner, which clones share.
#[derive(Clone)]
pub(crate) struct Memory {
    owner: Arc<dyn AsRef<[u8]> + Send + Sync>,
    range: Range<usize>,
}

impl Memory {
    /// Takes the memory of elements. On big-endian machines, swaps them to little-endian.
    pub(crate) fn of<T: Element>(elements: Vec<T>) -> Self {
        #[cfg(target_endian = "big")]
        let elements = elements.into_iter().map(T::swapped).collect();
        let owner = Elements(elements);
        Self { range: 0..owner.as_ref().len(), owner: Arc::new(owner) }
    }

    /// Returns a part of the same memory.
    pub(crate) fn part(&self, range: Range<usize>) -> Self {
        let start = self.range.start + range.start;
        Self { owner: Arc::clone(&self.owner), range: start..start + range.len() }
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &(*self.owner).as_ref()[self.range.clone()]
    }

    pub(crate) fn len(&self) -> usize {
        self.range.len()
    }

    /// Returns the elements: a view if they are aligned, otherwise a copy.
    ///
    /// The bytes must be valid for this type: 0 or 1 for bool.
    pub(crate) fn elements<T: Element>(&self) -> Cow<'_, [T]> {
        match aligned(self.bytes()) {
            Some(elements) if cfg!(target_endian = "little") => Cow::Borrowed(elements),
            _ => {
                let each = self.bytes().chunks_exact(size_of::<T>());
                Cow::Owned(each.map(T::from_le).collect())
            }
        }
    }
}

#[allow(unsafe_code)]
fn aligned<T: Element>(bytes: &[u8]) -> Option<&[T]> {
    // SAFETY: any bytes are valid elements, except for bool, whose bytes were checked.
    match unsafe { bytes.align_to::<T>() } {
        ([], elements, []) => Some(elements),
        _ => None,
    }
}

impl AsRef<[u8]> for Memory {
    fn as_ref(&self) -> &[u8] {
        self.bytes()
    }
}

impl PartialEq for Memory {
    fn eq(&self, other: &Self) -> bool {
        self.bytes() == other.bytes()
    }
}
