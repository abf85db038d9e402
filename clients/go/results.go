package gradserve

import "iter"

// Results are what an answer has for each of some nodes, in the order of the request.
type Results[T any] struct {
	nodes  []*Node
	values []T
}

// Len is how many there are.
func (r Results[T]) Len() int { return len(r.values) }

// At is the one of a place in the order of the request. It panics beyond the last, as a slice does.
func (r Results[T]) At(place int) T { return r.values[place] }

// Of is the one of a node. It fails with an InputError where the answer has none.
func (r Results[T]) Of(node *Node) (T, error) {
	return r.find(func(each *Node) bool { return each == node }, node)
}

// Named is the one of the node that has this name. It fails with an InputError where the answer has none.
func (r Results[T]) Named(name string) (T, error) {
	return r.find(func(each *Node) bool { return each.name == name && name != "" }, name)
}

func (r Results[T]) find(is func(*Node) bool, sought any) (T, error) {
	for place, node := range r.nodes {
		if is(node) {
			return r.values[place], nil
		}
	}
	var none T
	return none, inputErrorf("the answer has no result for %v", sought)
}

// All are the nodes with their results.
func (r Results[T]) All() iter.Seq2[*Node, T] {
	return func(yield func(*Node, T) bool) {
		for place, node := range r.nodes {
			if !yield(node, r.values[place]) {
				return
			}
		}
	}
}

// Blocks are what an answer has for pairs of nodes: of an output and a node of Wrt, or of a row and a column.
type Blocks struct {
	pairs  [][2]*Node
	values []*Tensor
}

// Len is how many there are.
func (b Blocks) Len() int { return len(b.values) }

// At is the one of a place in the order of the answer. It panics beyond the last, as a slice does.
func (b Blocks) At(place int) *Tensor { return b.values[place] }

// Of is the one of two nodes. It fails with an InputError where the answer has none.
func (b Blocks) Of(first, second *Node) (*Tensor, error) {
	return b.find(func(pair [2]*Node) bool { return pair == [2]*Node{first, second} }, first, second)
}

// Named is the one of the nodes that have these names. It fails with an InputError where the answer has none.
func (b Blocks) Named(first, second string) (*Tensor, error) {
	is := func(pair [2]*Node) bool {
		return first != "" && second != "" && pair[0].name == first && pair[1].name == second
	}
	return b.find(is, first, second)
}

func (b Blocks) find(is func([2]*Node) bool, first, second any) (*Tensor, error) {
	for place, pair := range b.pairs {
		if is(pair) {
			return b.values[place], nil
		}
	}
	return nil, inputErrorf("the answer has no block for %v and %v", first, second)
}

// All are the pairs of nodes with their blocks.
func (b Blocks) All() iter.Seq2[[2]*Node, *Tensor] {
	return func(yield func([2]*Node, *Tensor) bool) {
		for place, pair := range b.pairs {
			if !yield(pair, b.values[place]) {
				return
			}
		}
	}
}
