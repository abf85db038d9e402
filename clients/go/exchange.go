package gradserve

import (
	"context"
	"fmt"
	"time"
)

const keyHeader = "Idempotency-Key"

// begin starts a call. The caller must call done at its end.
func (c *Client) begin(ctx context.Context, timeout time.Duration) (begun *running, done func()) {
	if timeout == 0 {
		timeout = c.timeout
	}
	begun = &running{client: c, ctx: ctx, caller: ctx, deadline: deadlineOf(ctx, timeout, c.surroundings.Now)}
	if !begun.deadline.isSet {
		return begun, func() {}
	}
	var cancel context.CancelFunc
	begun.ctx, cancel = context.WithTimeout(ctx, begun.deadline.end.Sub(c.surroundings.Now()))
	return begun, cancel
}

// exchange is a request with all of its attempts, under one idempotency key.
type exchange struct {
	running *running
	request *request
	tries   tries
	hasKey  bool
}

func (r *running) exchange(request *request, idempotency bool) *exchange {
	made := &exchange{running: r, request: request, hasKey: request.keeps && idempotency}
	if made.hasKey {
		request.header[keyHeader] = r.client.surroundings.NewKey()
	}
	made.tries = tries{wait: firstWait, chance: r.client.surroundings.Chance, deadline: &r.deadline}
	if made.hasKey || !request.keeps {
		made.tries.remaining = r.client.retries
	}
	return made
}

// run sends the request, and retries until there is a response. It returns the error of the last attempt.
func (e *exchange) run() (reply, error) {
	for {
		answer, err := e.running.client.transport.send(e.running, e.request)
		if err == nil {
			err = answer.checked()
		}
		if err == nil {
			return answer, nil
		}
		wait, err := e.tries.after(err)
		if err != nil {
			return reply{}, err
		}
		if err := e.running.client.surroundings.Wait(e.running.ctx, wait); err != nil {
			return reply{}, e.running.stopped(err)
		}
	}
}

// stopped returns the reason why a wait ended early.
func (r *running) stopped(err error) error {
	if ended := r.ended(); ended != nil {
		return ended
	}
	return err
}

// Computable is the target of a call: a Graph or a RegisteredGraph.
type Computable interface {
	// stated returns the graph, and how many of its nodes belong to it.
	stated() (*Graph, int)
}

func (g *Graph) stated() (*Graph, int) { return g, len(g.nodes) }

// compute makes a call on a graph or a registered graph, which it registers first if the server does not have it.
func compute[A any](
	ctx context.Context, c *Client, call string, on Computable, asked asked, read func(*reader) A,
) (*A, error) {
	graph, count := on.stated()
	if err := graph.sendable(); err != nil {
		return nil, err
	}
	registered, isRegistered := on.(*RegisteredGraph)
	request, err := computing(call, graph, count, asked, isRegistered)
	if err != nil {
		return nil, err
	}
	running, done := c.begin(ctx, asked.Timeout)
	defer done()
	exchange := running.exchange(request, c.makesKeys(asked.Idempotency))
	var reply reply
	if isRegistered {
		reply, err = exchange.runOn(registered)
	} else {
		reply, err = exchange.run()
	}
	if err != nil {
		return nil, explained(err, graph, exchange.hasKey)
	}
	answer, err := answerOf(reply, graph, read)
	return answer, malformed(err)
}

func (c *Client) makesKeys(asked *bool) bool {
	if asked == nil {
		return c.idempotency
	}
	return *asked
}

func answerOf[A any](reply reply, graph *Graph, read func(*reader) A) (*A, error) {
	fields, beside, err := reply.parts()
	if err != nil {
		return nil, err
	}
	reader := &reader{graph: graph, fields: fields, beside: beside}
	answer := read(reader)
	if reader.err != nil {
		return nil, reader.err
	}
	return &answer, nil
}

// explained adds client-side facts to an error: the node and function that it is about, and that the client sent an
// Idempotency-Key.
func explained(err error, graph *Graph, hasKey bool) error {
	refusal := refusalIn(err)
	if refusal == nil {
		return err
	}
	if refusal.Node != nil {
		if node, err := graph.Node(*refusal.Node); err == nil {
			refusal.add(fmt.Sprintf("that is %v", node))
		}
	}
	if index := refusal.Function; index != nil && *index >= 0 && *index < len(graph.functions) {
		refusal.add(fmt.Sprintf("in %v", graph.functions[*index]))
	}
	if hasKey && refusal.Status == 413 && refusal.Code == "over_budget" {
		refusal.add("the client sent an Idempotency-Key, so the server must store the answer to replay it; if the answer " +
			"is too large for that, use Idempotency: Set(false) or WithIdempotency(false)")
	}
	return err
}

// once makes a request that is a call by itself.
func (c *Client) once(ctx context.Context, request *request) (reply, error) {
	running, done := c.begin(ctx, 0)
	defer done()
	return running.exchange(request, c.idempotency).run()
}

// answered makes a request and reads the JSON object of its response.
func answered[T any](ctx context.Context, c *Client, request *request, read func(object) (T, error)) (T, error) {
	var none T
	reply, err := c.once(ctx, request)
	if err != nil {
		return none, err
	}
	members, err := reply.object()
	if err != nil {
		return none, malformed(err)
	}
	made, err := read(members)
	if err != nil {
		return none, malformed(err)
	}
	return made, nil
}
