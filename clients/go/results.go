package gradserve

import "iter"

// Results holds results by node, in the order of the request.
type Results[T any] struct {
	nodes  []*Node
	values []T
}

// Len returns the number of results.
func (r Results[T]) Len() int { return len(r.values) }

// At returns the result at a position in the order of the request. It panics if the position is out of range, as a
// slice does.
func (r Results[T]) At(place int) T { return r.values[place] }

// Of returns the result of a node. It returns an InputError if the node has no result.
func (r Results[T]) Of(node *Node) (T, error) {
	return r.find(func(each *Node) bool { return each == node }, node)
}

// Named returns the result of the node with this name. It returns an InputError if there is none.
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

// All iterates over the nodes and their results.
func (r Results[T]) All() iter.Seq2[*Node, T] {
	return func(yield func(*Node, T) bool) {
		for place, node := range r.nodes {
			if !yield(node, r.values[place]) {
				return
			}
		}
	}
}

// Blocks holds results by pairs of nodes: an output and a node of Wrt, or a row and a column.
type Blocks struct {
	pairs  [][2]*Node
	values []*Tensor
}

// Len returns the number of results.
func (b Blocks) Len() int { return len(b.values) }

// At returns the block at a position in the order of the response. It panics if the position is out of range, as a
// slice does.
func (b Blocks) At(place int) *Tensor { return b.values[place] }

// Of returns the block of two nodes. It returns an InputError if they have no block.
func (b Blocks) Of(first, second *Node) (*Tensor, error) {
	return b.find(func(pair [2]*Node) bool { return pair == [2]*Node{first, second} }, first, second)
}

// Named returns the block of the nodes with these names. It returns an InputError if there is none.
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

// All iterates over the pairs of nodes and their blocks.
func (b Blocks) All() iter.Seq2[[2]*Node, *Tensor] {
	return func(yield func([2]*Node, *Tensor) bool) {
		for place, pair := range b.pairs {
			if !yield(pair, b.values[place]) {
				return
			}
		}
	}
}
