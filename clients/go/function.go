package gradserve

import "fmt"

// GraphFunction is a function of a graph: the handle under which ops run it. It sees nothing of the graph but what is
// passed to it.
type GraphFunction struct {
	graph   *Graph
	index   int
	name    string
	nodes   *Graph
	outputs []*Node
}

// Function is a function for ops of this graph. The body is given a graph of the function's own, whose inputs are the
// parameters, and returns the outputs. Nodes of other graphs are none of it. Functions that it makes itself are made
// before it. What goes wrong in it has gone wrong in this graph.
func (g *Graph) Function(name string, body func(*Graph) []*Node) *GraphFunction {
	if g.outer != nil {
		return g.outer.Function(name, body)
	}
	inner := &Graph{outer: g}
	outputs := body(inner)
	made := g.appendFunction(name, inner, outputs)
	for i, output := range outputs {
		if err := inner.owns(output); err != nil && inner.err == nil {
			inner.err = within(fmt.Sprintf("output %d", i), err)
		}
	}
	if inner.err != nil && g.err == nil {
		g.err = within(made.String(), inner.err)
	}
	return made
}

func (g *Graph) appendFunction(name string, nodes *Graph, outputs []*Node) *GraphFunction {
	made := &GraphFunction{graph: g, index: len(g.functions), name: name, nodes: nodes, outputs: outputs}
	g.functions = append(g.functions, made)
	return made
}

// Index is the place of the function in the list of functions.
func (f *GraphFunction) Index() int { return f.index }

// Name is a label for messages, if there is one.
func (f *GraphFunction) Name() string { return f.name }

// Parameters are its inputs, in the order in which it is given operands.
func (f *GraphFunction) Parameters() []*Node {
	var parameters []*Node
	for _, node := range f.nodes.nodes {
		if node.op == "input" {
			parameters = append(parameters, node)
		}
	}
	return parameters
}

// Outputs are nodes of its own, in the order of its results.
func (f *GraphFunction) Outputs() []*Node { return f.outputs }

// String names the function as messages do.
func (f *GraphFunction) String() string {
	if f.name == "" {
		return fmt.Sprintf("function %d", f.index)
	}
	return fmt.Sprintf("function %d (%q)", f.index, f.name)
}

// attribute is what an attribute is stated as: of a function its index, and of all else the value.
func (g *Graph) attribute(value any) (any, error) {
	function, is := value.(*GraphFunction)
	if !is || function == nil {
		return plain(value)
	}
	if function.graph != g && function.graph != g.outer {
		return nil, inputErrorf("%v is a function of another graph", function)
	}
	return function.index, nil
}
