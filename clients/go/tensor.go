package gradserve

import (
	"fmt"
	"math/bits"
	"slices"
	"unsafe"
)

// Element is what a slice may consist of that is a tensor's.
type Element interface {
	bool | int8 | uint8 | int16 | int32 | uint32 | int64 | Float16Bits | float32 | float64 | complex64 | complex128
}

// Tensor is an array with a dtype and a shape, whose elements lie row-major. It shares the memory of the slice that it
// was made from, or of the answer that it came with: what is written there is written here, so do not, while a call is
// under way.
type Tensor struct {
	dtype DType
	shape []int
	// raw are the elements, little-endian.
	raw []byte
}

// mostAxes is as many as NumPy's arrays have at most.
const mostAxes = 64

// mostBytes is more than the extents of a shape other than 0 may make.
const mostBytes = 1 << 53

// NewTensor is the tensor that has these elements, without copying them; no extents are the shape of a single number.
// It fails with an InputError where they are more or fewer than the shape has.
func NewTensor[T Element](elements []T, shape ...int) (*Tensor, error) {
	return tensorOf(dtypeOf[T](), shape, littleEndian(elements))
}

// Vector is the tensor with one axis that has these elements, without copying them.
func Vector[T Element](elements []T) *Tensor {
	return &Tensor{dtypeOf[T](), []int{len(elements)}, littleEndian(elements)}
}

// Scalar is the tensor without axes that has this element.
func Scalar[T Element](element T) *Tensor {
	return &Tensor{dtypeOf[T](), []int{}, littleEndian([]T{element})}
}

// Must is for tensors that are known to be right: it panics where there is an error.
func Must(tensor *Tensor, err error) *Tensor {
	if err != nil {
		panic(err)
	}
	return tensor
}

// TensorFromBytes is the tensor whose elements are these bytes, row-major and little-endian, without copying them. It
// fails with an InputError for a dtype that this client lacks, and where the shape has more or fewer bytes.
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
		return nil, inputErrorf("%s of shape %v does not have %d bytes", dtype, shape, len(raw))
	}
	if element.kind == boolean && slices.ContainsFunc(raw, func(b byte) bool { return b > 1 }) {
		return nil, inputErrorf("the bytes of bool are 0 and 1, and these are others, too")
	}
	return &Tensor{dtype, append([]int{}, shape...), raw}, nil
}

// bytesOf is how many bytes a shape has. It fails where the extents other than 0 make 2⁵³ bytes or more.
func bytesOf(shape []int, size int) (uint64, error) {
	if len(shape) > mostAxes {
		return 0, inputErrorf("a shape has at most %d axes, and this one %d", mostAxes, len(shape))
	}
	if slices.ContainsFunc(shape, func(extent int) bool { return extent < 0 }) {
		return 0, inputErrorf("the extents of a shape are at least 0, and these are %v", shape)
	}
	total := uint64(size)
	for _, extent := range shape {
		beyond, product := bits.Mul64(total, uint64(max(1, extent)))
		if beyond != 0 || product >= mostBytes {
			return 0, inputErrorf("the shape %v is too large: its extents other than 0 make 2^53 bytes or more", shape)
		}
		total = product
	}
	if slices.Contains(shape, 0) {
		return 0, nil
	}
	return total, nil
}

// DType says what the elements are.
func (t *Tensor) DType() DType { return t.dtype }

// Shape has the extents of all axes.
func (t *Tensor) Shape() []int { return slices.Clone(t.shape) }

// Len is the number of elements.
func (t *Tensor) Len() int { return len(t.raw) / elementTypes[t.dtype].size }

// Bytes are the elements, row-major and little-endian, in the memory of the tensor.
func (t *Tensor) Bytes() []byte { return t.raw }

// String says what kind of tensor it is, and does not show the elements.
func (t *Tensor) String() string { return fmt.Sprintf("%s%v", t.dtype, t.shape) }

func (t *Tensor) isValue() {}

// Slice has the elements of a tensor, in its memory where they are aligned there. It fails with an InputError where
// they are of another type.
func Slice[T Element](tensor *Tensor) ([]T, error) {
	if wanted := dtypeOf[T](); tensor.dtype != wanted {
		return nil, inputErrorf("the elements of this tensor are %s, and not %s", tensor.dtype, wanted)
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

// Item is the only element of a tensor. It fails with an InputError where there are several, or they are of another
// type.
func Item[T Element](tensor *Tensor) (T, error) {
	elements, err := Slice[T](tensor)
	if err == nil && len(elements) != 1 {
		err = inputErrorf("a tensor of shape %v has %d elements, and not one", tensor.shape, len(elements))
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

// littleEndian has the bytes of elements as the wire has them: their own memory, where the machine has them so too.
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
