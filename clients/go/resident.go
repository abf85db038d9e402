package gradserve

import "encoding/json"

// Value is what stands for a node in a call: a Tensor, or the handle of one that the server keeps, or rows of that.
type Value interface{ isValue() }

// Resident is a version of a tensor that the server keeps, and may stand wherever a call takes a Tensor.
//
// A call reads the version that is there when it comes: ETag says which one this was, for conditions. What the server
// did not say is empty or nil: dtype, shape and bytes are known of what is put and listed, not of what is stored.
type Resident struct {
	Name            string
	ETag            string
	DType           DType
	Shape           []int
	Bytes           *int64
	Durable         *bool
	WrittenWithinMS *int64
}

func (r *Resident) isValue() {}

// Rows has the part of it from start to before stop on its leading axis, which may stand where it may.
func (r *Resident) Rows(start, stop int) *Rows {
	return &Rows{Name: r.Name, Start: start, Stop: stop}
}

// Rows are part of a tensor that the server keeps: what lies from Start to before Stop on its leading axis.
type Rows struct {
	Name        string
	Start, Stop int
}

func (r *Rows) isValue() {}

// ResidentTensor is a resident tensor with its elements.
type ResidentTensor struct {
	*Resident
	Tensor *Tensor
}

// Store says under which name a call is to keep the value of a node, or the gradient by it, and on what condition.
type Store struct {
	Name string
	// IfMatch is the etag that the tensor must have now: "*" where any will do, "" where there must be none. Nil is no
	// condition.
	IfMatch *string
	// Durable, where it is false, has the value be on disk some time after the answer.
	Durable *bool
	// Gradient has the gradient by the node be kept, and not its value.
	Gradient bool
}

func residentOf(stated object) (*Resident, error) {
	made := &Resident{}
	var err error
	if made.Name, err = textOf(stated["tensor_id"]); err != nil {
		return nil, within("tensor_id", err)
	}
	if made.ETag, err = textOf(stated["etag"]); err != nil {
		return nil, within("etag", err)
	}
	word, err := optional(stated["dtype"], textOf)
	if err != nil {
		return nil, within("dtype", err)
	}
	made.DType = DType(word)
	if made.Shape, err = optional(stated["shape"], shapeOf); err != nil {
		return nil, within("shape", err)
	}
	for name, member := range map[string]any{
		"bytes": &made.Bytes, "durable": &made.Durable, "written_within_ms": &made.WrittenWithinMS,
	} {
		if value := stated[name]; value != nil && json.Unmarshal(value, member) != nil {
			return nil, inputErrorf("%s is something else than it should be", name)
		}
	}
	return made, nil
}
