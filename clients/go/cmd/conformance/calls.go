package main

import (
	"context"
	"encoding/json"

	gs "gradserve.example/gradserve"
)

type graphCase struct {
	built
	Registered bool `json:"registered"`
}

type entry struct {
	Node     json.RawMessage `json:"node"`
	Tensor   *tensor         `json:"tensor"`
	TensorID string          `json:"tensor_id"`
	DType    string          `json:"dtype"`
	Shape    []int           `json:"shape"`
	IfMatch  *string         `json:"if_match"`
	Durable  *bool           `json:"durable"`
	Gradient bool            `json:"gradient"`
	Rows     []int           `json:"rows"`
}

// call is a call of a case.
type call struct {
	Do    string    `json:"do"`
	Graph graphCase `json:"graph"`
	built
	Description  string            `json:"description"`
	Name         string            `json:"name"`
	Tensor       *tensor           `json:"tensor"`
	IfMatch      string            `json:"if_match"`
	IfNoneMatch  string            `json:"if_none_match"`
	Form         string            `json:"form"`
	Limit        int               `json:"limit"`
	Feeds        []entry           `json:"feeds"`
	Types        []entry           `json:"types"`
	Cotangents   []entry           `json:"cotangents"`
	Tangents     []entry           `json:"tangents"`
	Vectors      []entry           `json:"vectors"`
	Store        []entry           `json:"store"`
	Of           json.RawMessage   `json:"of"`
	Wrt          []json.RawMessage `json:"wrt"`
	Outputs      []json.RawMessage `json:"outputs"`
	GraphID      string            `json:"graph_id"`
	Inputs       []named           `json:"inputs"`
	Bound        []named           `json:"bound"`
	Mapped       []json.RawMessage `json:"mapped"`
	Reduce       gs.Reduction      `json:"reduce"`
	Block        int64             `json:"block"`
	Layout       gs.HessianLayout  `json:"layout"`
	Cotangent    *tensor           `json:"cotangent"`
	Batched      bool              `json:"batched"`
	Diagnose     bool              `json:"diagnose"`
	MemoryBudget int64             `json:"memory_budget"`
	Precision    gs.Precision      `json:"precision"`
	Call         string            `json:"call"`
	Directions   int               `json:"directions"`
	Tolerance    float64           `json:"tolerance"`
}

func (c call) form() gs.Form {
	if c.Form == "binary" {
		return gs.Safetensors
	}
	return gs.Form(c.Form)
}

// asked holds the arguments of a call, as values of the client.
type asked struct {
	run                                  gs.RunOptions
	feeds, cotangents, tangents, vectors gs.Feeds
	types                                gs.Types
	of                                   *gs.Node
	wrt, mapped                          []*gs.Node
	cotangent                            *gs.Tensor
}

func (c call) asked(graph *gs.Graph) (made asked, err error) {
	made.run.Form, made.run.Diagnose = c.form(), c.Diagnose
	made.run.MemoryBudget, made.run.Precision = c.MemoryBudget, c.Precision
	for into, list := range map[*gs.Feeds][]entry{
		&made.feeds: c.Feeds, &made.cotangents: c.Cotangents, &made.tangents: c.Tangents, &made.vectors: c.Vectors,
	} {
		if *into, err = feedsOf(graph, list); err != nil {
			return made, err
		}
	}
	for into, list := range map[*[]*gs.Node][]json.RawMessage{
		&made.wrt: c.Wrt, &made.mapped: c.Mapped, &made.run.Outputs: c.Outputs,
	} {
		if *into, err = nodesOf(graph, list); err != nil {
			return made, err
		}
	}
	if c.Of != nil {
		if made.of, err = nodeOf(graph, c.Of); err != nil {
			return made, err
		}
	}
	if c.Cotangent != nil {
		if made.cotangent, err = c.Cotangent.read(); err != nil {
			return made, err
		}
	}
	if made.types, err = typesOf(graph, c.Types); err != nil {
		return made, err
	}
	made.run.Store, err = storeOf(graph, c.Store)
	return made, err
}

func feedsOf(graph *gs.Graph, list []entry) (gs.Feeds, error) {
	if list == nil {
		return nil, nil
	}
	feeds := gs.Feeds{}
	for _, each := range list {
		node, err := nodeOf(graph, each.Node)
		if err != nil {
			return nil, err
		}
		if each.TensorID != "" {
			kept := &gs.Resident{Name: each.TensorID}
			feeds[node] = kept
			if each.Rows != nil {
				feeds[node] = kept.Rows(each.Rows[0], each.Rows[1])
			}
			continue
		}
		if feeds[node], err = each.Tensor.read(); err != nil {
			return nil, err
		}
	}
	return feeds, nil
}

func typesOf(graph *gs.Graph, list []entry) (gs.Types, error) {
	types := gs.Types{}
	for _, each := range list {
		node, err := nodeOf(graph, each.Node)
		if err != nil {
			return nil, err
		}
		types[node] = gs.Type{DType: gs.DType(each.DType), Shape: each.Shape}
	}
	return types, nil
}

func storeOf(graph *gs.Graph, list []entry) (map[*gs.Node]gs.Store, error) {
	store := map[*gs.Node]gs.Store{}
	for _, each := range list {
		node, err := nodeOf(graph, each.Node)
		if err != nil {
			return nil, err
		}
		store[node] = gs.Store{Name: each.TensorID, IfMatch: each.IfMatch, Durable: each.Durable, Gradient: each.Gradient}
	}
	return store, nil
}

// compute makes a call on a graph.
func (c *conversation) compute(ctx context.Context, call call) (members, error) {
	on, graph, err := c.target(call.Graph)
	if err != nil {
		return nil, err
	}
	a, err := call.asked(graph)
	if err != nil {
		return nil, err
	}
	switch call.Do {
	case "forward":
		return returned(c.client.Forward(ctx, on, a.feeds, gs.ForwardOptions{RunOptions: a.run}))
	case "gradients":
		return returned(c.client.Gradients(ctx, on, a.feeds, gs.GradientsOptions{
			RunOptions: a.run, Of: a.of, Wrt: a.wrt, Cotangent: a.cotangent,
		}))
	case "vjp":
		return returned(c.client.VJP(ctx, on, a.feeds, gs.VJPOptions{
			RunOptions: a.run, Cotangents: a.cotangents, Wrt: a.wrt, Batched: call.Batched,
		}))
	case "jvp":
		return returned(c.client.JVP(ctx, on, a.feeds, gs.JVPOptions{RunOptions: a.run, Tangents: a.tangents}))
	case "jacobian":
		return returned(c.client.Jacobian(ctx, on, a.feeds, gs.JacobianOptions{RunOptions: a.run, Wrt: a.wrt}))
	case "hvp":
		return returned(c.client.HVP(ctx, on, a.feeds, gs.HVPOptions{
			RunOptions: a.run, Of: a.of, Wrt: a.wrt, Vectors: a.vectors,
		}))
	case "hessian":
		return returned(c.client.Hessian(ctx, on, a.feeds, gs.HessianOptions{
			RunOptions: a.run, Of: a.of, Wrt: a.wrt, Layout: call.Layout,
		}))
	case "batch":
		return returned(c.client.Batch(ctx, on, a.feeds, gs.BatchOptions{
			RunOptions: a.run, Of: a.of, Wrt: a.wrt, Mapped: a.mapped, Reduce: call.Reduce, Block: call.Block,
		}))
	case "check":
		return returned(c.client.Check(ctx, on, a.feeds, gs.CheckOptions{
			CallOptions: a.run.CallOptions, Of: a.of, Wrt: a.wrt, Directions: call.Directions, Tolerance: call.Tolerance,
			MemoryBudget: call.MemoryBudget, Precision: call.Precision,
		}))
	case "plan":
		return returned(c.client.Plan(ctx, on, a.types, gs.PlanOptions{
			CallOptions: a.run.CallOptions, Call: call.Call, Of: a.of, Wrt: a.wrt, Mapped: a.mapped, Outputs: a.run.Outputs,
			Reduce: call.Reduce, Block: call.Block, MemoryBudget: call.MemoryBudget, Precision: call.Precision,
		}))
	default:
		return returned(c.client.Differentiate(ctx, on, a.types, gs.DifferentiateOptions{
			CallOptions: a.run.CallOptions, Of: a.of, Wrt: a.wrt,
		}))
	}
}
