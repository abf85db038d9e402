package gradserve

import (
	"bytes"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"unicode/utf8"
)

// Graph is a computation graph. Every method that is an op appends a node and returns its handle.
//
// What goes wrong is kept, and said by Err and by every call: a program looks at errors once. A graph is built by one
// goroutine at a time; when it is built, any number may call with it.
type Graph struct {
	// Opset is the version of the set of ops. With 0 the graph says by itself which it needs, where that is not the
	// first.
	Opset     int
	nodes     []*Node
	functions []*GraphFunction
	// outer is the graph that it is a function of, if it is one.
	outer *Graph
	err   error
}

// Node is a node of a graph: the handle under which it is an operand, is fed, and has its results looked up.
type Node struct {
	graph    *Graph
	id       int
	op       string
	operands []int
	attrs    Attrs
	name     string
}

// Attrs are attributes of an op, by name: numbers, booleans, strings, DTypes, tensors, and lists of these. What is nil
// is not stated.
type Attrs map[string]any

// Number is a number in the dtype of its op: any of Go's integers, which keep all of their digits, or a float.
type Number any

// NewGraph is a graph without nodes.
func NewGraph() *Graph { return &Graph{} }

// Op appends any op by its name, also one that is newer than this client.
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
			// What happens to its memory later is none of the graph's.
			node.attrs[name] = &Tensor{tensor.dtype, tensor.shape, bytes.Clone(tensor.raw)}
		} else if stated != nil {
			node.attrs[name] = stated
		}
	}
	g.nodes = append(g.nodes, node)
	return node
}

// typed appends an op of which so many operands are required, the others being nil where they are absent.
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

// isAbsent says whether a field of options was left as it was; that of what can be nil is seen by Op.
func isAbsent(value any) bool {
	return value == "" || value == DType("")
}

// given are the options of a call, which are at most one.
func given[T any](options []T) T {
	var stated T
	for _, each := range options {
		stated = each
	}
	return stated
}

// Set is a value of options that is stated, where it is optional: Set(true).
func Set[T any](value T) *T { return &value }

func (g *Graph) fail(node *Node, err error) {
	if g.err == nil {
		g.err = within(node.String(), err)
	}
}

// Err is the first thing that went wrong in building the graph.
func (g *Graph) Err() error { return g.err }

// Len is the number of nodes.
func (g *Graph) Len() int { return len(g.nodes) }

// Nodes are all nodes, by id.
func (g *Graph) Nodes() iter.Seq[*Node] { return slices.Values(g.nodes) }

// Node is the node of an id, which is its place in the list of nodes. It fails with an InputError where there is none.
func (g *Graph) Node(id int) (*Node, error) {
	if id < 0 || id >= len(g.nodes) {
		return nil, inputErrorf("there is no node %d in a graph of %d", id, len(g.nodes))
	}
	return g.nodes[id], nil
}

// Find is the node of a name. It fails with an InputError where there is none, or there are several.
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
		return nil, inputErrorf("no node of the graph is called %q", name)
	}
	return found, nil
}

func (g *Graph) owns(node *Node) error {
	if node == nil {
		return inputErrorf("there is no node (it is nil)")
	}
	if node.graph != g {
		return inputErrorf("%v is a node of another graph", node)
	}
	return nil
}

// ID is the place of the node in the list of nodes.
func (n *Node) ID() int { return n.id }

// Op is the name of the node's op.
func (n *Node) Op() string { return n.op }

// Name is a label for messages and look-ups, if there is one.
func (n *Node) Name() string { return n.name }

// Graph is the graph that the node is of.
func (n *Node) Graph() *Graph { return n.graph }

// Named gives the node a name, which refers to nothing, and returns it.
func (n *Node) Named(name string) *Node {
	if !utf8.ValidString(name) {
		n.graph.fail(n, inputErrorf("its name is not in UTF-8"))
	}
	n.name = name
	return n
}

// String names the node as messages do.
func (n *Node) String() string {
	if n.name == "" {
		return fmt.Sprintf("node %d (%s)", n.id, n.op)
	}
	return fmt.Sprintf("node %d (%s, %q)", n.id, n.op, n.name)
}

// MarshalJSON is the graph as it would be sent, its tensors in it as base64. It fails as Err does.
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

// UnmarshalJSON reads a graph as the wire has it, whatever its ops are. It fails with a MalformedError.
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

// sendable says why a graph cannot be sent.
func (g *Graph) sendable() error {
	if g.err == nil && g.outer != nil {
		return inputErrorf("the graph of a function is sent within the graph around it, and not by itself")
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
		return nil, within("opset of a graph", err)
	}
	functions, err := optional(members["functions"], objectsOf)
	if err != nil {
		return nil, within("functions of a graph", err)
	}
	for _, stated := range functions {
		if err := graph.readFunction(stated); err != nil {
			return nil, within("a function of a graph", err)
		}
	}
	if err := graph.readNodes(members["nodes"]); err != nil {
		return nil, err
	}
	return graph, graph.err
}

// readFunction appends a function as the wire has it.
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
			return err
		}
	}
	name, err := optional(stated["name"], textOf)
	if err != nil {
		return err
	}
	g.appendFunction(name, inner, outputs)
	return inner.err
}

func (g *Graph) readNodes(text json.RawMessage) error {
	nodes, err := objectsOf(text)
	if err != nil {
		return within("nodes of a graph", err)
	}
	for _, stated := range nodes {
		if err := g.read(stated); err != nil {
			return within("a node of a graph", err)
		}
	}
	return nil
}

// read appends a node as the wire has it. Its attributes stay as they are written, but for tensors.
func (g *Graph) read(stated object) error {
	op, err := textOf(stated["op"])
	if err != nil {
		return err
	}
	ids, err := optional(stated["operands"], shapeOf)
	if err != nil {
		return err
	}
	operands := make([]*Node, len(ids))
	for i, id := range ids {
		if operands[i], err = g.Node(id); err != nil {
			return err
		}
	}
	members, err := optional(stated["attrs"], func(text json.RawMessage) (object, error) { return objectOf(text) })
	if err != nil {
		return err
	}
	attrs := Attrs{}
	for name, value := range members {
		if attrs[name], err = attributeOf(value); err != nil {
			return within(name, err)
		}
	}
	name, err := optional(stated["name"], textOf)
	if err != nil {
		return err
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
