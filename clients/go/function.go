package gradserve

import "fmt"

// GraphFunction is a function of a graph: a handle to pass to the ops that run it. A function sees only the operands
// that the op passes.
type GraphFunction struct {
	graph   *Graph
	index   int
	name    string
	nodes   *Graph
	outputs []*Node
}

// Function adds a function that ops of this graph can run. body receives the function's own graph, whose inputs are the
// parameters, and returns the outputs. It cannot use nodes of other graphs. Functions that it defines itself are added
// before it. An error in the function is an error of this graph.
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

// Index returns the index of the function in the graph.
func (f *GraphFunction) Index() int { return f.index }

// Name returns a label for messages, or an empty string.
func (f *GraphFunction) Name() string { return f.name }

// Parameters returns the inputs of the function, in the order of the operands.
func (f *GraphFunction) Parameters() []*Node {
	var parameters []*Node
	for _, node := range f.nodes.nodes {
		if node.op == "input" {
			parameters = append(parameters, node)
		}
	}
	return parameters
}

// Outputs returns nodes of the function, in the order of the results.
func (f *GraphFunction) Outputs() []*Node { return f.outputs }

// String describes the function in messages.
func (f *GraphFunction) String() string {
	if f.name == "" {
		return fmt.Sprintf("function %d", f.index)
	}
	return fmt.Sprintf("function %d (%q)", f.index, f.name)
}

// attribute returns an attribute in its JSON form: the index of a function, or the value itself.
func (g *Graph) attribute(value any) (any, error) {
	function, is := value.(*GraphFunction)
	if !is || function == nil {
		return plain(value)
	}
	if function.graph != g && function.graph != g.outer {
		return nil, inputErrorf("%v belongs to another graph", function)
	}
	return function.index, nil
}
