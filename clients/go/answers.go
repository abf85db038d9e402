package gradserve

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// Answer holds the fields that all results have.
type Answer struct {
	// Fields holds the members of the response by their API names, except tensors and graphs.
	Fields map[string]json.RawMessage
}

// Stats returns the run statistics: time, memory and hardware. It returns nil if the response has none.
func (a *Answer) Stats() map[string]any {
	var stats map[string]any
	_ = json.Unmarshal(a.Fields["stats"], &stats)
	return stats
}

// ForwardAnswer holds values of nodes.
type ForwardAnswer struct {
	Answer
	// Values holds the values by output.
	Values Results[*Tensor]
	// Stored holds the handles of the tensors that the call stored.
	Stored Results[*Resident]
}

// Value returns the value of the only output. It returns an InputError if there are several outputs.
func (a *ForwardAnswer) Value() (*Tensor, error) {
	if a.Values.Len() != 1 {
		return nil, inputErrorf("expected exactly one value, but the answer has %d", a.Values.Len())
	}
	return a.Values.At(0), nil
}

// GradientsAnswer holds values and gradients. Results of Batch have a leading axis, and Gradients and Disconnected may
// be empty. If Of has several elements, in a graph of opset 2, gradients of Batch are Jacobians: the shape of Of
// followed by the shape of the node.
type GradientsAnswer struct {
	ForwardAnswer
	// Gradients holds the gradients by node of Wrt, each with the shape of its node.
	Gradients Results[*Tensor]
	// Disconnected holds the nodes of Wrt that have no path to the differentiated node. Their gradients are zero.
	Disconnected []*Node
}

// JVPAnswer holds values and their derivatives along tangents.
type JVPAnswer struct {
	ForwardAnswer
	// Tangents holds the tangents by output.
	Tangents Results[*Tensor]
}

// JacobianAnswer holds values and Jacobians.
type JacobianAnswer struct {
	ForwardAnswer
	// Jacobian holds the blocks by output and node of Wrt: the shape of the output followed by the shape of the node.
	Jacobian Blocks
}

// HVPAnswer holds values, gradients and Hessian-vector products.
type HVPAnswer struct {
	GradientsAnswer
	// HVP holds the products by node of Wrt.
	HVP Results[*Tensor]
}

// HessianAnswer holds values, gradients and Hessians.
type HessianAnswer struct {
	GradientsAnswer
	// Hessian holds the blocks by pairs of nodes of Wrt: the shape of the row's node followed by the shape of the
	// column's. It is empty with LayoutMatrix.
	Hessian Blocks
	// Matrix holds all blocks as one matrix. It is nil unless the call had LayoutMatrix.
	Matrix *HessianMatrix
}

// HessianMatrix is a Hessian as one square matrix over the elements of all nodes of Wrt. Nodes are in the order of Wrt,
// the elements of a node in row-major order.
type HessianMatrix struct {
	Tensor *Tensor
	// Offsets holds the place of each node.
	Offsets Results[NodeOffset]
}

// NodeOffset is the place of a node in a matrix: it has Size rows and columns (the number of its elements), starting at
// Offset.
type NodeOffset struct {
	Offset int
	Size   int
}

// CheckAnswer holds the result of a gradient check: how far gradients are from central differences.
type CheckAnswer struct {
	Answer
	// Passed reports whether every node was compared and is within the tolerance.
	Passed bool
	// Errors holds the relative errors, by node, of the nodes that were compared.
	Errors Results[float64]
	// Uncertified holds the reasons, by node, why the other nodes were not compared.
	Uncertified Results[string]
}

// PlanAnswer holds the dry run of a call: its estimates are in Fields.
type PlanAnswer struct {
	Answer
	// Admitted reports whether the call is within the server's limits.
	Admitted bool
}

// DifferentiateAnswer holds the gradient as a graph.
type DifferentiateAnswer struct {
	Answer
	// Graph begins with the nodes of the graph that was sent.
	Graph *Graph
	// Gradients holds the nodes of Graph that compute the gradients, by node of Wrt in the graph that was sent.
	Gradients Results[*Node]
	// Disconnected holds the nodes of Wrt, in the graph that was sent, that have no path to the differentiated node.
	Disconnected []*Node
	sent         *Graph
}

// Find returns the node of this graph that corresponds to a node of the graph that was sent.
func (a *DifferentiateAnswer) Find(node *Node) (*Node, error) {
	if err := a.sent.owns(node); err != nil {
		return nil, err
	}
	return a.Graph.Node(node.id)
}

// reader reads the response to a call on a graph, and records the first error.
type reader struct {
	graph  *Graph
	fields object
	beside map[string]*Tensor
	err    error
}

// list returns the entries of a member.
func (r *reader) list(name string) []object {
	if r.err != nil {
		return nil
	}
	entries, err := objectsOf(r.fields[name])
	r.keep(name, err)
	return entries
}

func (r *reader) keep(part string, err error) {
	if r.err == nil {
		r.err = within(part, err)
	}
}

func (r *reader) nodeOf(value json.RawMessage) *Node {
	id, err := wholeOf(value)
	if err == nil {
		var node *Node
		if node, err = r.graph.Node(id); err == nil {
			return node
		}
	}
	r.keep("node", err)
	return nil
}

// resultsOf returns the entries of a member with their nodes.
func resultsOf[T any](r *reader, name string, read func(object) (T, error)) (results Results[T]) {
	for _, entry := range r.list(name) {
		node := r.nodeOf(entry["node"])
		value, err := read(entry)
		r.keep(name, err)
		results.nodes, results.values = append(results.nodes, node), append(results.values, value)
	}
	return results
}

// tensors returns the tensors of a member, which are in its entries or beside the JSON.
func (r *reader) tensors(name string) Results[*Tensor] {
	results := resultsOf(r, name, func(entry object) (*Tensor, error) { return r.tensor(entry, name, "node") })
	delete(r.fields, name)
	return results
}

func (r *reader) blocks(name, first, second string) (blocks Blocks) {
	for _, entry := range r.list(name) {
		pair := [2]*Node{r.nodeOf(entry[first]), r.nodeOf(entry[second])}
		tensor, err := r.tensor(entry, name, first, second)
		r.keep(name, err)
		blocks.pairs, blocks.values = append(blocks.pairs, pair), append(blocks.values, tensor)
	}
	delete(r.fields, name)
	return blocks
}

// matrix returns the matrix of a Hessian, or nil if there is none.
func (r *reader) matrix(name string) *HessianMatrix {
	stated, err := optional(r.fields[name], objectOf)
	r.keep(name, err)
	if stated == nil {
		return nil
	}
	inner := reader{graph: r.graph, fields: stated}
	offsets := resultsOf(&inner, "offsets", offsetOf)
	r.keep(name, inner.err)
	tensor, err := r.tensor(stated, name)
	r.keep(name, err)
	delete(r.fields, name)
	return &HessianMatrix{Tensor: tensor, Offsets: offsets}
}

func offsetOf(entry object) (place NodeOffset, err error) {
	if place.Offset, err = wholeOf(entry["offset"]); err == nil {
		place.Size, err = wholeOf(entry["size"])
	}
	return place, err
}

func (r *reader) tensor(entry object, name string, nodes ...string) (*Tensor, error) {
	if stated := entry["tensor"]; stated != nil {
		return tensorFromJSON(stated)
	}
	place := name
	for _, node := range nodes {
		place += "." + string(entry[node])
	}
	if tensor := r.beside[place]; tensor != nil {
		return tensor, nil
	}
	return nil, inputErrorf("tensor %s is missing", place)
}

func (r *reader) nodes(name string) (nodes []*Node) {
	ids, err := optional(r.fields[name], shapeOf)
	r.keep(name, err)
	for _, id := range ids {
		nodes = append(nodes, r.nodeOf(json.RawMessage(strconv.Itoa(id))))
	}
	return nodes
}

func (r *reader) truth(name string) (truth bool) {
	if json.Unmarshal(r.fields[name], &truth) != nil {
		r.keep(name, inputErrorf("expected true or false"))
	}
	return truth
}

func (r *reader) answer() Answer { return Answer{Fields: r.fields} }

func (r *reader) forward() ForwardAnswer {
	answer := ForwardAnswer{Answer: r.answer(), Values: r.tensors("values")}
	if r.fields["stored"] != nil {
		answer.Stored = resultsOf(r, "stored", residentOf)
	}
	return answer
}

func (r *reader) gradients() GradientsAnswer {
	return GradientsAnswer{
		ForwardAnswer: r.forward(),
		Gradients:     r.tensors("gradients"),
		Disconnected:  r.nodes("disconnected"),
	}
}

// batched returns gradients, which are absent if there is nothing to differentiate with respect to.
func (r *reader) batched() GradientsAnswer {
	if r.fields["gradients"] == nil {
		r.fields["gradients"] = json.RawMessage("[]")
	}
	return r.gradients()
}

func (r *reader) jvp() JVPAnswer {
	return JVPAnswer{ForwardAnswer: r.forward(), Tangents: r.tensors("tangents")}
}

func (r *reader) jacobian() JacobianAnswer {
	return JacobianAnswer{ForwardAnswer: r.forward(), Jacobian: r.blocks("jacobian", "of", "wrt")}
}

func (r *reader) hvp() HVPAnswer {
	return HVPAnswer{GradientsAnswer: r.gradients(), HVP: r.tensors("hvp")}
}

func (r *reader) hessian() HessianAnswer {
	return HessianAnswer{
		GradientsAnswer: r.gradients(),
		Hessian:         r.blocks("hessian", "row", "column"),
		Matrix:          r.matrix("matrix"),
	}
}

func (r *reader) check() CheckAnswer {
	return CheckAnswer{
		Answer: r.answer(),
		Passed: r.truth("passed"),
		Errors: resultsOf(r, "errors", func(entry object) (number float64, err error) {
			if json.Unmarshal(entry["relative_error"], &number) != nil {
				err = inputErrorf("relative_error is not a number")
			}
			return number, err
		}),
		Uncertified: resultsOf(r, "uncertified", func(entry object) (string, error) { return textOf(entry["reason"]) }),
	}
}

func (r *reader) plan() PlanAnswer {
	return PlanAnswer{Answer: r.answer(), Admitted: r.truth("admitted")}
}

func (r *reader) differentiate() DifferentiateAnswer {
	graph, err := graphFromJSON(r.fields["graph"])
	r.keep("graph", err)
	delete(r.fields, "graph")
	if r.err == nil {
		r.keep("graph", placeConstants(graph, r.beside))
	}
	answer := DifferentiateAnswer{Answer: r.answer(), Graph: graph, sent: r.graph}
	answer.Gradients = resultsOf(r, "gradients", func(entry object) (*Node, error) {
		id, err := wholeOf(entry["gradient_node"])
		if err != nil {
			return nil, err
		}
		return graph.Node(id)
	})
	answer.Disconnected = r.nodes("disconnected")
	return answer
}

// placeConstants puts tensors that were sent beside the JSON into the nodes of a graph. It ignores tensors whose role
// it does not know.
func placeConstants(graph *Graph, beside map[string]*Tensor) error {
	if err := graph.placeConstants(beside, ""); err != nil {
		return err
	}
	for _, function := range graph.functions {
		if err := function.nodes.placeConstants(beside, fmt.Sprintf("functions.%d.", function.index)); err != nil {
			return err
		}
	}
	return nil
}

// placeConstants puts tensors whose names begin with where and "constants." into the nodes of one graph or function.
func (g *Graph) placeConstants(beside map[string]*Tensor, where string) error {
	for place, tensor := range beside {
		stated, is := strings.CutPrefix(place, where+"constants.")
		if !is {
			continue
		}
		id, err := strconv.Atoi(stated)
		if err != nil {
			return inputErrorf("%q is not a valid tensor name", place)
		}
		node, err := g.Node(id)
		if err != nil {
			return within(fmt.Sprintf("tensor %q", place), err)
		}
		node.attrs["value"] = tensor
	}
	return nil
}
