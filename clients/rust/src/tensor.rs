//! Arrays as they travel.

use std::borrow::Cow;
use std::fmt;

use crate::dtype::ElementKind;
use crate::memory::{Element, Memory};
use crate::{DType, Error, Result};

/// As many axes as NumPy's arrays have at most.
const MOST_AXES: usize = 64;
/// The extents of a shape other than 0 make fewer bytes.
const MOST_BYTES: u64 = 1 << 53;

/// An array with a dtype and a shape, whose elements lie row-major.
///
/// It has the memory of the vector that it was made from, or shares that of the answer that it came with. Clones share it.
/// Tensors are equal that have the same dtype, shape and bits.
#[derive(Clone, PartialEq)]
pub struct Tensor {
    dtype: DType,
    shape: Vec<usize>,
    memory: Memory,
}

impl Tensor {
    /// The tensor that has these elements, which are not copied; a shape without extents is that of a single number.
    ///
    /// Fails where they are more or fewer than the shape has.
    pub fn new<T: Element>(shape: impl Into<Vec<usize>>, elements: Vec<T>) -> Result<Self> {
        Self::from_memory(T::DTYPE, shape.into(), Memory::of(elements))
    }

    /// The tensor whose elements are these bytes, row-major and little-endian, which are not copied.
    ///
    /// Fails for a dtype that this client lacks, and where the shape has more or fewer bytes.
    pub fn from_bytes(dtype: impl Into<DType>, shape: impl Into<Vec<usize>>, bytes: Vec<u8>) -> Result<Self> {
        Self::from_memory(dtype.into(), shape.into(), Memory::of(bytes))
    }

    pub(crate) fn from_memory(dtype: DType, shape: Vec<usize>, memory: Memory) -> Result<Self> {
        let element = dtype.element_type()?;
        if shape.len() > MOST_AXES {
            return Err(Error::input(format!("a shape has at most {MOST_AXES} axes, and this one {}", shape.len())));
        }
        let Some(size) = size_of_shape(&shape, element.size) else {
            return Err(Error::input(format!(
                "{dtype} of shape {shape:?} is too large: its extents other than 0 make 2^53 bytes or more"
            )));
        };
        if size != memory.len() {
            return Err(Error::input(format!("{dtype} of shape {shape:?} does not have {} bytes", memory.len())));
        }
        if element.kind == ElementKind::Bool && memory.bytes().iter().any(|&byte| byte > 1) {
            return Err(Error::input("the bytes of bool are 0 and 1, and these are others, too"));
        }
        Ok(Self { dtype, shape, memory })
    }

    /// What the elements are.
    pub fn dtype(&self) -> &DType {
        &self.dtype
    }

    /// The extents of all axes.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// The number of elements.
    pub fn len(&self) -> usize {
        self.shape.iter().product()
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The elements, row-major and little-endian, in the memory of the tensor.
    pub fn bytes(&self) -> &[u8] {
        self.memory.bytes()
    }

    pub(crate) fn memory(&self) -> &Memory {
        &self.memory
    }

    /// The elements, in the memory of the tensor where they are aligned there. Fails where they are of another type.
    pub fn elements<T: Element>(&self) -> Result<Cow<'_, [T]>> {
        if self.dtype != T::DTYPE {
            return Err(Error::input(format!("the elements of this tensor are {}, and not {}", self.dtype, T::DTYPE)));
        }
        Ok(self.memory.elements())
    }

    /// The only element. Fails where there are several, or they are of another type.
    pub fn item<T: Element>(&self) -> Result<T> {
        match *self.elements()? {
            [element] => Ok(element),
            _ => Err(Error::input(format!(
                "a tensor of shape {:?} has {} elements, and not one",
                self.shape,
                self.len()
            ))),
        }
    }
}

/// How many bytes a shape has; None where the extents other than 0 make [`MOST_BYTES`] or more.
fn size_of_shape(shape: &[usize], size: usize) -> Option<usize> {
    let total = shape.iter().try_fold(size, |total, &extent| total.checked_mul(extent.max(1)))?;
    if u64::try_from(total).ok()? >= MOST_BYTES {
        return None;
    }
    Some(if shape.contains(&0) { 0 } else { total })
}

/// Says what kind of tensor it is, and does not show the elements.
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

/// The tensor without axes that has this element.
impl<T: Element> From<T> for Tensor {
    fn from(element: T) -> Self {
        Self { dtype: T::DTYPE, shape: Vec::new(), memory: Memory::of(vec![element]) }
    }
}

/// The tensor with one axis that has these elements, which are not copied.
impl<T: Element> From<Vec<T>> for Tensor {
    fn from(elements: Vec<T>) -> Self {
        Self { dtype: T::DTYPE, shape: vec![elements.len()], memory: Memory::of(elements) }
    }
}

/// The tensor with one axis that has these elements.
impl<T: Element, const N: usize> From<[T; N]> for Tensor {
    fn from(elements: [T; N]) -> Self {
        Vec::from(elements).into()
    }
}

/// The tensor with one axis that has a copy of these elements.
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
