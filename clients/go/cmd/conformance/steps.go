package main

import (
	"encoding/json"
	"strconv"
	"strings"

	gs "gradserve.example/gradserve"
)

// built is a graph of a case.
type built struct {
	Steps     []step     `json:"steps"`
	Functions []function `json:"functions"`
	Opset     int        `json:"opset"`
}

// function is a function of a case.
type function struct {
	Name    string            `json:"name"`
	Steps   []step            `json:"steps"`
	Outputs []json.RawMessage `json:"outputs"`
}

// step is one call of the builder.
type step struct {
	Op       string                     `json:"op"`
	Operands []json.RawMessage          `json:"operands"`
	Attrs    map[string]json.RawMessage `json:"attrs"`
	Name     string                     `json:"name"`
	// nodes are the operands, functions are those of the enclosing graph, and err is the error of an invalid attribute.
	nodes     []*gs.Node
	functions []*gs.GraphFunction
	err       error
}

// builder holds the objects that steps refer to: their graph, the enclosing graph and its functions.
type builder struct {
	graph, outer *gs.Graph
	functions    []*gs.GraphFunction
}

// graphOf builds the graph of some steps.
func graphOf(stated built) (*gs.Graph, error) {
	graph := gs.NewGraph()
	graph.Opset = stated.Opset
	outer := builder{graph: graph, outer: graph}
	for _, each := range stated.Functions {
		made, err := outer.function(each)
		if err != nil {
			return nil, err
		}
		outer.functions = append(outer.functions, made)
	}
	return graph, outer.append(stated.Steps)
}

func (b builder) function(stated function) (*gs.GraphFunction, error) {
	var err error
	made := b.graph.Function(stated.Name, func(graph *gs.Graph) []*gs.Node {
		inner := builder{graph: graph, outer: b.graph, functions: b.functions}
		if err = inner.append(stated.Steps); err != nil {
			return nil
		}
		var outputs []*gs.Node
		outputs, err = inner.nodes(stated.Outputs)
		return outputs
	})
	return made, err
}

// append calls the methods of steps.
func (b builder) append(steps []step) error {
	for _, each := range steps {
		nodes, err := b.nodes(each.Operands)
		if err != nil {
			return err
		}
		each.nodes, each.functions = nodes, b.functions
		made := each.appended(b.graph)
		if each.err != nil {
			return each.err
		}
		if each.Name != "" {
			made.Named(each.Name)
		}
	}
	return nil
}

// nodes returns the nodes at some positions. "outer" stands for a node of the enclosing graph.
func (b builder) nodes(places []json.RawMessage) ([]*gs.Node, error) {
	nodes := make([]*gs.Node, len(places))
	for i, place := range places {
		if string(place) == `"outer"` {
			nodes[i] = b.outer.Input("")
			continue
		}
		node, err := nodeOf(b.graph, place)
		if err != nil {
			return nil, err
		}
		nodes[i] = node
	}
	return nodes, nil
}

// nodeOf returns the node at a position, or a node of another graph.
func nodeOf(graph *gs.Graph, place json.RawMessage) (*gs.Node, error) {
	if string(place) == `"other"` {
		return gs.NewGraph().Input(""), nil
	}
	id, err := strconv.Atoi(string(place))
	if err != nil {
		return nil, err
	}
	return graph.Node(id)
}

func nodesOf(graph *gs.Graph, places []json.RawMessage) (nodes []*gs.Node, err error) {
	for _, place := range places {
		node, err := nodeOf(graph, place)
		if err != nil {
			return nil, err
		}
		nodes = append(nodes, node)
	}
	return nodes, nil
}

// operand returns nil if the step has no further operand.
func (s *step) operand(place int) *gs.Node {
	if place >= len(s.nodes) {
		return nil
	}
	return s.nodes[place]
}

// any appends an op by name.
func (s *step) any(g *gs.Graph) *gs.Node {
	attrs := gs.Attrs{}
	for name := range s.Attrs {
		attrs[name] = attr[any](s, name)
	}
	return g.Op(s.Op, s.nodes, attrs)
}

// optional returns an attribute, or nil if the step does not have it.
func optional[T any](s *step, name string) *T {
	if _, is := s.Attrs[name]; !is {
		return nil
	}
	value := attr[T](s, name)
	return &value
}

// attr reads an attribute, including values that JSON cannot represent.
func attr[T any](s *step, name string) (value T) {
	stated, is := s.Attrs[name]
	if !is {
		return value
	}
	var read any = &value
	var err error
	switch into := read.(type) {
	case **gs.Tensor:
		var bits tensor
		if err = json.Unmarshal(stated, &bits); err == nil {
			*into, err = bits.read()
		}
	case *float64:
		var number any
		if number, err = valueOf(stated); err == nil {
			*into = floatOf(number)
		}
	case **gs.GraphFunction:
		*into, err = s.function(stated)
	case *any:
		if *into, err = s.function(stated); err != nil {
			*into, err = valueOf(stated)
		}
	case *gs.Number:
		*into, err = valueOf(stated)
	case *[]int:
		*into, err = wholesOf(stated)
	default:
		err = json.Unmarshal(stated, read)
	}
	if err != nil {
		s.err = err
	}
	return value
}

// function returns a function of the graph by index, or a function of another graph.
func (s *step) function(stated json.RawMessage) (*gs.GraphFunction, error) {
	var named struct {
		Function json.RawMessage `json:"function"`
	}
	if err := json.Unmarshal(stated, &named); err != nil {
		return nil, err
	}
	if string(named.Function) == `"other"` {
		return gs.NewGraph().Function("", func(g *gs.Graph) []*gs.Node { return []*gs.Node{g.Input("")} }), nil
	}
	index, err := strconv.Atoi(string(named.Function))
	if err != nil {
		return nil, err
	}
	return s.functions[index], nil
}

func floatOf(number any) float64 {
	if whole, is := number.(int64); is {
		return float64(whole)
	}
	stated, _ := number.(float64)
	return stated
}

func wholesOf(stated json.RawMessage) ([]int, error) {
	var entries []json.RawMessage
	if err := json.Unmarshal(stated, &entries); err != nil {
		return nil, err
	}
	wholes := make([]int, len(entries))
	for i, entry := range entries {
		whole, err := valueOf(entry)
		if err != nil {
			return nil, err
		}
		number, _ := whole.(int64)
		wholes[i] = int(number)
	}
	return wholes, nil
}

// valueOf converts JSON to a Go value: numbers with a decimal point to float64, others to int64.
func valueOf(stated json.RawMessage) (any, error) {
	var special struct {
		Int   *string `json:"int"`
		Float *string `json:"float"`
	}
	if json.Unmarshal(stated, &special) == nil && special.Int != nil {
		return strconv.ParseInt(*special.Int, 10, 64)
	}
	if special.Float != nil {
		return strconv.ParseFloat(*special.Float, 64)
	}
	var value any
	if err := json.Unmarshal(stated, &value); err != nil {
		return nil, err
	}
	if _, is := value.(float64); is && !strings.ContainsAny(string(stated), ".eE") {
		return strconv.ParseInt(string(stated), 10, 64)
	}
	return value, nil
}
