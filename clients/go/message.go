package gradserve

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
)

const (
	mediaJSON        = "application/json"
	mediaProblem     = "application/problem+json"
	mediaSafetensors = "application/vnd.safetensors"
	mediaBytes       = "application/octet-stream"
)

// message is a request in JSON with its tensors, which are sent in the JSON or beside it.
type message struct {
	fields  map[string]any
	tensors []placed
}

// placed is a tensor with its places: a name in a safetensors file, or a member of an object in JSON.
type placed struct {
	tensor *Tensor
	where  string
	holder map[string]any
	key    string
}

func (m *message) place(tensor *Tensor, where string, holder map[string]any, key string) {
	m.tensors = append(m.tensors, placed{tensor, where, holder, key})
}

// form returns the requested form, or the default for the size of the tensors.
func (m *message) form(asked Form) Form {
	size := 0
	for _, each := range m.tensors {
		size += len(each.tensor.raw)
	}
	return cmp.Or(asked, defaultForm(size))
}

// encoded returns the media type and the body.
func (m *message) encoded(form Form) (string, [][]byte, error) {
	if form == Safetensors {
		tensors := map[string]*Tensor{}
		for _, each := range m.tensors {
			tensors[each.where] = each.tensor
		}
		text, err := written(m.fields)
		if err != nil {
			return "", nil, err
		}
		body, err := EncodeSafetensors(tensors, map[string]string{"request": string(text)})
		return mediaSafetensors, body, err
	}
	for _, each := range m.tensors {
		each.holder[each.key] = each.tensor.toJSON(form)
	}
	text, err := written(m.fields)
	return mediaJSON, [][]byte{text}, err
}

// graph returns the first nodes of a graph, and its functions, in the JSON form of the API.
func (m *message) graph(graph *Graph, count int) map[string]any {
	stated := map[string]any{}
	if opset := opsetOf(graph, count); opset != 0 {
		stated["opset"] = opset
	}
	if len(graph.functions) > 0 {
		functions := make([]any, len(graph.functions))
		for i, function := range graph.functions {
			functions[i] = m.function(function)
		}
		stated["functions"] = functions
	}
	stated["nodes"] = m.nodes(graph.nodes[:count], "")
	return stated
}

func (m *message) function(function *GraphFunction) map[string]any {
	outputs := make([]int, len(function.outputs))
	for i, output := range function.outputs {
		outputs[i] = output.id
	}
	nodes := m.nodes(function.nodes.nodes, fmt.Sprintf("functions.%d.", function.index))
	stated := map[string]any{"nodes": nodes, "outputs": outputs}
	if function.name != "" {
		stated["name"] = function.name
	}
	return stated
}

// nodes returns nodes in the JSON form of the API. where is the prefix of their tensors' names.
func (m *message) nodes(nodes []*Node, where string) []any {
	stated := make([]any, len(nodes))
	for i, node := range nodes {
		stated[i] = m.node(node, where)
	}
	return stated
}

func (m *message) node(node *Node, where string) map[string]any {
	stated := map[string]any{"op": node.op}
	if len(node.operands) > 0 {
		stated["operands"] = node.operands
	}
	if node.name != "" {
		stated["name"] = node.name
	}
	if len(node.attrs) == 0 {
		return stated
	}
	attrs := map[string]any{}
	for name, value := range node.attrs {
		if tensor, is := value.(*Tensor); is {
			m.place(tensor, fmt.Sprintf("%sconstants.%d", where, node.id), attrs, name)
		} else {
			attrs[name] = value
		}
	}
	stated["attrs"] = attrs
	return stated
}

// asked holds the arguments of a call except the graph.
type asked struct {
	CallOptions
	// tensors holds feeds and other tensors by node, by API names.
	tensors   map[string]Feeds
	cotangent *Tensor
	types     Types
	store     map[*Node]Store
	of        *Node
	// lists holds lists of nodes, by API names.
	lists map[string][]*Node
	// values holds arguments that are sent unchanged, unless they are zero.
	values map[string]any
}

// asked returns the arguments of a call that runs a graph.
func (o RunOptions) asked(feeds Feeds) asked {
	return asked{
		CallOptions: o.CallOptions,
		tensors:     map[string]Feeds{"feeds": feeds},
		store:       o.Store,
		lists:       map[string][]*Node{"outputs": o.Outputs},
		values: map[string]any{
			"diagnose": o.Diagnose, "memory_budget": o.MemoryBudget, "precision": o.Precision,
		},
	}
}

// fill writes the arguments of a call into its message.
func (m *message) fill(graph *Graph, count int, asked asked) error {
	if err := m.fillNodes(graph, asked); err != nil {
		return err
	}
	for _, role := range slices.Sorted(maps.Keys(asked.tensors)) {
		if err := m.fillTensors(role, asked.tensors[role], graph); err != nil {
			return within(role, err)
		}
	}
	if asked.cotangent != nil {
		of := count - 1
		if asked.of != nil {
			of = asked.of.id
		}
		m.place(asked.cotangent, fmt.Sprintf("cotangents.%d", of), m.fields, "cotangent")
	}
	for name, value := range asked.values {
		if !reflect.ValueOf(value).IsZero() {
			if err := m.set(name, value); err != nil {
				return err
			}
		}
	}
	for name, value := range asked.Extra {
		if err := m.set(name, value); err != nil {
			return err
		}
	}
	return nil
}

func (m *message) set(name string, value any) error {
	sent, err := plain(value)
	m.fields[name] = sent
	return within(name, err)
}

func (m *message) fillNodes(graph *Graph, asked asked) error {
	if asked.of != nil {
		if err := graph.owns(asked.of); err != nil {
			return within("of", err)
		}
		m.fields["of"] = asked.of.id
	}
	for name, nodes := range asked.lists {
		ids := make([]int, len(nodes))
		for i, node := range nodes {
			if err := graph.owns(node); err != nil {
				return within(name, err)
			}
			ids[i] = node.id
		}
		if nodes != nil {
			m.fields[name] = ids
		}
	}
	if err := m.fillStore(graph, asked.store); err != nil {
		return within("store", err)
	}
	return within("types", m.fillTypes(graph, asked.types))
}

// entries writes a list with an entry for each node, in order of ids.
func entries[T any](graph *Graph, of map[*Node]T, entry func(*Node, T, map[string]any) error) ([]any, error) {
	for node := range of {
		if err := graph.owns(node); err != nil {
			return nil, err
		}
	}
	nodes := slices.SortedFunc(maps.Keys(of), func(a, b *Node) int { return a.id - b.id })
	list := make([]any, len(nodes))
	for i, node := range nodes {
		made := map[string]any{"node": node.id}
		if err := entry(node, of[node], made); err != nil {
			return nil, within(node.String(), err)
		}
		list[i] = made
	}
	return list, nil
}

func (m *message) fillTensors(role string, feeds Feeds, graph *Graph) error {
	list, err := entries(graph, feeds, func(node *Node, value Value, entry map[string]any) error {
		switch stated := value.(type) {
		case *Resident:
			if stated != nil {
				entry["tensor_id"] = stated.Name
				return nil
			}
		case *Rows:
			if stated != nil {
				entry["tensor_id"], entry["rows"] = stated.Name, []int{stated.Start, stated.Stop}
				return nil
			}
		case *Tensor:
			if stated != nil {
				m.place(stated, fmt.Sprintf("%s.%d", role, node.id), entry, "tensor")
				return nil
			}
		}
		return inputErrorf("the tensor is nil")
	})
	if feeds != nil {
		m.fields[role] = list
	}
	return err
}

func (m *message) fillStore(graph *Graph, store map[*Node]Store) error {
	list, err := entries(graph, store, func(_ *Node, target Store, entry map[string]any) error {
		entry["tensor_id"] = target.Name
		if target.IfMatch != nil {
			entry["if_match"] = *target.IfMatch
		}
		if target.Durable != nil {
			entry["durable"] = *target.Durable
		}
		if target.Gradient {
			entry["gradient"] = true
		}
		return nil
	})
	if len(store) > 0 {
		m.fields["store"] = list
	}
	return err
}

func (m *message) fillTypes(graph *Graph, types Types) error {
	list, err := entries(graph, types, func(_ *Node, stated Type, entry map[string]any) error {
		entry["dtype"] = stated.DType
		entry["shape"] = append([]int{}, stated.Shape...)
		return nil
	})
	if types != nil {
		m.fields["types"] = list
	}
	return err
}
