package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"time"

	gs "gradserve.example/gradserve"
)

// clientCase holds the settings of the client in a case.
type clientCase struct {
	APIKey           *string `json:"api_key"`
	Retries          *int    `json:"retries"`
	TimeoutMS        int64   `json:"timeout_ms"`
	Idempotency      *bool   `json:"idempotency"`
	MaxResponseBytes *int64  `json:"max_response_bytes"`
}

// conversation makes the calls of a case with one client, whose clock advances only when it waits.
type conversation struct {
	client     *gs.Client
	now        time.Time
	waits      []int64
	keys       int
	graphs     map[string]*gs.Graph
	registered map[string]*gs.RegisteredGraph
	// failed is the error of NewClient.
	failed error
}

// begin creates the client. If the server is scripted, it injects clock, randomness and keys.
func begin(url string, stated clientCase, isScripted bool) *conversation {
	c := &conversation{
		now:        time.Unix(0, 0),
		waits:      []int64{},
		graphs:     map[string]*gs.Graph{},
		registered: map[string]*gs.RegisteredGraph{},
	}
	options := []gs.ClientOption{
		gs.WithTimeout(time.Duration(stated.TimeoutMS) * time.Millisecond),
	}
	if isScripted {
		options = append(options, gs.WithSurroundings(gs.Surroundings{
			Now:    func() time.Time { return c.now },
			Wait:   c.wait,
			Chance: func() float64 { return 0.5 },
			NewKey: c.newKey,
		}))
	}
	if stated.APIKey != nil {
		options = append(options, gs.WithAPIKey(*stated.APIKey))
	}
	if stated.Retries != nil {
		options = append(options, gs.WithRetries(*stated.Retries))
	}
	if stated.Idempotency != nil {
		options = append(options, gs.WithIdempotency(*stated.Idempotency))
	}
	if stated.MaxResponseBytes != nil {
		options = append(options, gs.WithMaxResponseBytes(*stated.MaxResponseBytes))
	}
	c.client, c.failed = gs.NewClient(url, options...)
	return c
}

func (c *conversation) wait(_ context.Context, wait time.Duration) error {
	c.now = c.now.Add(wait)
	c.waits = append(c.waits, int64(math.Round(float64(wait)/float64(time.Millisecond))))
	return nil
}

func (c *conversation) newKey() string {
	c.keys++
	return fmt.Sprintf("case-%d", c.keys)
}

// do makes one call.
func (c *conversation) do(call call) (members, error) {
	if c.failed != nil {
		return nil, c.failed
	}
	ctx := context.Background()
	switch call.Do {
	case "register":
		return c.register(ctx, call)
	case "put":
		return c.put(ctx, call)
	case "get":
		found, err := c.client.Get(ctx, call.Name, gs.GetOptions{Form: call.form()})
		if err != nil {
			return nil, err
		}
		return members{"tensor_id": found.Name, "etag": found.ETag, "tensor": bits(found.Tensor)}, nil
	case "delete":
		deleted, err := c.client.Delete(ctx, call.Name, gs.DeleteOptions{IfMatch: call.IfMatch})
		return handle(deleted, err)
	case "list_tensors":
		return c.listTensors(ctx, call)
	case "list_graphs":
		return c.listGraphs(ctx, call)
	case "put_model":
		return c.putModel(ctx, call)
	case "get_model":
		return model(c.client.Model(ctx, call.Name))
	case "delete_model":
		return model(c.client.DeleteModel(ctx, call.Name, gs.DeleteOptions{IfMatch: call.IfMatch}))
	case "list_models":
		return c.listModels(ctx, call)
	case "delete_graph":
		return c.deleteGraph(ctx, call)
	case "ops":
		return c.ops(ctx)
	}
	return c.compute(ctx, call)
}

// graph returns the graph of these steps, functions and opset. Equal ones are the same graph.
func (c *conversation) graph(stated built) (string, *gs.Graph, error) {
	text, err := json.Marshal(stated)
	if err != nil {
		return "", nil, err
	}
	known := string(text)
	if c.graphs[known] == nil {
		made, err := graphOf(stated)
		if err != nil {
			return "", nil, err
		}
		c.graphs[known] = made
	}
	return known, c.graphs[known], nil
}

func (c *conversation) register(ctx context.Context, call call) (members, error) {
	known, graph, err := c.graph(call.built)
	if err != nil {
		return nil, err
	}
	made, err := c.client.Register(ctx, graph, gs.RegisterOptions{Description: call.Description})
	if err != nil {
		return nil, err
	}
	c.registered[known] = made
	return raw(made.Fields()), nil
}

// target returns the graph or registered graph that a call runs on.
func (c *conversation) target(stated graphCase) (gs.Computable, *gs.Graph, error) {
	known, graph, err := c.graph(stated.built)
	if err != nil || !stated.Registered {
		return graph, graph, err
	}
	if c.registered[known] == nil {
		if c.registered[known], err = c.client.RegisterLater(graph); err != nil {
			delete(c.registered, known)
			return nil, nil, err
		}
	}
	return c.registered[known], graph, nil
}

func (c *conversation) put(ctx context.Context, call call) (members, error) {
	tensor, err := call.Tensor.read()
	if err != nil {
		return nil, err
	}
	return handle(c.client.Put(ctx, call.Name, tensor, gs.PutOptions{
		IfMatch: call.IfMatch, IfNoneMatch: call.IfNoneMatch, Form: call.form(),
	}))
}

func (c *conversation) listTensors(ctx context.Context, call call) (members, error) {
	found := []members{}
	for resident, err := range c.client.Tensors(ctx, gs.ListOptions{Limit: call.Limit}) {
		entry, err := handle(resident, err)
		if err != nil {
			return nil, err
		}
		found = append(found, entry)
	}
	return members{"tensors": found}, nil
}

func (c *conversation) listGraphs(ctx context.Context, call call) (members, error) {
	found := []members{}
	for graph, err := range c.client.Graphs(ctx, gs.ListOptions{Limit: call.Limit}) {
		if err != nil {
			return nil, err
		}
		found = append(found, summary(graph))
	}
	return members{"graphs": found}, nil
}

func summary(graph *gs.GraphSummary) members {
	made := members{"graph_id": graph.ID, "node_count": graph.NodeCount}
	if graph.Description != "" {
		made["description"] = graph.Description
	}
	return made
}

func (c *conversation) ops(ctx context.Context) (members, error) {
	catalogue, err := c.client.Ops(ctx)
	if err != nil {
		return nil, err
	}
	ops := make([]members, len(catalogue.Ops))
	for i, op := range catalogue.Ops {
		ops[i] = raw(op.Fields)
	}
	return members{"opset": catalogue.Opset, "ops": ops}, nil
}

func raw(fields map[string]json.RawMessage) members {
	made := members{}
	for name, value := range fields {
		made[name] = value
	}
	return made
}

// handle returns the fields of a handle by their API names.
func handle(kept *gs.Resident, err error) (members, error) {
	if err != nil {
		return nil, err
	}
	made := members{"tensor_id": kept.Name, "etag": kept.ETag}
	if kept.DType != "" {
		made["dtype"], made["shape"] = kept.DType, kept.Shape
	}
	if kept.Bytes != nil {
		made["bytes"] = *kept.Bytes
	}
	if kept.Durable != nil {
		made["durable"] = *kept.Durable
	}
	if kept.WrittenWithinMS != nil {
		made["written_within_ms"] = *kept.WrittenWithinMS
	}
	return made, nil
}
