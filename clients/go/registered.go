package gradserve

import (
	"context"
	"encoding/json"
	"errors"
	"sync/atomic"
)

// RegisteredGraph is a registered graph. Pass it to calls in place of a graph: it is not sent again.
//
// The first call that uses it registers it, unless it is registered already. If the server no longer has the graph, the
// call registers it again. It is a snapshot: nodes appended later are not part of it. Goroutines can share it.
type RegisteredGraph struct {
	graph   *Graph
	count   int
	request *request
	// turn is held by the goroutine that registers the graph.
	turn  chan struct{}
	known atomic.Pointer[registration]
}

// registration holds the server's response.
type registration struct {
	id     string
	fields object
}

// GraphSummary is the metadata of a registered graph.
type GraphSummary struct {
	ID          string
	Description string
	NodeCount   int
}

// ID returns the hash of the graph; empty until the graph is registered.
func (r *RegisteredGraph) ID() string {
	if known := r.known.Load(); known != nil {
		return known.id
	}
	return ""
}

// Graph returns the graph itself.
func (r *RegisteredGraph) Graph() *Graph { return r.graph }

// Fields returns the server's response by API names, without the graph; nil until the graph is registered.
func (r *RegisteredGraph) Fields() map[string]json.RawMessage {
	if known := r.known.Load(); known != nil {
		return known.fields
	}
	return nil
}

func (r *RegisteredGraph) stated() (*Graph, int) { return r.graph, r.count }

// RegisterLater returns a graph that is registered as part of the first call that uses it, within that call's timeout.
func (c *Client) RegisterLater(graph *Graph, options ...RegisterOptions) (*RegisteredGraph, error) {
	if err := graph.sendable(); err != nil {
		return nil, err
	}
	request, err := registering(graph, given(options))
	if err != nil {
		return nil, err
	}
	return &RegisteredGraph{graph: graph, count: len(graph.nodes), request: request, turn: make(chan struct{}, 1)}, nil
}

// Register registers the graph on the server as it is now.
func (c *Client) Register(ctx context.Context, graph *Graph, options ...RegisterOptions) (*RegisteredGraph, error) {
	made, err := c.RegisterLater(graph, options...)
	if err != nil {
		return nil, err
	}
	running, done := c.begin(ctx, 0)
	defer done()
	if _, err := running.register(made, nil); err != nil {
		return nil, explained(err, graph, false)
	}
	return made, nil
}

// Registered fetches a registered graph. Look up its nodes by name or id.
func (c *Client) Registered(ctx context.Context, id string) (*RegisteredGraph, error) {
	path, err := graphPath(id)
	if err != nil {
		return nil, err
	}
	return answered(ctx, c, &request{method: "GET", path: path}, func(answer object) (*RegisteredGraph, error) {
		graph, err := graphFromJSON(answer["graph"])
		if err != nil {
			return nil, err
		}
		description, err := optional(answer["description"], textOf)
		if err != nil {
			return nil, err
		}
		made, err := c.RegisterLater(graph, RegisterOptions{Description: description})
		if err != nil {
			return nil, err
		}
		known, err := registrationOf(answer)
		made.known.Store(known)
		return made, err
	})
}

// Unregister deletes a registered graph from the server.
func (c *Client) Unregister(ctx context.Context, id string) (*GraphSummary, error) {
	path, err := graphPath(id)
	if err != nil {
		return nil, err
	}
	return answered(ctx, c, deleting(path, ""), summaryOf)
}

func summaryOf(stated object) (*GraphSummary, error) {
	made := &GraphSummary{}
	var err error
	if made.ID, err = textOf(stated["graph_id"]); err != nil {
		return nil, within("graph_id", err)
	}
	if made.Description, err = optional(stated["description"], textOf); err != nil {
		return nil, within("description", err)
	}
	made.NodeCount, err = wholeOf(stated["node_count"])
	return made, within("node_count", err)
}

func registrationOf(answer object) (*registration, error) {
	id, err := textOf(answer["graph_id"])
	if err != nil {
		return nil, within("graph_id", err)
	}
	delete(answer, "graph")
	return &registration{id, answer}, nil
}

// register registers the graph, unless another goroutine has done so since the registration was found to be stale.
func (r *running) register(graph *RegisteredGraph, stale *registration) (*registration, error) {
	select {
	case graph.turn <- struct{}{}:
		defer func() { <-graph.turn }()
	case <-r.ctx.Done():
		return nil, r.ended()
	}
	if known := graph.known.Load(); known != stale {
		return known, nil
	}
	reply, err := r.exchange(graph.request, r.client.idempotency).run()
	if err != nil {
		return nil, err
	}
	answer, err := reply.object()
	if err != nil {
		return nil, malformed(err)
	}
	known, err := registrationOf(answer)
	if err != nil {
		return nil, malformed(err)
	}
	graph.known.Store(known)
	return known, nil
}

// runOn makes a call on a registered graph. If the server does not have the graph, it registers the graph and repeats
// the call.
func (e *exchange) runOn(graph *RegisteredGraph) (reply, error) {
	known := graph.known.Load()
	if known == nil {
		var err error
		if known, err = e.running.register(graph, nil); err != nil {
			return reply{}, err
		}
	}
	call := e.request.path
	e.request.path = onGraph(call, known.id)
	answer, err := e.run()
	if !isOfTheGraph(err) {
		return answer, err
	}
	if known, err = e.running.register(graph, known); err != nil {
		return reply{}, err
	}
	e.request.path = onGraph(call, known.id)
	return e.run()
}

// onGraph returns the path of a call on a registered graph.
func onGraph(call, id string) string {
	const version = "/v1"
	path, err := graphPath(id)
	if err != nil {
		return call
	}
	return path + call[len(version):]
}

// isOfTheGraph reports whether the graph itself is missing. A missing tensor is reported with its node.
func isOfTheGraph(err error) bool {
	var missing *NotFoundError
	return errors.As(err, &missing) && missing.Code == "not_found" && missing.Node == nil && missing.Pointer == ""
}

// refusalIn returns the problem report in an error, or nil.
func refusalIn(err error) *Refusal {
	var refusal *Refusal
	errors.As(err, &refusal)
	return refusal
}
