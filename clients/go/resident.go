package gradserve

import "encoding/json"

// Value is a value that calls accept for a node: a Tensor, a Resident, or Rows of one.
type Value interface{ isValue() }

// Resident is a handle of one version of a resident tensor. Pass it to calls in place of a Tensor.
//
// A call reads the version that is stored when it runs. ETag identifies the version of this handle, for conditions.
// Fields that the server did not report are empty or nil: dtype, shape and size are known for tensors that were put or
// listed, not for tensors that a call stored.
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

// Rows returns rows start to stop (exclusive) of the leading axis. Calls accept them in place of a tensor.
func (r *Resident) Rows(start, stop int) *Rows {
	return &Rows{Name: r.Name, Start: start, Stop: stop}
}

// Rows are rows Start to Stop (exclusive) of a resident tensor, along its leading axis.
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

// Store names the tensor that a call stores the value of a node as.
type Store struct {
	Name string
	// IfMatch is the etag that the tensor must have now, "*" for any, or "" if it must not exist. Nil means no
	// condition.
	IfMatch *string
	// Durable, if false, lets the server respond before the value is on disk.
	Durable *bool
	// Gradient stores the gradient with respect to the node instead of its value.
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
			return nil, inputErrorf("%s has the wrong type", name)
		}
	}
	return made, nil
}
