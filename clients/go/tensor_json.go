package gradserve

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"math"
	"strconv"
)

// Form is the encoding of tensors.
type Form string

// The forms: JSON numbers, base64 in JSON, or a safetensors file. By default, tensors of 4 KiB or more are sent as
// safetensors, smaller ones as base64.
const (
	JSON        Form = "json"
	Base64      Form = "base64"
	Safetensors Form = "safetensors"
)

const (
	// the size from which tensors are sent as files by default
	large = 4096
	// exact is the largest integer that every JSON parser reads exactly.
	exact = 1 << 53
)

// DefaultForm returns the default encoding of a tensor.
func DefaultForm(tensor *Tensor) Form { return defaultForm(len(tensor.raw)) }

// defaultForm returns the default encoding of tensors of this size in bytes.
func defaultForm(size int) Form {
	if size >= large {
		return Safetensors
	}
	return Base64
}

// toJSON returns the tensor in JSON: its bytes as base64, or its numbers if the form is JSON and JSON can represent all
// of them.
func (t *Tensor) toJSON(form Form) map[string]any {
	made := map[string]any{"dtype": t.dtype, "shape": t.shape}
	if form == JSON {
		if numbers, kept := t.numbers(); kept {
			made["data"] = json.RawMessage(numbers)
			return made
		}
	}
	made["data_b64"] = t.raw
	return made
}

// EncodeJSON returns the tensor in the JSON form of the API: numbers if the form is JSON and JSON can represent all of
// them, otherwise base64.
func (t *Tensor) EncodeJSON(form Form) ([]byte, error) { return written(t.toJSON(form)) }

// MarshalJSON returns the tensor in the JSON form of the API, as base64.
func (t *Tensor) MarshalJSON() ([]byte, error) { return t.EncodeJSON(Base64) }

// UnmarshalJSON reads a tensor in the JSON form of the API, as numbers or base64. It returns a MalformedError if the
// text is not a tensor.
func (t *Tensor) UnmarshalJSON(text []byte) error {
	read, err := tensorFromJSON(text)
	if err != nil {
		return malformed(err)
	}
	*t = *read
	return nil
}

// numbers returns the list of elements, in which a complex number is its real part followed by its imaginary part. It
// returns false if JSON cannot represent an element: NaN, infinities, integers beyond 2⁵³.
func (t *Tensor) numbers() ([]byte, bool) {
	element := elementTypes[asParts(t.dtype)]
	list := []byte{'['}
	for start := 0; start < len(t.raw); start += element.size {
		if start > 0 {
			list = append(list, ',')
		}
		raw := t.raw[start : start+element.size]
		if element.kind == float {
			number := floatOf(raw)
			if math.IsNaN(number) || math.IsInf(number, 0) {
				return nil, false
			}
			list = appendFloat(list, number)
			continue
		}
		number := wholeIn(raw, t.dtype)
		if number < -exact || number > exact {
			return nil, false
		}
		list = strconv.AppendInt(list, number, 10)
	}
	return append(list, ']'), true
}

func floatOf(raw []byte) float64 {
	switch len(raw) {
	case 2:
		return Float16Bits(binary.LittleEndian.Uint16(raw)).Float64()
	case 4:
		return float64(math.Float32frombits(binary.LittleEndian.Uint32(raw)))
	}
	return math.Float64frombits(binary.LittleEndian.Uint64(raw))
}

func wholeIn(raw []byte, dtype DType) int64 {
	switch dtype {
	case Int8:
		return int64(int8(raw[0]))
	case Int16:
		return int64(int16(binary.LittleEndian.Uint16(raw)))
	case Int32:
		return int64(int32(binary.LittleEndian.Uint32(raw)))
	case Uint32:
		return int64(binary.LittleEndian.Uint32(raw))
	case Int64:
		return int64(binary.LittleEndian.Uint64(raw))
	}
	return int64(raw[0])
}

// tensorFromJSON returns an InputError. If the tensor is part of a response, the caller converts the error.
func tensorFromJSON(text []byte) (*Tensor, error) {
	members, err := objectOf(text)
	if err != nil {
		return nil, err
	}
	word, err := textOf(members["dtype"])
	if err != nil {
		return nil, within("dtype", err)
	}
	dtype := DType(word)
	if _, err := elementTypeOf(dtype); err != nil {
		return nil, err
	}
	shape, err := shapeOf(members["shape"])
	if err != nil {
		return nil, within("shape", err)
	}
	raw, err := payloadOf(members, asParts(dtype))
	if err != nil {
		return nil, err
	}
	return tensorOf(dtype, shape, raw)
}

func shapeOf(value json.RawMessage) ([]int, error) {
	extents, err := numbersIn(value)
	if err != nil {
		return nil, err
	}
	shape := make([]int, len(extents))
	for i, extent := range extents {
		if shape[i], err = strconv.Atoi(string(extent)); err != nil {
			return nil, inputErrorf("%q is not a valid integer", extent)
		}
	}
	return shape, nil
}

// payloadOf returns the bytes of a tensor's elements, from numbers or base64. dtype is that of the numbers.
func payloadOf(members object, dtype DType) ([]byte, error) {
	numbers, err := optional(members["data"], numbersIn)
	if err != nil {
		return nil, within("data", err)
	}
	raw, err := optional(members["data_b64"], decoded)
	switch {
	case err != nil:
		return nil, within("data_b64", err)
	case len(numbers) > 0 && len(raw) > 0:
		return nil, inputErrorf("the tensor has both data and data_b64")
	case len(numbers) == 0:
		return raw, nil
	}
	element := elementTypes[dtype]
	raw = make([]byte, 0, len(numbers)*element.size)
	for _, number := range numbers {
		if element.kind == float {
			raw, err = appendFloatOf(raw, string(number), dtype)
		} else {
			raw, err = appendWholeOf(raw, string(number), dtype)
		}
		if err != nil {
			return nil, err
		}
	}
	return raw, nil
}

// optional reads a member that may be absent or null.
func optional[T any](value json.RawMessage, read func(json.RawMessage) (T, error)) (T, error) {
	if value == nil || string(value) == "null" {
		var none T
		return none, nil
	}
	return read(value)
}

// decoded decodes a string of base64 with padding.
func decoded(value json.RawMessage) ([]byte, error) {
	text := []byte(nil)
	if value[0] == '"' && !bytes.ContainsRune(value, '\\') {
		text = value[1 : len(value)-1] // without a copy: it may be long
	} else if read, err := textOf(value); err == nil {
		text = []byte(read)
	} else {
		return nil, err
	}
	raw := make([]byte, base64.StdEncoding.DecodedLen(len(text)))
	count, err := base64.StdEncoding.Decode(raw, text)
	if err != nil || bytes.ContainsAny(text, "\r\n") {
		return nil, inputErrorf("expected base64 with padding")
	}
	return raw[:count], nil
}

// appendFloatOf rounds to the nearest number of the dtype.
func appendFloatOf(raw []byte, text string, dtype DType) ([]byte, error) {
	number, _ := strconv.ParseFloat(text, 64) // infinite if it is out of range
	switch dtype {
	case Float16:
		bits := ToFloat16(number)
		raw, number = binary.LittleEndian.AppendUint16(raw, uint16(bits)), bits.Float64()
	case Float32:
		rounded := float32(number)
		raw, number = binary.LittleEndian.AppendUint32(raw, math.Float32bits(rounded)), float64(rounded)
	default:
		raw = binary.LittleEndian.AppendUint64(raw, math.Float64bits(number))
	}
	if math.IsInf(number, 0) {
		return nil, inputErrorf("%s is out of range for %s", text, dtype)
	}
	return raw, nil
}

// appendWholeOf appends an integer, which may be written with a decimal point.
func appendWholeOf(raw []byte, text string, dtype DType) ([]byte, error) {
	number, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		rounded, _ := strconv.ParseFloat(text, 64)
		if rounded != math.Trunc(rounded) || rounded < -1<<63 || rounded >= 1<<63 {
			return nil, inputErrorf("%s is not a valid %s", text, dtype)
		}
		number = int64(rounded)
	}
	made := len(raw)
	switch elementTypes[dtype].size {
	case 1:
		raw = append(raw, byte(number))
	case 2:
		raw = binary.LittleEndian.AppendUint16(raw, uint16(number))
	case 4:
		raw = binary.LittleEndian.AppendUint32(raw, uint32(number))
	default:
		raw = binary.LittleEndian.AppendUint64(raw, uint64(number))
	}
	if wholeIn(raw[made:], dtype) != number || dtype == Bool && number > 1 {
		return nil, inputErrorf("%s is not a valid %s", text, dtype)
	}
	return raw, nil
}
