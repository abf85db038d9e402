package gradserve

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
)

// The safetensors format: a JSON header, followed by the bytes of the tensors, which are read without a copy. A complex
// tensor is stored as its real and imaginary parts along a last axis of 2. __metadata__.complex lists these tensors.
// https://github.com/huggingface/safetensors#format

const (
	metadataName = "__metadata__"
	complexName  = "complex"
	lengthSize   = 8
	// mostOfHeader is the maximum size of a header: the limit of the reference implementation.
	mostOfHeader = 100_000_000
)

// EncodeSafetensors returns a safetensors file in pieces: its header, and the bytes of the tensors, which are not
// copied. It returns an InputError if a name is not UTF-8.
func EncodeSafetensors(tensors map[string]*Tensor, metadata map[string]string) ([][]byte, error) {
	// Tensors with wide elements come first, so that all are aligned.
	names := slices.SortedFunc(maps.Keys(tensors), func(a, b string) int {
		wider := elementTypes[tensors[b].dtype].size - elementTypes[tensors[a].dtype].size
		return cmp.Or(wider, cmp.Compare(a, b))
	})
	header, pairs := map[string]any{}, []string(nil)
	pieces, end := [][]byte{nil}, 0
	for _, name := range names {
		tensor := tensors[name]
		start := end
		end += len(tensor.raw)
		shape := tensor.shape
		if elementTypes[tensor.dtype].kind == complexNumber {
			shape, pairs = append(tensor.Shape(), 2), append(pairs, name)
		}
		header[name] = map[string]any{
			"dtype":        elementTypes[asParts(tensor.dtype)].safetensors,
			"shape":        shape,
			"data_offsets": []int{start, end},
		}
		pieces = append(pieces, tensor.raw)
	}
	metadata, err := withComplex(metadata, pairs)
	if err != nil {
		return nil, err
	}
	if len(metadata) > 0 {
		header[metadataName] = metadata
	}
	text, err := written(header)
	if err != nil {
		return nil, err
	}
	text = append(text, bytes.Repeat([]byte(" "), -len(text)&(lengthSize-1))...)
	pieces[0] = append(binary.LittleEndian.AppendUint64(nil, uint64(len(text))), text...)
	return pieces, nil
}

// withComplex returns metadata that lists these tensors as complex.
func withComplex(metadata map[string]string, names []string) (map[string]string, error) {
	if len(names) == 0 {
		return metadata, nil
	}
	list, err := written(names)
	made := map[string]string{complexName: string(list)}
	for name, value := range metadata {
		if name != complexName {
			made[name] = value
		}
	}
	return made, err
}

// DecodeSafetensors decodes a safetensors file without copying it. The dtypes of the tensors, not the metadata, tell
// which are complex. It returns a MalformedError if the file is invalid.
func DecodeSafetensors(file []byte) (tensors map[string]*Tensor, metadata map[string]string, err error) {
	tensors, metadata, err = decodeSafetensors(file)
	return tensors, metadata, malformed(err)
}

// DecodeSafetensor returns the tensor with a name in a safetensors file, without copying it. It returns a
// MalformedError if the file is invalid.
func DecodeSafetensor(file []byte, name string) (*Tensor, error) {
	tensors, _, err := decodeSafetensors(file)
	if err != nil {
		return nil, malformed(err)
	}
	tensor, is := tensors[name]
	if !is {
		return nil, malformedf("the safetensors file has no tensor %q", name)
	}
	return tensor, nil
}

func decodeSafetensors(file []byte) (map[string]*Tensor, map[string]string, error) {
	header, data, err := partsOf(file)
	if err != nil {
		return nil, nil, err
	}
	metadata, err := metadataOf(header)
	if err != nil {
		return nil, nil, err
	}
	pairs, err := complexNames(metadata, header)
	if err != nil {
		return nil, nil, err
	}
	entries := make([]fileEntry, 0, len(header))
	for name, stated := range header {
		entry, err := entryOf(name, stated)
		if err != nil {
			return nil, nil, within("tensor "+strconv.Quote(name)+" of the safetensors file", err)
		}
		if pairs[name] {
			if err := entry.joinParts(); err != nil {
				return nil, nil, within("tensor "+strconv.Quote(name)+" of the safetensors file", err)
			}
		}
		entries = append(entries, entry)
	}
	if err := checkThatTheyFill(entries, len(data)); err != nil {
		return nil, nil, err
	}
	tensors := make(map[string]*Tensor, len(entries))
	for _, entry := range entries {
		raw := data[entry.start:entry.end:entry.end]
		if tensors[entry.name], err = tensorOf(entry.dtype, entry.shape, raw); err != nil {
			return nil, nil, within("tensor "+strconv.Quote(entry.name)+" of the safetensors file", err)
		}
	}
	return tensors, metadata, nil
}

// partsOf returns the header and the data of a file.
func partsOf(file []byte) (object, []byte, error) {
	if len(file) < lengthSize {
		return nil, nil, inputErrorf("the safetensors file ends before the end of its header")
	}
	length, rest := binary.LittleEndian.Uint64(file), file[lengthSize:]
	if length > mostOfHeader {
		return nil, nil, inputErrorf("the header of the safetensors file has %d bytes; the limit is %d", length, mostOfHeader)
	}
	if length > uint64(len(rest)) {
		return nil, nil, inputErrorf("the safetensors file ends before the end of its header")
	}
	header, err := objectOfDistinct(rest[:length])
	return header, rest[length:], within("the header of the safetensors file", err)
}

// metadataOf removes the metadata from a header and returns it.
func metadataOf(header object) (map[string]string, error) {
	stated, is := header[metadataName]
	delete(header, metadataName)
	metadata := map[string]string{}
	if !is {
		return metadata, nil
	}
	members, err := objectOfDistinct(stated)
	if err != nil {
		return nil, within(metadataName+" of the safetensors file", err)
	}
	for name, value := range members {
		if metadata[name], err = textOf(value); err != nil {
			return nil, within(metadataName+" of the safetensors file", err)
		}
	}
	return metadata, nil
}

// complexNames removes the names of the complex tensors from the metadata and returns them.
func complexNames(metadata map[string]string, header object) (map[string]bool, error) {
	text, is := metadata[complexName]
	delete(metadata, complexName)
	if !is {
		return nil, nil
	}
	var names []*string
	if json.Unmarshal([]byte(text), &names) != nil || names == nil {
		return nil, inputErrorf("%s.%s of the safetensors file is not a JSON list of names", metadataName, complexName)
	}
	found := make(map[string]bool, len(names))
	for _, name := range names {
		if name == nil {
			return nil, inputErrorf("%s.%s of the safetensors file is not a JSON list of names", metadataName, complexName)
		}
		if _, is := header[*name]; !is {
			return nil, inputErrorf("%s.%s lists %q, which is not in the safetensors file", metadataName, complexName, *name)
		}
		found[*name] = true
	}
	return found, nil
}

// fileEntry is the location of a tensor in a file.
type fileEntry struct {
	name       string
	start, end int
	dtype      DType
	shape      []int
}

func entryOf(name string, stated json.RawMessage) (fileEntry, error) {
	members, err := objectOfDistinct(stated)
	if err != nil {
		return fileEntry{}, err
	}
	spelled, err := textOf(members["dtype"])
	if err != nil {
		return fileEntry{}, within("dtype", err)
	}
	dtype, known := safetensorsTypes[spelled]
	if !known {
		return fileEntry{}, inputErrorf("unsupported dtype %q", spelled)
	}
	shape, err := shapeOf(members["shape"])
	if err != nil {
		return fileEntry{}, within("shape", err)
	}
	offsets, err := shapeOf(members["data_offsets"])
	if err != nil || len(offsets) != 2 || offsets[0] < 0 || offsets[0] > offsets[1] {
		return fileEntry{}, inputErrorf("data_offsets must be [start, end] with 0 <= start <= end")
	}
	return fileEntry{name, offsets[0], offsets[1], dtype, shape}, nil
}

// joinParts turns the last axis of parts into complex numbers.
func (e *fileEntry) joinParts() error {
	last := len(e.shape) - 1
	whole, is := complexTypes[e.dtype]
	if !is || last < 0 || e.shape[last] != 2 {
		return inputErrorf("a complex tensor must be F32 or F64 with a last axis of 2")
	}
	e.dtype, e.shape = whole, e.shape[:last]
	return nil
}

// checkThatTheyFill checks that the tensors cover the data without gaps or overlaps.
func checkThatTheyFill(entries []fileEntry, length int) error {
	slices.SortFunc(entries, func(a, b fileEntry) int { return cmp.Or(a.start-b.start, a.end-b.end) })
	end := 0
	for _, entry := range entries {
		if entry.start != end {
			return inputErrorf("the tensors of the safetensors file overlap or leave gaps")
		}
		end = entry.end
	}
	if end != length {
		return inputErrorf("the tensors of the safetensors file do not cover all of its data")
	}
	return nil
}
