package gradserve

const (
	// firstOpset is of a graph that does not say: a server has no later op or dtype in it.
	firstOpset = 1
	// functionsOpset is since when graphs have functions.
	functionsOpset = 2
)

// opsetOf is what the first nodes of a graph, and its functions, say that they are of: what is stated, or else the first
// that has all of their ops, attributes and dtypes; 0 where nothing is to be said.
func opsetOf(graph *Graph, count int) int {
	if graph.Opset != 0 {
		return graph.Opset
	}
	needed := firstOpset
	for _, node := range graph.nodes[:count] {
		needed = max(needed, node.opset())
	}
	for _, function := range graph.functions {
		needed = max(needed, functionsOpset)
		for _, node := range function.nodes.nodes {
			needed = max(needed, node.opset())
		}
	}
	if needed == firstOpset {
		return 0
	}
	return needed
}

// opset is the first that has the node's op, attributes and dtypes.
func (n *Node) opset() int {
	needed := max(firstOpset, opsSince[n.op])
	for name, value := range n.attrs {
		needed = max(needed, opsSince[n.op+"."+name])
		switch stated := value.(type) {
		case *Tensor:
			needed = max(needed, elementTypes[stated.dtype].since)
		case string:
			if name == "dtype" {
				needed = max(needed, elementTypes[DType(stated)].since)
			}
		}
	}
	return needed
}
