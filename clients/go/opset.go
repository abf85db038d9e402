package gradserve

// firstOpset is of a graph that does not say: a server has no later op or dtype in it.
const firstOpset = 1

// opsetOf is what a graph of these nodes says it is of: what is stated, or else the first that has all of their ops and
// dtypes; 0 where nothing is to be said.
func opsetOf(stated int, nodes []*Node) int {
	if stated != 0 {
		return stated
	}
	needed := firstOpset
	for _, node := range nodes {
		needed = max(needed, node.opset())
	}
	if needed == firstOpset {
		return 0
	}
	return needed
}

// opset is the first that has the node's op and dtypes.
func (n *Node) opset() int {
	needed := max(firstOpset, opsSince[n.op])
	for name, value := range n.attrs {
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
