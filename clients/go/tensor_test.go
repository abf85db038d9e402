package gradserve

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"math"
	"strconv"
	"testing"
	"unsafe"
)

func TestFloat16HasAllOfItsBits(t *testing.T) {
	for bits := range 1 << 16 {
		number := Float16Bits(bits).Float64()
		if math.IsNaN(number) {
			continue
		}
		if again := ToFloat16(number); again != Float16Bits(bits) {
			t.Fatalf("%#04x is %v, which is %#04x", bits, number, again)
		}
	}
}

func TestFloat16IsRoundedToTheNearestAndThenToTheEvenOne(t *testing.T) {
	for number, wanted := range map[float64]Float16Bits{
		1 + 1.0/2048:           0x3c00, // in the middle
		1 + 3.0/2048:           0x3c02, // in the middle, the other way
		1 + 1.0/2048 + 1e-9:    0x3c01,
		65519.99:               0x7bff,
		65520:                  0x7c00,
		1e300:                  0x7c00,
		-1e300:                 0xfc00,
		math.Ldexp(1, -25):     0x0000,
		math.Ldexp(1.001, -25): 0x0001,
		math.Ldexp(-3, -25):    0x8002,
		math.Ldexp(2047, -25):  0x0400, // into the normal ones
		math.Inf(-1):           0xfc00,
	} {
		if got := ToFloat16(number); got != wanted {
			t.Errorf("%v is %#04x, and not %#04x", number, got, wanted)
		}
	}
	if nan := ToFloat16(math.NaN()); !math.IsNaN(nan.Float64()) {
		t.Errorf("NaN is %#04x", nan)
	}
}

func TestTensorsShareMemoryWithSlices(t *testing.T) {
	elements := []float32{1, 2, 3, 4}
	tensor := Must(NewTensor(elements, 2, 2))
	elements[3] = 5
	again, err := Slice[float32](tensor)
	if err != nil || again[3] != 5 {
		t.Errorf("%v, %v", again, err)
	}
	if &again[0] != &elements[0] {
		t.Error("the elements were copied")
	}
}

func TestElementsThatAreNotAlignedAreCopied(t *testing.T) {
	memory := make([]byte, 24)
	start := 1
	if uintptr(unsafe.Pointer(&memory[1]))%8 == 0 {
		start = 2
	}
	copy(memory[start:], littleEndian([]float64{1.5, math.Copysign(0, -1)}))
	tensor := Must(TensorFromBytes(Float64, []int{2}, memory[start:start+16]))
	elements, err := Slice[float64](tensor)
	if err != nil || elements[0] != 1.5 || !math.Signbit(elements[1]) {
		t.Errorf("%v, %v", elements, err)
	}
}

func TestElementsAreOfTheTypeThatIsAskedFor(t *testing.T) {
	tensor := Vector([]int32{1, 2})
	if _, err := Slice[int64](tensor); !isInput(err) {
		t.Errorf("%v", err)
	}
	if _, err := Item[int32](tensor); !isInput(err) {
		t.Errorf("%v", err)
	}
	if item, err := Item[Float16Bits](Scalar[Float16Bits](0x3c00)); item != 0x3c00 || err != nil {
		t.Errorf("%v, %v", item, err)
	}
}

func TestAllTypesOfElementsAreDtypes(t *testing.T) {
	for wanted, tensor := range map[DType]*Tensor{
		Bool: Scalar(true), Int8: Scalar[int8](-1), Uint8: Scalar[uint8](255), Int32: Scalar[int32](-1),
		Uint32: Scalar[uint32](1<<32 - 1), Int64: Scalar[int64](-1), Float16: Scalar[Float16Bits](1), Float32: Scalar[float32](1), Float64: Scalar(1.0),
		Int16: Scalar[int16](-1), Complex64: Scalar(complex64(1i)), Complex128: Scalar(1i),
	} {
		if tensor.DType() != wanted || tensor.Len() != 1 || len(tensor.Shape()) != 0 {
			t.Errorf("%v", tensor)
		}
	}
}

func TestShapesThatDoNotFitAreRefused(t *testing.T) {
	for _, shape := range [][]int{{}, {2}, {4}, {-1, -3}, {3, 1 << 62, 1 << 62}, make([]int, 65)} {
		if _, err := NewTensor([]uint8{1, 2, 3}, shape...); !isInput(err) {
			t.Errorf("%v: %v", shape, err)
		}
	}
	if _, err := NewTensor([]uint8{1, 2, 3, 4}, 4, 1<<62+1); !isInput(err) {
		t.Errorf("a product beyond 64 bits: %v", err)
	}
	if tensor, err := NewTensor([]int64{}, 0, 1<<48); err != nil || tensor.Len() != 0 {
		t.Errorf("%v, %v", tensor, err)
	}
	for _, shape := range [][]int{{1 << 62, 0}, {0, 1 << 62, 1 << 62}, {1 << 50, 0}} {
		if _, err := NewTensor([]int64{}, shape...); !isInput(err) {
			t.Errorf("%v: %v", shape, err)
		}
	}
	var malformed *MalformedError
	text := []byte(`{"dtype": "float64", "shape": [4611686018427387904, 0], "data": []}`)
	if err := new(Tensor).UnmarshalJSON(text); !errors.As(err, &malformed) {
		t.Errorf("a huge shape in an answer: %v", err)
	}
	defer func() {
		if recover() == nil {
			t.Error("Must does not panic")
		}
	}()
	Must(NewTensor([]uint8{1, 2, 3}, 2))
}

func TestATensorsShapeIsItsOwn(t *testing.T) {
	shape := []int{2, 1}
	tensor := Must(NewTensor([]uint8{1, 2}, shape...))
	shape[0], tensor.Shape()[1] = 7, 7
	if got := tensor.Shape(); got[0] != 2 || got[1] != 1 {
		t.Errorf("%v", got)
	}
}

func TestTensorsStandInJSONOfUsers(t *testing.T) {
	stated := map[string]*Tensor{"a": Must(NewTensor([]float64{math.NaN(), 1}, 1, 2))}
	text, err := json.Marshal(stated)
	if err != nil {
		t.Fatal(err)
	}
	var again map[string]*Tensor
	if err := json.Unmarshal(text, &again); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(again["a"].Bytes(), stated["a"].Bytes()) || again["a"].String() != "float64[1 2]" {
		t.Errorf("%v", again["a"])
	}
}

func TestFilesAreRead(t *testing.T) {
	tensors := map[string]*Tensor{"a": Vector([]int8{1, 2, 3}), "b": Vector([]float64{0.5}), "": Vector([]bool{true})}
	pieces, err := EncodeSafetensors(tensors, map[string]string{"for": "<people> & others"})
	if err != nil {
		t.Fatal(err)
	}
	if &pieces[1][0] != &tensors["b"].raw[0] {
		t.Error("the elements were copied, or do not come in the order of their width")
	}
	again, metadata, err := DecodeSafetensors(bytes.Join(pieces, nil))
	if err != nil || len(again) != 3 || metadata["for"] != "<people> & others" {
		t.Errorf("%v, %v, %v", again, metadata, err)
	}
	for name, tensor := range tensors {
		if !bytes.Equal(again[name].Bytes(), tensor.Bytes()) {
			t.Errorf("%s: %v", name, again[name])
		}
	}
	if _, err := DecodeSafetensor(bytes.Join(pieces, nil), "c"); !is[*MalformedError](err) {
		t.Errorf("%v", err)
	}
}

func TestComplexTensorsTravelAsTheirParts(t *testing.T) {
	elements := []complex128{complex(0.5, math.Copysign(0, -1)), complex(-2, 3)}
	tensor := Must(NewTensor(elements, 1, 2))
	text, err := tensor.EncodeJSON(JSON)
	var stated struct{ Data json.RawMessage }
	if err != nil || json.Unmarshal(text, &stated) != nil || string(stated.Data) != "[0.5,-0.0,-2,3]" {
		t.Errorf("%s, %v", text, err)
	}
	pieces, err := EncodeSafetensors(map[string]*Tensor{"z": tensor, "x": Scalar(1.0)}, map[string]string{"for": "all"})
	if err != nil || !bytes.Contains(pieces[0], []byte(`"F64"`)) || !bytes.Contains(pieces[0], []byte(`[1,2,2]`)) {
		t.Fatalf("%s, %v", pieces[0], err)
	}
	again, metadata, err := DecodeSafetensors(bytes.Join(pieces, nil))
	if err != nil || len(metadata) != 1 || again["x"].DType() != Float64 || again["z"].String() != "complex128[1 2]" {
		t.Fatalf("%v, %v, %v", again, metadata, err)
	}
	var read Tensor
	if err := read.UnmarshalJSON(text); err != nil {
		t.Fatal(err)
	}
	for _, one := range []*Tensor{again["z"], &read} {
		if got, err := Slice[complex128](one); err != nil || !bytes.Equal(one.Bytes(), tensor.Bytes()) || got[1] != elements[1] {
			t.Errorf("%v, %v", got, err)
		}
	}
	infinite := Scalar(complex64(complex(0, math.Inf(1))))
	if text, err := infinite.EncodeJSON(JSON); err != nil || bytes.Contains(text, []byte(`"data"`)) {
		t.Errorf("%s, %v", text, err)
	}
}

func TestWhatIsSaidToBeComplexHasALastAxisOfTwo(t *testing.T) {
	file := func(dtype, shape, names string, size int) []byte {
		header := `{"__metadata__":{"complex":` + names + `},"t":{"dtype":"` + dtype + `","shape":` + shape +
			`,"data_offsets":[0,` + strconv.Itoa(size) + `]}}`
		length := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
		return append(append(length, header...), make([]byte, size)...)
	}
	if read, err := DecodeSafetensor(file("F32", "[3,2]", `"[\"t\"]"`, 24), "t"); err != nil || read.String() != "complex64[3]" {
		t.Errorf("%v, %v", read, err)
	}
	if read, err := DecodeSafetensor(file("C64", "[3]", `"[]"`, 24), "t"); err != nil || read.String() != "complex64[3]" {
		t.Errorf("%v, %v", read, err)
	}
	for _, wrong := range [][]byte{
		file("F32", "[2,3]", `"[\"t\"]"`, 24),
		file("F32", "[]", `"[\"t\"]"`, 4),
		file("I32", "[3,2]", `"[\"t\"]"`, 24),
		file("C64", "[2]", `"[\"t\"]"`, 16),
		file("F32", "[3,2]", `"[\"u\"]"`, 24),
		file("F32", "[3,2]", `"[null]"`, 24),
		file("F32", "[3,2]", `"null"`, 24),
		file("F32", "[3,2]", `"t"`, 24),
		file("F32", "[3,2]", `["t"]`, 24),
	} {
		if _, err := DecodeSafetensor(wrong, "t"); !is[*MalformedError](err) {
			t.Errorf("%s: %v", wrong[8:], err)
		}
	}
}

func FuzzDecodeSafetensors(f *testing.F) {
	pieces, _ := EncodeSafetensors(map[string]*Tensor{"t": Vector([]float32{1, 2})}, map[string]string{"k": "v"})
	f.Add(bytes.Join(pieces, nil))
	f.Add([]byte("\x02\x00\x00\x00\x00\x00\x00\x00{}"))
	f.Fuzz(func(t *testing.T, file []byte) {
		if _, _, err := DecodeSafetensors(file); err != nil && !is[*MalformedError](err) {
			t.Errorf("%v", err)
		}
	})
}

func FuzzUnmarshalTensor(f *testing.F) {
	f.Add([]byte(`{"dtype": "float16", "shape": [2], "data": [1, -0.0]}`))
	f.Add([]byte(`{"dtype": "bool", "shape": [3], "data_b64": "AAEA"}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		var tensor Tensor
		if err := tensor.UnmarshalJSON(text); err != nil && !is[*MalformedError](err) {
			t.Errorf("%v", err)
		}
	})
}

func is[T error](err error) bool {
	var found T
	return errors.As(err, &found)
}

func isInput(err error) bool { return is[*InputError](err) }
