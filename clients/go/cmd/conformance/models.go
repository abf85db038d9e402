package main

import (
	"context"
	"encoding/json"

	gs "gradserve.example/gradserve"
)

// named is an input, an output or a bound leaf of a model.
type named struct {
	Name     string   `json:"name,omitempty"`
	TensorID string   `json:"tensor_id,omitempty"`
	Node     int      `json:"node"`
	DType    gs.DType `json:"dtype"`
	Shape    []int    `json:"shape"`
}

// kept returns the id of the graph of a call, which the first call that needs it registers.
func (c *conversation) kept(ctx context.Context, call call) (string, error) {
	if call.Graph.Steps == nil {
		return call.GraphID, nil
	}
	known, _, err := c.graph(call.Graph.built)
	if err != nil {
		return "", err
	}
	if c.registered[known] == nil {
		call.built, call.Description = call.Graph.built, ""
		if _, err := c.register(ctx, call); err != nil {
			return "", err
		}
	}
	return c.registered[known].ID(), nil
}

func (c *conversation) putModel(ctx context.Context, call call) (members, error) {
	id, err := c.kept(ctx, call)
	if err != nil {
		return nil, err
	}
	definition := gs.ModelDefinition{GraphID: id, Description: call.Description}
	for _, each := range call.Inputs {
		definition.Inputs = append(definition.Inputs, gs.ModelValue{
			Name: each.Name, Node: each.Node, DType: each.DType, Shape: each.Shape,
		})
	}
	for _, text := range call.Outputs {
		var each named
		if err := json.Unmarshal(text, &each); err != nil {
			return nil, err
		}
		definition.Outputs = append(definition.Outputs, gs.ModelValue{Name: each.Name, Node: each.Node})
	}
	for _, each := range call.Bound {
		definition.Bound = append(definition.Bound, gs.BoundLeaf{Node: each.Node, TensorName: each.TensorID})
	}
	options := gs.ModelOptions{IfMatch: call.IfMatch, IfNoneMatch: call.IfNoneMatch}
	return model(c.client.PutModel(ctx, call.Name, definition, options))
}

func (c *conversation) listModels(ctx context.Context, call call) (members, error) {
	found := []members{}
	for kept, err := range c.client.Models(ctx, gs.ListOptions{Limit: call.Limit}) {
		entry, err := model(kept, err)
		if err != nil {
			return nil, err
		}
		found = append(found, entry)
	}
	return members{"models": found}, nil
}

func (c *conversation) deleteGraph(ctx context.Context, call call) (members, error) {
	id, err := c.kept(ctx, call)
	if err != nil {
		return nil, err
	}
	gone, err := c.client.Unregister(ctx, id)
	if err != nil {
		return nil, err
	}
	return summary(gone), nil
}

// model returns the fields of a model by their API names.
func model(kept *gs.Model, err error) (members, error) {
	if err != nil {
		return nil, err
	}
	made := members{"name": kept.Name, "etag": kept.ETag, "graph_id": kept.GraphID}
	if kept.Description != "" {
		made["description"] = kept.Description
	}
	made["inputs"], made["outputs"] = values(kept.Inputs), values(kept.Outputs)
	bound := []named{}
	for _, each := range kept.Bound {
		bound = append(bound, named{TensorID: each.TensorName, Node: each.Node, DType: each.DType, Shape: each.Shape})
	}
	made["bound"] = bound
	return made, nil
}

func values(list []gs.ModelValue) []named {
	made := []named{}
	for _, each := range list {
		made = append(made, named{Name: each.Name, Node: each.Node, DType: each.DType, Shape: each.Shape})
	}
	return made
}
