package gradserve

import "time"

// Feeds maps nodes to values: leaves to feeds, and likewise nodes to cotangents, tangents and vectors.
type Feeds map[*Node]Value

// Type is the dtype and shape of a leaf.
type Type struct {
	DType DType
	Shape []int
}

// Precision is the precision of float32 matrix products and convolutions on a GPU. CPUs always compute in float32.
type Precision string

// The precisions, most exact first.
const (
	PrecisionFloat32  Precision = "float32"
	PrecisionTF32x3   Precision = "tf32x3"
	PrecisionTF32     Precision = "tf32"
	PrecisionBFloat16 Precision = "bfloat16"
)

// HessianLayout is the layout of a Hessian.
type HessianLayout string

// The layouts: a block for each pair of nodes, or one matrix over all nodes of Wrt.
const (
	LayoutBlocks HessianLayout = "blocks"
	LayoutMatrix HessianLayout = "matrix"
)

// Reduction is how the results of many examples are combined.
type Reduction string

// The reductions: none, the sum over the examples, or their mean.
const (
	ReductionNone Reduction = "none"
	ReductionSum  Reduction = "sum"
	ReductionMean Reduction = "mean"
)

// Types maps leaves to their types.
type Types map[*Node]Type

// CallOptions are the options of every call. Fields that you do not set are not sent.
type CallOptions struct {
	// Form is the encoding of tensors.
	Form Form
	// Timeout is the time limit for all attempts together. 0 means the client's timeout, a negative value means no
	// limit.
	Timeout time.Duration
	// Idempotency determines whether a call that stores something sends an Idempotency-Key. Nil means the client's
	// setting.
	Idempotency *bool
	// Extra holds fields of the request that are newer than this client.
	Extra map[string]any
}

// RunOptions are the options of calls that return values.
type RunOptions struct {
	CallOptions
	// Outputs are the nodes whose values are returned; by default the last one, or the differentiated one.
	Outputs []*Node
	// Diagnose reports the first NaN or infinity.
	Diagnose bool
	// MemoryBudget limits the memory of the call in bytes. 0 means the server's limit.
	MemoryBudget int64
	// Precision is the precision of float32 computations. It defaults to the server's setting.
	Precision Precision
	// Store maps nodes to the resident tensors that their values are stored as.
	Store map[*Node]Store
}

// ForwardOptions are the options of Forward.
type ForwardOptions struct{ RunOptions }

// GradientsOptions are the options of Gradients.
type GradientsOptions struct {
	RunOptions
	// Of is the node to differentiate; by default the last one.
	Of *Node
	// Wrt are the nodes to differentiate with respect to; by default all parameters.
	Wrt []*Node
	// Cotangent holds the weights of the elements of Of.
	Cotangent *Tensor
}

// VJPOptions are the options of VJP.
type VJPOptions struct {
	RunOptions
	// Cotangents holds a cotangent for each output.
	Cotangents Feeds
	Wrt        []*Node
	// Batched means that every cotangent has a leading axis.
	Batched bool
}

// JVPOptions are the options of JVP.
type JVPOptions struct {
	RunOptions
	// Tangents holds tangents of leaves. Leaves without a tangent are held constant.
	Tangents Feeds
}

// JacobianOptions are the options of Jacobian.
type JacobianOptions struct {
	RunOptions
	Wrt []*Node
}

// HVPOptions are the options of HVP.
type HVPOptions struct {
	RunOptions
	Of  *Node
	Wrt []*Node
	// Vectors holds a vector for each node of Wrt.
	Vectors Feeds
}

// HessianOptions are the options of Hessian.
type HessianOptions struct {
	RunOptions
	Of  *Node
	Wrt []*Node
	// Layout is LayoutBlocks by default. For LayoutMatrix, the nodes of Wrt must have the same dtype.
	Layout HessianLayout
}

// BatchOptions are the options of Batch.
type BatchOptions struct {
	RunOptions
	Of  *Node
	Wrt []*Node
	// Mapped are the leaves whose feeds have a leading axis.
	Mapped []*Node
	// Reduce combines the results of the examples, Block examples at a time. With a Block of 0, the server chooses the
	// block size.
	Reduce Reduction
	Block  int64
}

// CheckOptions are the options of Check.
type CheckOptions struct {
	CallOptions
	Of  *Node
	Wrt []*Node
	// Directions is the number of directions to compare, Tolerance the largest error that passes. 0 means the server's
	// default.
	Directions int
	Tolerance  float64
	// MemoryBudget limits the memory of the call in bytes. 0 means the server's limit.
	MemoryBudget int64
	// Precision is the precision of float32 computations. It defaults to the server's setting.
	Precision Precision
}

// PlanOptions are the options of Plan.
type PlanOptions struct {
	CallOptions
	// Call is the API name of the call to plan.
	Call    string
	Of      *Node
	Wrt     []*Node
	Mapped  []*Node
	Outputs []*Node
	// Reduce and Block are as in BatchOptions.
	Reduce Reduction
	Block  int64
	// MemoryBudget limits the memory of the call in bytes. 0 means the server's limit.
	MemoryBudget int64
	// Precision is the precision of float32 computations. It defaults to the server's setting.
	Precision Precision
}

// DifferentiateOptions are the options of Differentiate.
type DifferentiateOptions struct {
	CallOptions
	Of  *Node
	Wrt []*Node
}

// RegisterOptions are the options of Register.
type RegisterOptions struct {
	// Description is for people.
	Description string
	// Form is the encoding of constants.
	Form Form
}

// PutOptions are the options of Put.
type PutOptions struct {
	// IfMatch is the etag that the stored version must have, or "*" for any.
	IfMatch string
	// IfNoneMatch is the etag that the stored version must not have. "*" requires that the tensor does not exist.
	IfNoneMatch string
	// Durable, if false, lets the server respond before the tensor is on disk.
	Durable *bool
	Form    Form
}

// GetOptions are the options of Get.
type GetOptions struct {
	// IfMatch is the etag that the stored version must have.
	IfMatch string
	Form    Form
}

// DeleteOptions are the options of Delete.
type DeleteOptions struct {
	// IfMatch is the etag that the stored version must have, or "*" for any.
	IfMatch string
}

// ListOptions are the options of listings.
type ListOptions struct {
	// Limit is the number of entries per page. 0 means the server's default.
	Limit int
}
