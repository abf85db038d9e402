package gradserve

// DType is the type of a tensor's elements, by its API name. Servers may support more dtypes than this client: a DType
// can hold any name.
type DType string

// The dtypes that this client supports in tensors.
const (
	Bool       DType = "bool"
	Int8       DType = "int8"
	Uint8      DType = "uint8"
	Int16      DType = "int16"
	Int32      DType = "int32"
	Uint32     DType = "uint32"
	Int64      DType = "int64"
	Float16    DType = "float16"
	Float32    DType = "float32"
	Float64    DType = "float64"
	Complex64  DType = "complex64"
	Complex128 DType = "complex128"
)

type elementKind int

const (
	boolean elementKind = iota
	integer
	float
	complexNumber
)

// elementType describes a dtype. safetensors is its name in the safetensors format, if any. since is the first opset
// with this dtype. A complex dtype is sent as its real and imaginary parts, whose dtype is parts.
type elementType struct {
	kind        elementKind
	size        int
	safetensors string
	since       int
	parts       DType
}

var elementTypes = map[DType]elementType{
	Bool:       {kind: boolean, size: 1, safetensors: "BOOL", since: 1},
	Int8:       {kind: integer, size: 1, safetensors: "I8", since: 1},
	Uint8:      {kind: integer, size: 1, safetensors: "U8", since: 1},
	Int16:      {kind: integer, size: 2, safetensors: "I16", since: 2},
	Int32:      {kind: integer, size: 4, safetensors: "I32", since: 1},
	Uint32:     {kind: integer, size: 4, safetensors: "U32", since: 2},
	Int64:      {kind: integer, size: 8, safetensors: "I64", since: 1},
	Float16:    {kind: float, size: 2, safetensors: "F16", since: 1},
	Float32:    {kind: float, size: 4, safetensors: "F32", since: 1},
	Float64:    {kind: float, size: 8, safetensors: "F64", since: 1},
	Complex64:  {kind: complexNumber, size: 8, safetensors: "C64", since: 2, parts: Float32},
	Complex128: {kind: complexNumber, size: 16, since: 2, parts: Float64},
}

// safetensorsTypes maps names in the safetensors format to dtypes.
var safetensorsTypes = func() map[string]DType {
	found := map[string]DType{}
	for dtype, element := range elementTypes {
		if element.safetensors != "" {
			found[element.safetensors] = dtype
		}
	}
	return found
}()

// complexTypes maps the dtypes of parts to complex dtypes.
var complexTypes = map[DType]DType{Float32: Complex64, Float64: Complex128}

// asParts returns the dtype of the numbers that an element is written as: its own, or that of its parts if it is
// complex.
func asParts(dtype DType) DType {
	if parts := elementTypes[dtype].parts; parts != "" {
		return parts
	}
	return dtype
}

// elementTypeOf returns an error for a dtype that this client does not support in tensors.
func elementTypeOf(dtype DType) (elementType, error) {
	element, known := elementTypes[dtype]
	if !known {
		return element, inputErrorf("unsupported dtype %q: this client supports bool, int8, uint8, int16, int32, uint32, "+
			"int64, float16, float32, float64, complex64 and complex128", string(dtype))
	}
	return element, nil
}
