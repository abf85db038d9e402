package gradserve

const (
	// firstOpset is the opset of a graph that states none: the server rejects newer ops and dtypes in it.
	firstOpset = 1
	// functionsOpset is the first opset with functions.
	functionsOpset = 2
)

// opsetOf returns the opset of the first nodes of a graph and its functions: the stated one, or else the lowest with
// all of their ops, attributes and dtypes. It returns 0 if the graph need not state it.
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

// opset returns the first opset with the node's op, attributes and dtypes.
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
