package gradserve

// DType says what the elements of a tensor are, by the word of the wire. Servers may know more of them than this
// client: as a word, any travels.
type DType string

// The dtypes that tensors of this client have.
const (
	Bool    DType = "bool"
	Int8    DType = "int8"
	Uint8   DType = "uint8"
	Int32   DType = "int32"
	Uint32  DType = "uint32"
	Int64   DType = "int64"
	Float16 DType = "float16"
	Float32 DType = "float32"
	Float64 DType = "float64"
)

type elementKind int

const (
	boolean elementKind = iota
	integer
	float
)

// elementType is what there is to know of a dtype; safetensors is how that format spells it, and
// since the opset that graphs have it since.
type elementType struct {
	kind        elementKind
	size        int
	safetensors string
	since       int
}

var elementTypes = map[DType]elementType{
	Bool:    {boolean, 1, "BOOL", 1},
	Int8:    {integer, 1, "I8", 1},
	Uint8:   {integer, 1, "U8", 1},
	Int32:   {integer, 4, "I32", 1},
	Uint32:  {integer, 4, "U32", 2},
	Int64:   {integer, 8, "I64", 1},
	Float16: {float, 2, "F16", 1},
	Float32: {float, 4, "F32", 1},
	Float64: {float, 8, "F64", 1},
}

// safetensorsTypes has the dtypes by their names in files.
var safetensorsTypes = func() map[string]DType {
	found := map[string]DType{}
	for dtype, element := range elementTypes {
		found[element.safetensors] = dtype
	}
	return found
}()

// elementTypeOf fails for a dtype that tensors of this client cannot have.
func elementTypeOf(dtype DType) (elementType, error) {
	element, known := elementTypes[dtype]
	if !known {
		return element, inputErrorf("%q is no dtype of this client, which has bool, int8, uint8, int32, uint32, int64, "+
			"float16, float32 and float64", string(dtype))
	}
	return element, nil
}
