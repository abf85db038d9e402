package gradserve

import (
	"fmt"
	"math/bits"
	"slices"
	"unsafe"
)

// Element is the type of a tensor's elements in a slice.
type Element interface {
	bool | int8 | uint8 | int16 | int32 | uint32 | int64 | Float16Bits | float32 | float64 | complex64 | complex128
}

// Tensor is an array with a dtype and a shape, in row-major order. It shares the memory of the slice that it was
// created from, or of the response: do not write to it during a call.
type Tensor struct {
	dtype DType
	shape []int
	// raw holds the elements, little-endian.
	raw []byte
}

// mostAxes is the maximum number of axes of a NumPy array.
const mostAxes = 64

// mostBytes is an exclusive limit on the bytes of a tensor, with extents of 0 counted as 1.
const mostBytes = 1 << 53

// NewTensor creates a tensor from a slice, which is not copied. Without extents, the tensor is a scalar. It returns an
// InputError if the number of elements does not match the shape.
func NewTensor[T Element](elements []T, shape ...int) (*Tensor, error) {
	return tensorOf(dtypeOf[T](), shape, littleEndian(elements))
}

// Vector creates a tensor with one axis from a slice, which is not copied.
func Vector[T Element](elements []T) *Tensor {
	return &Tensor{dtypeOf[T](), []int{len(elements)}, littleEndian(elements)}
}

// Scalar creates a tensor without axes.
func Scalar[T Element](element T) *Tensor {
	return &Tensor{dtypeOf[T](), []int{}, littleEndian([]T{element})}
}

// Must returns a tensor that is known to be valid, and panics if there is an error.
func Must(tensor *Tensor, err error) *Tensor {
	if err != nil {
		panic(err)
	}
	return tensor
}

// TensorFromBytes creates a tensor from row-major, little-endian bytes, which are not copied. It returns an InputError
// for an unsupported dtype, and if the number of bytes does not match the shape.
func TensorFromBytes(dtype DType, shape []int, raw []byte) (*Tensor, error) {
	return tensorOf(dtype, shape, raw)
}

func tensorOf(dtype DType, shape []int, raw []byte) (*Tensor, error) {
	element, err := elementTypeOf(dtype)
	if err != nil {
		return nil, err
	}
	wanted, err := bytesOf(shape, element.size)
	if err != nil {
		return nil, err
	}
	if wanted != uint64(len(raw)) {
		return nil, inputErrorf("%s of shape %v has %d bytes, not %d", dtype, shape, wanted, len(raw))
	}
	if element.kind == boolean && slices.ContainsFunc(raw, func(b byte) bool { return b > 1 }) {
		return nil, inputErrorf("the elements of a bool tensor must be 0 or 1")
	}
	return &Tensor{dtype, append([]int{}, shape...), raw}, nil
}

// bytesOf returns the number of bytes of a shape. It returns an error if the extents other than 0 make 2⁵³ bytes or
// more.
func bytesOf(shape []int, size int) (uint64, error) {
	if len(shape) > mostAxes {
		return 0, inputErrorf("the shape has %d axes; the limit is %d", len(shape), mostAxes)
	}
	if slices.ContainsFunc(shape, func(extent int) bool { return extent < 0 }) {
		return 0, inputErrorf("the extents of a shape must not be negative, got %v", shape)
	}
	total := uint64(size)
	for _, extent := range shape {
		beyond, product := bits.Mul64(total, uint64(max(1, extent)))
		if beyond != 0 || product >= mostBytes {
			return 0, inputErrorf("the shape %v is too large: its nonzero extents give 2^53 bytes or more", shape)
		}
		total = product
	}
	if slices.Contains(shape, 0) {
		return 0, nil
	}
	return total, nil
}

// DType returns the dtype of the elements.
func (t *Tensor) DType() DType { return t.dtype }

// Shape returns the extents of all axes.
func (t *Tensor) Shape() []int { return slices.Clone(t.shape) }

// Len returns the number of elements.
func (t *Tensor) Len() int { return len(t.raw) / elementTypes[t.dtype].size }

// Bytes returns the elements, row-major and little-endian, as a view of the tensor's memory.
func (t *Tensor) Bytes() []byte { return t.raw }

// String returns dtype and shape, without the elements.
func (t *Tensor) String() string { return fmt.Sprintf("%s%v", t.dtype, t.shape) }

func (t *Tensor) isValue() {}

// Slice returns the elements of a tensor: a view of its memory if it is aligned, otherwise a copy. It returns an
// InputError if the elements have another type.
func Slice[T Element](tensor *Tensor) ([]T, error) {
	if wanted := dtypeOf[T](); tensor.dtype != wanted {
		return nil, inputErrorf("the tensor holds %s elements, not %s", tensor.dtype, wanted)
	}
	count := tensor.Len()
	if count == 0 {
		return []T{}, nil
	}
	start := unsafe.Pointer(unsafe.SliceData(tensor.raw))
	if isLittleEndian && uintptr(start)%unsafe.Alignof(*new(T)) == 0 {
		return unsafe.Slice((*T)(start), count), nil
	}
	elements := make([]T, count)
	copy(memoryOf(elements), tensor.raw)
	if !isLittleEndian {
		reverseEach(memoryOf(elements), elementTypes[asParts(tensor.dtype)].size)
	}
	return elements, nil
}

// Item returns the only element of a tensor. It returns an InputError if there is not exactly one element, or if it has
// another type.
func Item[T Element](tensor *Tensor) (T, error) {
	elements, err := Slice[T](tensor)
	if err == nil && len(elements) != 1 {
		err = inputErrorf("expected exactly one element, but the tensor of shape %v has %d", tensor.shape, len(elements))
	}
	if err != nil {
		var none T
		return none, err
	}
	return elements[0], nil
}

func dtypeOf[T Element]() DType {
	var element T
	switch any(element).(type) {
	case bool:
		return Bool
	case int8:
		return Int8
	case uint8:
		return Uint8
	case int16:
		return Int16
	case int32:
		return Int32
	case uint32:
		return Uint32
	case int64:
		return Int64
	case Float16Bits:
		return Float16
	case float32:
		return Float32
	case complex64:
		return Complex64
	case complex128:
		return Complex128
	default:
		return Float64
	}
}

var isLittleEndian = func() bool {
	one := uint16(1)
	return *(*byte)(unsafe.Pointer(&one)) == 1
}()

// littleEndian returns the little-endian bytes of elements: a view of their memory on little-endian machines.
func littleEndian[T Element](elements []T) []byte {
	memory := memoryOf(elements)
	if isLittleEndian || len(memory) == 0 {
		return memory
	}
	memory = slices.Clone(memory)
	reverseEach(memory, elementTypes[asParts(dtypeOf[T]())].size)
	return memory
}

func memoryOf[T Element](elements []T) []byte {
	size := int(unsafe.Sizeof(*new(T)))
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(elements))), len(elements)*size)
}

func reverseEach(memory []byte, size int) {
	for element := range slices.Chunk(memory, size) {
		slices.Reverse(element)
	}
}
