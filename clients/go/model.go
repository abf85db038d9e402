package gradserve

import "context"

// Model is one version of a model on the server: a registered graph with named inputs and outputs, and with its weights
// on the server. It refers to nodes by id.
type Model struct {
	Name        string
	ETag        string
	GraphID     string
	Description string
	Inputs      []ModelValue
	Outputs     []ModelValue
	Bound       []BoundLeaf
}

// ModelValue is a named input or output. An extent of -1 is free: each call can use another size.
type ModelValue struct {
	Name  string
	Node  int
	DType DType
	Shape []int
}

// BoundLeaf is a leaf that is bound to a resident tensor. Each call reads the current version of the tensor, which must
// have this DType and Shape.
type BoundLeaf struct {
	Node       int
	TensorName string
	DType      DType
	Shape      []int
}

// ModelDefinition defines a model. Set Name and Node of outputs, and Node and Tensor of bound leaves. The server
// determines their types.
type ModelDefinition struct {
	// GraphID is the id of a registered graph.
	GraphID     string
	Inputs      []ModelValue
	Outputs     []ModelValue
	Bound       []BoundLeaf
	Description string
}

// ModelOptions are the options of PutModel.
type ModelOptions struct {
	// IfMatch is the etag that the stored version must have, or "*" for any.
	IfMatch string
	// IfNoneMatch is the etag that the stored version must not have. "*" requires that the model does not exist.
	IfNoneMatch string
}

// PutModel stores a model, and replaces the one with this name if there is one.
func (c *Client) PutModel(
	ctx context.Context, name string, definition ModelDefinition, options ...ModelOptions,
) (*Model, error) {
	request, err := puttingModel(name, definition, given(options))
	if err != nil {
		return nil, err
	}
	return answered(ctx, c, request, modelOf)
}

// Model fetches the current version of a model.
func (c *Client) Model(ctx context.Context, name string) (*Model, error) {
	path, err := modelPath(name)
	if err != nil {
		return nil, err
	}
	return answered(ctx, c, &request{method: "GET", path: path}, modelOf)
}

// DeleteModel deletes a model and returns the metadata of the deleted version. Its graph and tensors stay.
func (c *Client) DeleteModel(ctx context.Context, name string, options ...DeleteOptions) (*Model, error) {
	path, err := modelPath(name)
	if err != nil {
		return nil, err
	}
	return answered(ctx, c, deleting(path, given(options).IfMatch), modelOf)
}

func (d ModelDefinition) toJSON() map[string]any {
	stated := map[string]any{"graph_id": d.GraphID}
	if d.Description != "" {
		stated["description"] = d.Description
	}
	inputs, outputs, bound := []any{}, []any{}, []any{}
	for _, each := range d.Inputs {
		shape := append([]int{}, each.Shape...)
		inputs = append(inputs, map[string]any{
			"name": each.Name, "node": each.Node, "dtype": each.DType, "shape": shape,
		})
	}
	for _, each := range d.Outputs {
		outputs = append(outputs, map[string]any{"name": each.Name, "node": each.Node})
	}
	for _, each := range d.Bound {
		bound = append(bound, map[string]any{"node": each.Node, "tensor_id": each.TensorName})
	}
	stated["inputs"], stated["outputs"], stated["bound"] = inputs, outputs, bound
	return stated
}

func modelOf(stated object) (*Model, error) {
	made := &Model{}
	var err error
	for name, text := range map[string]*string{"name": &made.Name, "etag": &made.ETag, "graph_id": &made.GraphID} {
		if *text, err = textOf(stated[name]); err != nil {
			return nil, within(name, err)
		}
	}
	if made.Description, err = optional(stated["description"], textOf); err != nil {
		return nil, within("description", err)
	}
	if made.Inputs, err = entriesOf(stated, "inputs", modelValueOf); err != nil {
		return nil, err
	}
	if made.Outputs, err = entriesOf(stated, "outputs", modelValueOf); err != nil {
		return nil, err
	}
	made.Bound, err = entriesOf(stated, "bound", boundLeafOf)
	return made, err
}

func entriesOf[T any](stated object, kind string, read func(object) (T, error)) ([]T, error) {
	list, err := objectsOf(stated[kind])
	if err != nil {
		return nil, within(kind, err)
	}
	entries := make([]T, len(list))
	for i, each := range list {
		if entries[i], err = read(each); err != nil {
			return nil, within(kind, err)
		}
	}
	return entries, nil
}

func modelValueOf(stated object) (made ModelValue, err error) {
	if made.Name, err = textOf(stated["name"]); err != nil {
		return made, within("name", err)
	}
	made.Node, made.DType, made.Shape, err = leafOf(stated)
	return made, err
}

func boundLeafOf(stated object) (made BoundLeaf, err error) {
	if made.TensorName, err = textOf(stated["tensor_id"]); err != nil {
		return made, within("tensor_id", err)
	}
	made.Node, made.DType, made.Shape, err = leafOf(stated)
	return made, err
}

func leafOf(stated object) (node int, dtype DType, shape []int, err error) {
	if node, err = wholeOf(stated["node"]); err != nil {
		return node, dtype, shape, within("node", err)
	}
	word, err := textOf(stated["dtype"])
	if err != nil {
		return node, dtype, shape, within("dtype", err)
	}
	shape, err = shapeOf(stated["shape"])
	return node, DType(word), shape, within("shape", err)
}
