package gradserve

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// Answer is what all answers have.
type Answer struct {
	// Fields has what came, by its names on the wire, but for tensors and graphs.
	Fields map[string]json.RawMessage
}

// Stats is the receipt: what running it took, and on what. Nil where there is none.
func (a *Answer) Stats() map[string]any {
	var stats map[string]any
	_ = json.Unmarshal(a.Fields["stats"], &stats)
	return stats
}

// ForwardAnswer has values of nodes.
type ForwardAnswer struct {
	Answer
	// Values are those of the outputs.
	Values Results[*Tensor]
	// Stored are the handles of what the call had the server keep.
	Stored Results[*Resident]
}

// Value is that of the only output. It fails with an InputError where there are several.
func (a *ForwardAnswer) Value() (*Tensor, error) {
	if a.Values.Len() != 1 {
		return nil, inputErrorf("the answer has %d values, and not one", a.Values.Len())
	}
	return a.Values.At(0), nil
}

// GradientsAnswer has values and gradients. Of Batch, all have a leading axis, and gradients and disconnected may be
// none; where Of has several elements, in a graph of opset 2, gradients are Jacobians: its shape, then the node's.
type GradientsAnswer struct {
	ForwardAnswer
	// Gradients are by nodes of Wrt, each of its node's shape.
	Gradients Results[*Tensor]
	// Disconnected are the nodes of Wrt without a path to what was differentiated; their gradients are zeros.
	Disconnected []*Node
}

// JVPAnswer has values, and their derivatives along tangents.
type JVPAnswer struct {
	ForwardAnswer
	// Tangents are by outputs.
	Tangents Results[*Tensor]
}

// JacobianAnswer has values and Jacobians.
type JacobianAnswer struct {
	ForwardAnswer
	// Jacobian is by output and node of Wrt: of the shape of the one, then that of the other.
	Jacobian Blocks
}

// HVPAnswer has values, gradients, and the Hessian times vectors.
type HVPAnswer struct {
	GradientsAnswer
	// HVP is by nodes of Wrt.
	HVP Results[*Tensor]
}

// HessianAnswer has values, gradients and Hessians.
type HessianAnswer struct {
	GradientsAnswer
	// Hessian is by pairs of nodes of Wrt: of the shape of the one, then that of the other.
	Hessian Blocks
}

// CheckAnswer says how far gradients are from central differences.
type CheckAnswer struct {
	Answer
	// Passed says whether every node was compared, and is within the tolerance.
	Passed bool
	// Errors are relative, by the nodes that were compared.
	Errors Results[float64]
	// Uncertified has why the others were not.
	Uncertified Results[string]
}

// PlanAnswer says what a call would take, in Fields.
type PlanAnswer struct {
	Answer
	// Admitted says whether the call would be within the server's limits.
	Admitted bool
}

// DifferentiateAnswer is the gradient as a graph.
type DifferentiateAnswer struct {
	Answer
	// Graph has as its first nodes those that were sent.
	Graph *Graph
	// Gradients are by nodes of Wrt, as they were sent: the nodes of Graph where they are computed.
	Gradients Results[*Node]
	// Disconnected are the nodes of Wrt, as they were sent, without a path to what was differentiated.
	Disconnected []*Node
	sent         *Graph
}

// Find is what a node of the graph that was sent is in this one.
func (a *DifferentiateAnswer) Find(node *Node) (*Node, error) {
	if err := a.sent.owns(node); err != nil {
		return nil, err
	}
	return a.Graph.Node(node.id)
}

// reader reads an answer to a call on a graph; what is wrong with it is kept.
type reader struct {
	graph  *Graph
	fields object
	beside map[string]*Tensor
	err    error
}

// list are the entries of a member.
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
	r.keep("a node", err)
	return nil
}

// resultsOf are the entries of a member, each with its node.
func resultsOf[T any](r *reader, name string, read func(object) (T, error)) (results Results[T]) {
	for _, entry := range r.list(name) {
		node := r.nodeOf(entry["node"])
		value, err := read(entry)
		r.keep(name, err)
		results.nodes, results.values = append(results.nodes, node), append(results.values, value)
	}
	return results
}

// tensors are those of a member, each in its entry or beside the answer.
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
	return nil, inputErrorf("there is no tensor %s", place)
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
		r.keep(name, inputErrorf("it is neither true nor false"))
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

// batched are gradients that may be none, where there is nothing to differentiate by.
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
	return HessianAnswer{GradientsAnswer: r.gradients(), Hessian: r.blocks("hessian", "row", "column")}
}

func (r *reader) check() CheckAnswer {
	return CheckAnswer{
		Answer: r.answer(),
		Passed: r.truth("passed"),
		Errors: resultsOf(r, "errors", func(entry object) (number float64, err error) {
			if json.Unmarshal(entry["relative_error"], &number) != nil {
				err = inputErrorf("relative_error is no number")
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

// placeConstants puts the tensors beside a graph where they belong. Those whose role is not known are passed over.
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

// placeConstants puts those that are called so, behind where the graph is.
func (g *Graph) placeConstants(beside map[string]*Tensor, where string) error {
	for place, tensor := range beside {
		stated, is := strings.CutPrefix(place, where+"constants.")
		if !is {
			continue
		}
		id, err := strconv.Atoi(stated)
		if err != nil {
			return inputErrorf("there is a tensor %q beside it", place)
		}
		node, err := g.Node(id)
		if err != nil {
			return within(fmt.Sprintf("the tensor %q beside it", place), err)
		}
		node.attrs["value"] = tensor
	}
	return nil
}
