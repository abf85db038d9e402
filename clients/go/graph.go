package gradserve

import (
	"bytes"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"unicode/utf8"
)

// Graph is a computation graph. Every method for an op appends a node and returns its handle.
//
// The graph records the first error. Err and every call return it, so you check for errors once. One goroutine at a
// time can build a graph. Any number can then make calls with it.
type Graph struct {
	// Opset is the version of the op set. With 0, the client sends the lowest opset that has everything the graph uses.
	Opset     int
	nodes     []*Node
	functions []*GraphFunction
	// outer is the enclosing graph if this is the graph of a function.
	outer *Graph
	err   error
}

// Node is a node of a graph: a handle to use as an operand, as a key of feeds, and to look up results.
type Node struct {
	graph    *Graph
	id       int
	op       string
	operands []int
	attrs    Attrs
	name     string
}

// Attrs holds attributes of an op by name: numbers, booleans, strings, DTypes, tensors, and lists of these. Nil values
// are not sent.
type Attrs map[string]any

// Number is a number in the dtype of its op: any Go integer, with all of its digits, or a float.
type Number any

// NewGraph creates a graph without nodes.
func NewGraph() *Graph { return &Graph{} }

// Op appends any op by name, including ops that are newer than this client.
func (g *Graph) Op(op string, operands []*Node, attrs Attrs) *Node {
	node := &Node{graph: g, id: len(g.nodes), op: op, operands: make([]int, len(operands)), attrs: Attrs{}}
	for i, operand := range operands {
		if err := g.owns(operand); err != nil {
			g.fail(node, within(fmt.Sprintf("operand %d", i), err))
			continue
		}
		node.operands[i] = operand.id
	}
	for name, value := range attrs {
		stated, err := g.attribute(value)
		if err != nil {
			g.fail(node, within("attribute "+name, err))
		} else if tensor, is := stated.(*Tensor); is {
			// A copy: later changes of the tensor's memory do not change the graph.
			node.attrs[name] = &Tensor{tensor.dtype, tensor.shape, bytes.Clone(tensor.raw)}
		} else if stated != nil {
			node.attrs[name] = stated
		}
	}
	g.nodes = append(g.nodes, node)
	return node
}

// typed appends an op with a number of required operands. Absent optional operands are nil.
func (g *Graph) typed(op string, required int, operands []*Node, attrs Attrs) *Node {
	for len(operands) > required && operands[len(operands)-1] == nil {
		operands = operands[:len(operands)-1]
	}
	for name, value := range attrs {
		if isAbsent(value) {
			delete(attrs, name)
		}
	}
	return g.Op(op, operands, attrs)
}

// isAbsent reports whether an option was not set. Op checks options that can be nil.
func isAbsent(value any) bool {
	return value == "" || value == DType("")
}

// given returns the options of a call. There is at most one.
func given[T any](options []T) T {
	var stated T
	for _, each := range options {
		stated = each
	}
	return stated
}

// Set returns a pointer to a value, for optional fields: Set(true).
func Set[T any](value T) *T { return &value }

func (g *Graph) fail(node *Node, err error) {
	if g.err == nil {
		g.err = within(node.String(), err)
	}
}

// Err returns the first error in building the graph.
func (g *Graph) Err() error { return g.err }

// Len returns the number of nodes.
func (g *Graph) Len() int { return len(g.nodes) }

// Nodes returns all nodes by id.
func (g *Graph) Nodes() iter.Seq[*Node] { return slices.Values(g.nodes) }

// Node returns the node with an id, which is its position in the graph. It returns an InputError if there is none.
func (g *Graph) Node(id int) (*Node, error) {
	if id < 0 || id >= len(g.nodes) {
		return nil, inputErrorf("the graph has no node %d; its node count is %d", id, len(g.nodes))
	}
	return g.nodes[id], nil
}

// Find returns the node with a name. It returns an InputError if there is none, or several.
func (g *Graph) Find(name string) (*Node, error) {
	var found *Node
	for _, node := range g.nodes {
		if node.name != name {
			continue
		}
		if found != nil {
			return nil, inputErrorf("%v and %v have the same name", found, node)
		}
		found = node
	}
	if found == nil || name == "" {
		return nil, inputErrorf("the graph has no node named %q", name)
	}
	return found, nil
}

func (g *Graph) owns(node *Node) error {
	if node == nil {
		return inputErrorf("the node is nil")
	}
	if node.graph != g {
		return inputErrorf("%v belongs to another graph", node)
	}
	return nil
}

// ID returns the position of the node in the graph.
func (n *Node) ID() int { return n.id }

// Op returns the name of the node's op.
func (n *Node) Op() string { return n.op }

// Name returns a label for messages and lookups, or an empty string.
func (n *Node) Name() string { return n.name }

// Graph returns the graph of the node.
func (n *Node) Graph() *Graph { return n.graph }

// Named gives the node a name, for messages and lookups, and returns the node.
func (n *Node) Named(name string) *Node {
	if !utf8.ValidString(name) {
		n.graph.fail(n, inputErrorf("the name is not valid UTF-8"))
	}
	n.name = name
	return n
}

// String describes the node in messages.
func (n *Node) String() string {
	if n.name == "" {
		return fmt.Sprintf("node %d (%s)", n.id, n.op)
	}
	return fmt.Sprintf("node %d (%s, %q)", n.id, n.op, n.name)
}

// MarshalJSON returns the graph in the JSON form of the API, with tensors as base64. It fails as Err does.
func (g *Graph) MarshalJSON() ([]byte, error) {
	if err := g.sendable(); err != nil {
		return nil, err
	}
	message := message{}
	message.fields = message.graph(g, len(g.nodes))
	_, body, err := message.encoded(Base64)
	if err != nil {
		return nil, err
	}
	return body[0], nil
}

// UnmarshalJSON reads a graph in the JSON form of the API. Ops can be unknown to this client. It returns a
// MalformedError if the text is not a graph.
func (g *Graph) UnmarshalJSON(text []byte) error {
	read, err := graphFromJSON(text)
	if err != nil {
		return malformed(err)
	}
	g.Opset, g.nodes, g.functions, g.err = read.Opset, read.nodes, read.functions, nil
	for _, node := range g.nodes {
		node.graph = g
	}
	for _, function := range g.functions {
		function.graph, function.nodes.outer = g, g
	}
	return nil
}

// sendable returns an error if the graph cannot be sent.
func (g *Graph) sendable() error {
	if g.err == nil && g.outer != nil {
		return inputErrorf("the graph of a function cannot be sent by itself; send the graph that contains the function")
	}
	return g.err
}

func graphFromJSON(text []byte) (*Graph, error) {
	members, err := objectOf(text)
	if err != nil {
		return nil, within("graph", err)
	}
	graph := &Graph{}
	if graph.Opset, err = optional(members["opset"], wholeOf); err != nil {
		return nil, within("opset", err)
	}
	functions, err := optional(members["functions"], objectsOf)
	if err != nil {
		return nil, within("functions", err)
	}
	for i, stated := range functions {
		if err := graph.readFunction(stated); err != nil {
			return nil, within(fmt.Sprintf("function %d", i), err)
		}
	}
	if err := graph.readNodes(members["nodes"]); err != nil {
		return nil, err
	}
	return graph, graph.err
}

// readFunction appends a function in the JSON form of the API.
func (g *Graph) readFunction(stated object) error {
	inner := &Graph{outer: g}
	if err := inner.readNodes(stated["nodes"]); err != nil {
		return err
	}
	ids, err := shapeOf(stated["outputs"])
	if err != nil {
		return within("outputs", err)
	}
	outputs := make([]*Node, len(ids))
	for i, id := range ids {
		if outputs[i], err = inner.Node(id); err != nil {
			return within("outputs", err)
		}
	}
	name, err := optional(stated["name"], textOf)
	if err != nil {
		return within("name", err)
	}
	g.appendFunction(name, inner, outputs)
	return inner.err
}

func (g *Graph) readNodes(text json.RawMessage) error {
	nodes, err := objectsOf(text)
	if err != nil {
		return within("nodes", err)
	}
	for id, stated := range nodes {
		if err := g.read(stated); err != nil {
			return within(fmt.Sprintf("node %d", id), err)
		}
	}
	return nil
}

// read appends a node in the JSON form of the API. Attributes stay JSON, except tensors.
func (g *Graph) read(stated object) error {
	op, err := textOf(stated["op"])
	if err != nil {
		return within("op", err)
	}
	ids, err := optional(stated["operands"], shapeOf)
	if err != nil {
		return within("operands", err)
	}
	operands := make([]*Node, len(ids))
	for i, id := range ids {
		if operands[i], err = g.Node(id); err != nil {
			return within("operands", err)
		}
	}
	members, err := optional(stated["attrs"], objectOf)
	if err != nil {
		return within("attrs", err)
	}
	attrs := Attrs{}
	for name, value := range members {
		if attrs[name], err = attributeOf(value); err != nil {
			return within("attribute "+name, err)
		}
	}
	name, err := optional(stated["name"], textOf)
	if err != nil {
		return within("name", err)
	}
	g.Op(op, operands, attrs).Named(name)
	return nil
}

func attributeOf(value json.RawMessage) (any, error) {
	if members, err := objectOf(value); err == nil && members["dtype"] != nil && members["shape"] != nil {
		return tensorFromJSON(value)
	}
	return value, nil
}
