package gradserve

import (
	"context"
	"encoding/json"
	"iter"
	"net/http"
	"os"
	"time"
)

// Version is that of the client, and of the server that it came with.
const Version = "0.1.0"

const (
	// keyVariable has the key, where WithAPIKey does not give one.
	keyVariable     = "GRADSERVE_API_KEY"
	usualTimeout    = 60 * time.Second
	usualRetries    = 2
	usualMostOfBody = 256 << 20
)

// Client is a connection to a server, which goroutines may share.
type Client struct {
	transport    *transport
	timeout      time.Duration
	retries      int
	idempotency  bool
	surroundings Surroundings
}

// ClientOption is something that a Client is made with.
type ClientOption func(*settings)

type settings struct {
	Client
	key  string
	most int64
	over http.RoundTripper
}

// WithAPIKey gives the key, which else is that of the environment, GRADSERVE_API_KEY. It is in no error.
func WithAPIKey(key string) ClientOption { return func(s *settings) { s.key = key } }

// WithTimeout says how long a call may take, over all of its tries; 0 is without end. Usually it is a minute.
func WithTimeout(timeout time.Duration) ClientOption {
	return func(s *settings) { s.timeout = timeout }
}

// WithRetries says how often a call is repeated at most. Usually it is twice.
func WithRetries(retries int) ClientOption { return func(s *settings) { s.retries = max(0, retries) } }

// WithIdempotency says whether calls that keep something get an Idempotency-Key, without which they are not repeated.
func WithIdempotency(idempotency bool) ClientOption {
	return func(s *settings) { s.idempotency = idempotency }
}

// WithMaxResponseBytes says how long an answer may be to be read. Usually it is 256 MiB.
func WithMaxResponseBytes(most int64) ClientOption { return func(s *settings) { s.most = most } }

// WithTransport has requests go this way, for example through a proxy, instead of a transport of the client's own.
func WithTransport(over http.RoundTripper) ClientOption { return func(s *settings) { s.over = over } }

// WithSurroundings hands in clock, chance and keys.
func WithSurroundings(surroundings Surroundings) ClientOption {
	return func(s *settings) { s.surroundings = surroundings }
}

// NewClient is a client of the server at a URL. It fails with an InputError for a URL or a key that cannot be one.
func NewClient(url string, options ...ClientOption) (*Client, error) {
	stated := settings{
		Client: Client{timeout: usualTimeout, retries: usualRetries, idempotency: true},
		key:    os.Getenv(keyVariable),
		most:   usualMostOfBody,
	}
	for _, option := range options {
		option(&stated)
	}
	if stated.over == nil {
		stated.over = usualTransport()
	}
	made := stated.Client
	made.surroundings = made.surroundings.orUsual()
	var err error
	made.transport, err = transportOf(url, stated.key, stated.most, stated.over)
	return &made, err
}

// usualTransport forgets idle connections before the server does, which keeps them for 75 s unless told otherwise.
func usualTransport() http.RoundTripper {
	return &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		ForceAttemptHTTP2:   true,
		MaxIdleConnsPerHost: 16,
		IdleConnTimeout:     time.Minute,
		TLSHandshakeTimeout: 10 * time.Second,
	}
}

// Close closes the connections that are idle.
func (c *Client) Close() { c.transport.http.CloseIdleConnections() }

// Forward has values of nodes, by default of the last one.
func (c *Client) Forward(
	ctx context.Context, on Computable, feeds Feeds, options ...ForwardOptions,
) (*ForwardAnswer, error) {
	stated := given(options)
	return compute(ctx, c, "forward", on, stated.asked(feeds), (*reader).forward)
}

// Gradients has values, and the gradients of one node.
func (c *Client) Gradients(
	ctx context.Context, on Computable, feeds Feeds, options ...GradientsOptions,
) (*GradientsAnswer, error) {
	stated := given(options)
	asked := stated.asked(feeds)
	asked.of, asked.lists["wrt"], asked.cotangent = stated.Of, stated.Wrt, stated.Cotangent
	return compute(ctx, c, "gradients", on, asked, (*reader).gradients)
}

// VJP has cotangents of outputs times the Jacobian.
func (c *Client) VJP(ctx context.Context, on Computable, feeds Feeds, options ...VJPOptions) (*GradientsAnswer, error) {
	stated := given(options)
	asked := stated.asked(feeds)
	asked.tensors["cotangents"], asked.lists["wrt"] = stated.Cotangents, stated.Wrt
	asked.values["batched"] = stated.Batched
	return compute(ctx, c, "vjp", on, asked, (*reader).gradients)
}

// JVP has the Jacobian times tangents of leaves.
func (c *Client) JVP(ctx context.Context, on Computable, feeds Feeds, options ...JVPOptions) (*JVPAnswer, error) {
	stated := given(options)
	asked := stated.asked(feeds)
	asked.tensors["tangents"] = stated.Tangents
	return compute(ctx, c, "jvp", on, asked, (*reader).jvp)
}

// Jacobian has whole Jacobians, a block for each output and node of Wrt.
func (c *Client) Jacobian(
	ctx context.Context, on Computable, feeds Feeds, options ...JacobianOptions,
) (*JacobianAnswer, error) {
	stated := given(options)
	asked := stated.asked(feeds)
	asked.lists["wrt"] = stated.Wrt
	return compute(ctx, c, "jacobian", on, asked, (*reader).jacobian)
}

// HVP has the Hessian times vectors, exactly.
func (c *Client) HVP(ctx context.Context, on Computable, feeds Feeds, options ...HVPOptions) (*HVPAnswer, error) {
	stated := given(options)
	asked := stated.asked(feeds)
	asked.of, asked.lists["wrt"], asked.tensors["vectors"] = stated.Of, stated.Wrt, stated.Vectors
	return compute(ctx, c, "hvp", on, asked, (*reader).hvp)
}

// Hessian has whole Hessians, a block for each pair of nodes of Wrt.
func (c *Client) Hessian(
	ctx context.Context, on Computable, feeds Feeds, options ...HessianOptions,
) (*HessianAnswer, error) {
	stated := given(options)
	asked := stated.asked(feeds)
	asked.of, asked.lists["wrt"] = stated.Of, stated.Wrt
	return compute(ctx, c, "hessian", on, asked, (*reader).hessian)
}

// Batch has one graph on many examples: values and gradients of each, or of their sum.
func (c *Client) Batch(
	ctx context.Context, on Computable, feeds Feeds, options ...BatchOptions,
) (*GradientsAnswer, error) {
	stated := given(options)
	asked := stated.asked(feeds)
	asked.of, asked.lists["wrt"], asked.lists["mapped"] = stated.Of, stated.Wrt, stated.Mapped
	asked.values["reduce"], asked.values["block"] = stated.Reduce, stated.Block
	return compute(ctx, c, "batch", on, asked, (*reader).batched)
}

// Check compares gradients with central differences.
func (c *Client) Check(ctx context.Context, on Computable, feeds Feeds, options ...CheckOptions) (*CheckAnswer, error) {
	stated := given(options)
	return compute(ctx, c, "check", on, asked{
		CallOptions: stated.CallOptions,
		tensors:     map[string]Feeds{"feeds": feeds},
		of:          stated.Of,
		lists:       map[string][]*Node{"wrt": stated.Wrt},
		values: map[string]any{
			"directions": stated.Directions, "tolerance": stated.Tolerance,
			"memory_budget": stated.MemoryBudget, "precision": stated.Precision,
		},
	}, (*reader).check)
}

// Plan says what a call would take. Nothing is run.
func (c *Client) Plan(ctx context.Context, on Computable, types Types, options ...PlanOptions) (*PlanAnswer, error) {
	stated := given(options)
	return compute(ctx, c, "plan", on, asked{
		CallOptions: stated.CallOptions,
		types:       types,
		of:          stated.Of,
		lists:       map[string][]*Node{"wrt": stated.Wrt, "mapped": stated.Mapped, "outputs": stated.Outputs},
		values: map[string]any{
			"call": stated.Call, "reduce": stated.Reduce, "block": stated.Block,
			"memory_budget": stated.MemoryBudget, "precision": stated.Precision,
		},
	}, (*reader).plan)
}

// Differentiate has the gradient as a graph. Nothing is run.
func (c *Client) Differentiate(
	ctx context.Context, on Computable, types Types, options ...DifferentiateOptions,
) (*DifferentiateAnswer, error) {
	stated := given(options)
	return compute(ctx, c, "differentiate", on, asked{
		CallOptions: stated.CallOptions,
		types:       types,
		of:          stated.Of,
		lists:       map[string][]*Node{"wrt": stated.Wrt},
	}, (*reader).differentiate)
}

// Put has the server keep a tensor, which calls may name from then on.
func (c *Client) Put(ctx context.Context, name string, tensor *Tensor, options ...PutOptions) (*Resident, error) {
	request, err := putting(name, tensor, given(options))
	if err != nil {
		return nil, err
	}
	return answered(ctx, c, request, residentOf)
}

// Get has a tensor that the server keeps, as it is now.
func (c *Client) Get(ctx context.Context, name string, options ...GetOptions) (*ResidentTensor, error) {
	stated := given(options)
	request, err := getting(name, stated.IfMatch, "", stated.Form)
	if err != nil {
		return nil, err
	}
	return c.got(ctx, name, request)
}

// GetIfChanged has the tensor, where it is another version by now than this one; else nil.
func (c *Client) GetIfChanged(ctx context.Context, than *Resident, options ...GetOptions) (*ResidentTensor, error) {
	stated := given(options)
	request, err := getting(than.Name, stated.IfMatch, than.ETag, stated.Form)
	if err != nil {
		return nil, err
	}
	return c.got(ctx, than.Name, request)
}

func (c *Client) got(ctx context.Context, name string, request *request) (*ResidentTensor, error) {
	reply, err := c.once(ctx, request)
	if err != nil {
		return nil, err
	}
	if _, isConditional := request.header["If-None-Match"]; isConditional && reply.status == http.StatusNotModified {
		return nil, nil
	}
	etag, tensor, err := reply.tensor()
	if err != nil {
		return nil, malformed(err)
	}
	size := int64(len(tensor.raw))
	handle := &Resident{Name: name, ETag: etag, DType: tensor.dtype, Shape: tensor.Shape(), Bytes: &size}
	return &ResidentTensor{handle, tensor}, nil
}

// Delete has the server keep a tensor no more. The answer is what there was.
func (c *Client) Delete(ctx context.Context, name string, options ...DeleteOptions) (*Resident, error) {
	path, err := tensorPath(name)
	if err != nil {
		return nil, err
	}
	return answered(ctx, c, deleting(path, given(options).IfMatch), residentOf)
}

// Tensors are all that the server keeps, by name, a page at a time. The last is an error, if there is one.
func (c *Client) Tensors(ctx context.Context, options ...ListOptions) iter.Seq2[*Resident, error] {
	return listed(ctx, c, "tensors", given(options).Limit, residentOf)
}

// Graphs are all that the server keeps, in the order in which they came, a page at a time. The last is an error, if
// there is one.
func (c *Client) Graphs(ctx context.Context, options ...ListOptions) iter.Seq2[*GraphSummary, error] {
	return listed(ctx, c, "graphs", given(options).Limit, summaryOf)
}

// Models are all that the server keeps, by name, a page at a time. The last is an error, if there is one.
func (c *Client) Models(ctx context.Context, options ...ListOptions) iter.Seq2[*Model, error] {
	return listed(ctx, c, "models", given(options).Limit, modelOf)
}

type page[T any] struct {
	entries []T
	next    string
}

func listed[T any](
	ctx context.Context, c *Client, kind string, limit int, read func(object) (T, error),
) iter.Seq2[T, error] {
	readPage := func(answer object) (found page[T], err error) {
		stated, err := objectsOf(answer[kind])
		if err != nil {
			return found, within(kind, err)
		}
		for _, each := range stated {
			entry, err := read(each)
			if err != nil {
				return found, within(kind, err)
			}
			found.entries = append(found.entries, entry)
		}
		found.next, err = optional(answer["next"], textOf)
		return found, within("next", err)
	}
	return func(yield func(T, error) bool) {
		for after, first := "", true; first || after != ""; first = false {
			found, err := answered(ctx, c, listing(kind, limit, after), readPage)
			if err != nil {
				var none T
				yield(none, err)
				return
			}
			for _, entry := range found.entries {
				if !yield(entry, nil) {
					return
				}
			}
			after = found.next
		}
	}
}

// Catalogue are the ops that the server has.
type Catalogue struct {
	Opset int
	Ops   []CatalogueOp
}

// CatalogueOp is one of them. Fields has all that the server says of it, by names on the wire.
type CatalogueOp struct {
	Name   string
	Fields map[string]json.RawMessage
}

// Ops has the server's catalogue.
func (c *Client) Ops(ctx context.Context) (*Catalogue, error) {
	return answered(ctx, c, &request{method: "GET", path: "/v1/ops"}, func(answer object) (*Catalogue, error) {
		made := &Catalogue{}
		var err error
		if made.Opset, err = wholeOf(answer["opset"]); err != nil {
			return nil, within("opset", err)
		}
		rows, err := objectsOf(answer["ops"])
		if err != nil {
			return nil, within("ops", err)
		}
		for _, row := range rows {
			name, err := textOf(row["name"])
			if err != nil {
				return nil, within("ops", err)
			}
			made.Ops = append(made.Ops, CatalogueOp{name, row})
		}
		return made, nil
	})
}
