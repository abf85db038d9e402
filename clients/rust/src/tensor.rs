//! Tensors.

use std::borrow::Cow;
use std::fmt;

use crate::dtype::ElementKind;
use crate::memory::{Element, Memory};
use crate::{DType, Error, Result};

/// The maximum number of axes of a NumPy array.
const MOST_AXES: usize = 64;
/// Exclusive limit on the bytes of a tensor, with extents of 0 counted as 1.
const MOST_BYTES: u64 = 1 << 53;

/// An array with a dtype and a shape, in row-major order.
///
/// It owns the memory of the vector that it was created from, or shares that of the response. Clones share it. Tensors
/// are equal if they have the same dtype, shape and bits.
#[derive(Clone, PartialEq)]
pub struct Tensor {
    dtype: DType,
    shape: Vec<usize>,
    memory: Memory,
}

impl Tensor {
    /// Creates a tensor from elements, which are not copied. Without extents, the tensor is a scalar.
    ///
    /// Fails if the number of elements does not match the shape.
    pub fn new<T: Element>(shape: impl Into<Vec<usize>>, elements: Vec<T>) -> Result<Self> {
        Self::from_memory(T::DTYPE, shape.into(), Memory::of(elements))
    }

    /// Creates a tensor from row-major, little-endian bytes, which are not copied.
    ///
    /// Fails for an unsupported dtype, and if the number of bytes does not match the shape.
    pub fn from_bytes(dtype: impl Into<DType>, shape: impl Into<Vec<usize>>, bytes: Vec<u8>) -> Result<Self> {
        Self::from_memory(dtype.into(), shape.into(), Memory::of(bytes))
    }

    pub(crate) fn from_memory(dtype: DType, shape: Vec<usize>, memory: Memory) -> Result<Self> {
        let element = dtype.element_type()?;
        if shape.len() > MOST_AXES {
            return Err(Error::input(format!("the shape has {} axes; the limit is {MOST_AXES}", shape.len())));
        }
        let Some(size) = size_of_shape(&shape, element.size) else {
            return Err(Error::input(format!(
                "{dtype} of shape {shape:?} is too large: its nonzero extents give 2^53 bytes or more"
            )));
        };
        if size != memory.len() {
            return Err(Error::input(format!("{dtype} of shape {shape:?} needs {size} bytes, got {}", memory.len())));
        }
        if element.kind == ElementKind::Bool && memory.bytes().iter().any(|&byte| byte > 1) {
            return Err(Error::input("the bytes of a bool tensor must be 0 or 1"));
        }
        Ok(Self { dtype, shape, memory })
    }

    /// Returns the dtype of the elements.
    pub fn dtype(&self) -> &DType {
        &self.dtype
    }

    /// Returns the extents of all axes.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// Returns the number of elements.
    pub fn len(&self) -> usize {
        self.shape.iter().product()
    }

    /// Returns whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the bytes of the elements, row-major and little-endian, as a view of the tensor's memory.
    pub fn bytes(&self) -> &[u8] {
        self.memory.bytes()
    }

    pub(crate) fn memory(&self) -> &Memory {
        &self.memory
    }

    /// Returns the elements: a view of the tensor's memory if it is aligned, otherwise a copy. Fails if they have
    /// another type.
    pub fn elements<T: Element>(&self) -> Result<Cow<'_, [T]>> {
        if self.dtype != T::DTYPE {
            return Err(Error::input(format!("the tensor holds {} elements, not {}", self.dtype, T::DTYPE)));
        }
        Ok(self.memory.elements())
    }

    /// Returns the only element. Fails if there is not exactly one element, or if it has another type.
    pub fn item<T: Element>(&self) -> Result<T> {
        match *self.elements()? {
            [element] => Ok(element),
            _ => Err(Error::input(format!("a tensor of shape {:?} has {} elements, not one", self.shape, self.len()))),
        }
    }
}

/// Returns the number of bytes of a shape. None if the nonzero extents give [`MOST_BYTES`] or more.
fn size_of_shape(shape: &[usize], size: usize) -> Option<usize> {
    let total = shape.iter().try_fold(size, |total, &extent| total.checked_mul(extent.max(1)))?;
    if u64::try_from(total).ok()? >= MOST_BYTES {
        return None;
    }
    Some(if shape.contains(&0) { 0 } else { total })
}

/// Shows dtype and shape, without the elements.
impl fmt::Display for Tensor {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}{:?}", self.dtype, self.shape)
    }
}

impl fmt::Debug for Tensor {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Tensor({self})")
    }
}

/// Creates a tensor without axes.
impl<T: Element> From<T> for Tensor {
    fn from(element: T) -> Self {
        Self { dtype: T::DTYPE, shape: Vec::new(), memory: Memory::of(vec![element]) }
    }
}

/// Creates a tensor with one axis. The elements are not copied.
impl<T: Element> From<Vec<T>> for Tensor {
    fn from(elements: Vec<T>) -> Self {
        Self { dtype: T::DTYPE, shape: vec![elements.len()], memory: Memory::of(elements) }
    }
}

/// Creates a tensor with one axis.
impl<T: Element, const N: usize> From<[T; N]> for Tensor {
    fn from(elements: [T; N]) -> Self {
        Vec::from(elements).into()
    }
}

/// Creates a tensor with one axis from a copy of the elements.
impl<T: Element> From<&[T]> for Tensor {
    fn from(elements: &[T]) -> Self {
        elements.to_vec().into()
    }
}

impl From<&Tensor> for Tensor {
    fn from(tensor: &Tensor) -> Self {
        tensor.clone()
    }
}
