package gradserve

import (
	"context"
	"encoding/json"
	"errors"
	"sync/atomic"
)

// RegisteredGraph is a graph that the server keeps, and that stands wherever a call takes a graph: it is not sent again.
//
// It is registered by the first call that needs it, unless it is already, and once more by one that finds it forgotten.
// It is the graph as it was: nodes that are appended later are not part of it. Goroutines may share it.
type RegisteredGraph struct {
	graph   *Graph
	count   int
	request *request
	// turn is held by whoever registers it.
	turn  chan struct{}
	known atomic.Pointer[registration]
}

// registration is what the server answered.
type registration struct {
	id     string
	fields object
}

// GraphSummary is a graph that the server keeps, without itself.
type GraphSummary struct {
	ID          string
	Description string
	NodeCount   int
}

// ID is the hash of the graph; empty as long as the server was not asked.
func (r *RegisteredGraph) ID() string {
	if known := r.known.Load(); known != nil {
		return known.id
	}
	return ""
}

// Graph is the graph itself.
func (r *RegisteredGraph) Graph() *Graph { return r.graph }

// Fields has what the server answered, by names on the wire, but for the graph; nil as long as it was not asked.
func (r *RegisteredGraph) Fields() map[string]json.RawMessage {
	if known := r.known.Load(); known != nil {
		return known.fields
	}
	return nil
}

func (r *RegisteredGraph) stated() (*Graph, int) { return r.graph, r.count }

// RegisterLater is a graph that the first call which needs it registers, within its own time.
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

// Register has the server keep a graph as it is now.
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

// Registered is a graph that the server keeps already. Its nodes are found by their names and ids.
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

// Unregister has the server forget a graph.
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

// register has the server keep a graph, unless somebody else did since it was found to be stale.
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

// runOn does a call on a registered graph, which is registered once more where it is not found.
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

// onGraph is the path of a call on a registered graph.
func onGraph(call, id string) string {
	const version = "/v1"
	path, err := graphPath(id)
	if err != nil {
		return call
	}
	return path + call[len(version):]
}

// isOfTheGraph says whether it is the graph that is not found: a tensor is named by its node.
func isOfTheGraph(err error) bool {
	var missing *NotFoundError
	return errors.As(err, &missing) && missing.Code == "not_found" && missing.Node == nil && missing.Pointer == ""
}

// refusalIn is the report that an error holds; nil where it holds none.
func refusalIn(err error) *Refusal {
	var refusal *Refusal
	errors.As(err, &refusal)
	return refusal
}
