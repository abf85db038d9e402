package gradserve

import "time"

// Feeds have what stands for each node: in feeds for leaves, and likewise in cotangents, tangents and vectors.
type Feeds map[*Node]Value

// Type is what a leaf would be fed.
type Type struct {
	DType DType
	Shape []int
}

// Precision is how products and convolutions may read float32 on a GPU; a processor computes float32.
type Precision string

// The precisions, the most exact first.
const (
	PrecisionFloat32  Precision = "float32"
	PrecisionTF32x3   Precision = "tf32x3"
	PrecisionTF32     Precision = "tf32"
	PrecisionBFloat16 Precision = "bfloat16"
)

// Reduction is what is made of many examples.
type Reduction string

// The reductions: nothing, the sum over the examples, or their mean.
const (
	ReductionNone Reduction = "none"
	ReductionSum  Reduction = "sum"
	ReductionMean Reduction = "mean"
)

// Types have what each leaf would be fed.
type Types map[*Node]Type

// CallOptions are what every call takes. In all options, what is not set is not sent.
type CallOptions struct {
	// Form is how tensors travel.
	Form Form
	// Timeout is for all tries together; 0 is the client's, and what is below 0 no end.
	Timeout time.Duration
	// Idempotency says whether a call that keeps something gets an Idempotency-Key; nil is as the client has it.
	Idempotency *bool
	// Extra has fields of the request that are newer than this client.
	Extra map[string]any
}

// RunOptions are what calls take that give values back.
type RunOptions struct {
	CallOptions
	// Outputs are the nodes whose values come back; by default the last one, or the one that is differentiated.
	Outputs []*Node
	// Diagnose has the server look for the first NaN or infinity.
	Diagnose bool
	// MemoryBudget is how many bytes the call may take at most; 0 is as the server has it.
	MemoryBudget int64
	// Precision is how float32 may be read; by default as the server has it.
	Precision Precision
	// Store has values kept as resident tensors.
	Store map[*Node]Store
}

// ForwardOptions are what Forward takes.
type ForwardOptions struct{ RunOptions }

// GradientsOptions are what Gradients takes.
type GradientsOptions struct {
	RunOptions
	// Of is differentiated; by default the last node.
	Of *Node
	// Wrt are the nodes to differentiate by; by default all parameters.
	Wrt []*Node
	// Cotangent has the weights of the elements of Of.
	Cotangent *Tensor
}

// VJPOptions are what VJP takes.
type VJPOptions struct {
	RunOptions
	// Cotangents has one for each output.
	Cotangents Feeds
	Wrt        []*Node
	// Batched says that every cotangent has a leading axis.
	Batched bool
}

// JVPOptions are what JVP takes.
type JVPOptions struct {
	RunOptions
	// Tangents are of leaves; others stay.
	Tangents Feeds
}

// JacobianOptions are what Jacobian takes.
type JacobianOptions struct {
	RunOptions
	Wrt []*Node
}

// HVPOptions are what HVP takes.
type HVPOptions struct {
	RunOptions
	Of  *Node
	Wrt []*Node
	// Vectors has one for each node of Wrt.
	Vectors Feeds
}

// HessianOptions are what Hessian takes.
type HessianOptions struct {
	RunOptions
	Of  *Node
	Wrt []*Node
}

// BatchOptions are what Batch takes.
type BatchOptions struct {
	RunOptions
	Of  *Node
	Wrt []*Node
	// Mapped are the leaves whose feeds have a leading axis.
	Mapped []*Node
	// Reduce has the examples be added up, Block of them at a time; 0 is as many as the server finds right.
	Reduce Reduction
	Block  int64
}

// CheckOptions are what Check takes.
type CheckOptions struct {
	CallOptions
	Of  *Node
	Wrt []*Node
	// Directions is how many are compared, Tolerance how far apart they may be; 0 is as the server has it.
	Directions int
	Tolerance  float64
	// MemoryBudget is how many bytes the call may take at most; 0 is as the server has it.
	MemoryBudget int64
	// Precision is how float32 may be read; by default as the server has it.
	Precision Precision
}

// PlanOptions are what Plan takes.
type PlanOptions struct {
	CallOptions
	// Call is the one to plan, by its name on the wire.
	Call    string
	Of      *Node
	Wrt     []*Node
	Mapped  []*Node
	Outputs []*Node
	// Reduce and Block are those of Batch.
	Reduce Reduction
	Block  int64
	// MemoryBudget is how many bytes the call may take at most; 0 is as the server has it.
	MemoryBudget int64
	// Precision is how float32 may be read; by default as the server has it.
	Precision Precision
}

// DifferentiateOptions are what Differentiate takes.
type DifferentiateOptions struct {
	CallOptions
	Of  *Node
	Wrt []*Node
}

// RegisterOptions are what Register takes.
type RegisterOptions struct {
	// Description is for people.
	Description string
	// Form is how constants travel.
	Form Form
}

// PutOptions are what Put takes.
type PutOptions struct {
	// IfMatch is the etag that there has to be, "*" for any.
	IfMatch string
	// IfNoneMatch is the etag that there may not be: "*" demands that there is no tensor.
	IfNoneMatch string
	// Durable, where it is false, has the tensor be on disk some time after the answer.
	Durable *bool
	Form    Form
}

// GetOptions are what Get takes.
type GetOptions struct {
	// IfMatch is the etag that there has to be.
	IfMatch string
	Form    Form
}

// DeleteOptions are what Delete takes.
type DeleteOptions struct {
	// IfMatch is the etag that there has to be, "*" for any.
	IfMatch string
}

// ListOptions are what listings take.
type ListOptions struct {
	// Limit is how many entries are asked for at a time; 0 is as the server has it.
	Limit int
}
