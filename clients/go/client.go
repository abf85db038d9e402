package gradserve

import (
	"context"
	"encoding/json"
	"iter"
	"net/http"
	"os"
	"time"
)

// Version is the version of the client, and of the server that it was released with.
const Version = "0.1.0"

const (
	// keyVariable is the environment variable with the default API key.
	keyVariable     = "GRADSERVE_API_KEY"
	usualTimeout    = 60 * time.Second
	usualRetries    = 2
	usualMostOfBody = 256 << 20
)

// Client is a client of one server. Goroutines can share it.
type Client struct {
	transport    *transport
	timeout      time.Duration
	retries      int
	idempotency  bool
	surroundings Surroundings
}

// ClientOption is a setting of a Client.
type ClientOption func(*settings)

type settings struct {
	Client
	key  string
	most int64
	over http.RoundTripper
}

// WithAPIKey sets the API key. The default is the environment variable GRADSERVE_API_KEY. Errors never contain the key.
func WithAPIKey(key string) ClientOption { return func(s *settings) { s.key = key } }

// WithTimeout sets the time limit of a call, for all of its attempts together. 0 means no limit. The default is a
// minute.
func WithTimeout(timeout time.Duration) ClientOption {
	return func(s *settings) { s.timeout = timeout }
}

// WithRetries sets the maximum number of retries of a call. The default is 2.
func WithRetries(retries int) ClientOption { return func(s *settings) { s.retries = max(0, retries) } }

// WithIdempotency sets whether calls that store something send an Idempotency-Key. Without one they are not retried.
func WithIdempotency(idempotency bool) ClientOption {
	return func(s *settings) { s.idempotency = idempotency }
}

// WithMaxResponseBytes sets the maximum size of a response. The default is 256 MiB.
func WithMaxResponseBytes(most int64) ClientOption { return func(s *settings) { s.most = most } }

// WithTransport replaces the client's transport, for example to use a proxy.
func WithTransport(over http.RoundTripper) ClientOption { return func(s *settings) { s.over = over } }

// WithSurroundings replaces clock, randomness and key generation.
func WithSurroundings(surroundings Surroundings) ClientOption {
	return func(s *settings) { s.surroundings = surroundings }
}

// NewClient creates a client of the server at a URL. It returns an InputError if the URL or the API key is invalid.
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

// usualTransport closes idle connections before the server does, which closes them after 75 s by default.
func usualTransport() http.RoundTripper {
	return &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		ForceAttemptHTTP2:   true,
		MaxIdleConnsPerHost: 16,
		IdleConnTimeout:     time.Minute,
		TLSHandshakeTimeout: 10 * time.Second,
	}
}

// Close closes idle connections.
func (c *Client) Close() { c.transport.http.CloseIdleConnections() }

// Forward computes the values of nodes, by default of the last one.
func (c *Client) Forward(
	ctx context.Context, on Computable, feeds Feeds, options ...ForwardOptions,
) (*ForwardAnswer, error) {
	stated := given(options)
	return compute(ctx, c, "forward", on, stated.asked(feeds), (*reader).forward)
}

// Gradients computes values, and the gradients of one node.
func (c *Client) Gradients(
	ctx context.Context, on Computable, feeds Feeds, options ...GradientsOptions,
) (*GradientsAnswer, error) {
	stated := given(options)
	asked := stated.asked(feeds)
	asked.of, asked.lists["wrt"], asked.cotangent = stated.Of, stated.Wrt, stated.Cotangent
	return compute(ctx, c, "gradients", on, asked, (*reader).gradients)
}

// VJP computes vector-Jacobian products with the cotangents of outputs.
func (c *Client) VJP(ctx context.Context, on Computable, feeds Feeds, options ...VJPOptions) (*GradientsAnswer, error) {
	stated := given(options)
	asked := stated.asked(feeds)
	asked.tensors["cotangents"], asked.lists["wrt"] = stated.Cotangents, stated.Wrt
	asked.values["batched"] = stated.Batched
	return compute(ctx, c, "vjp", on, asked, (*reader).gradients)
}

// JVP computes Jacobian-vector products with the tangents of leaves.
func (c *Client) JVP(ctx context.Context, on Computable, feeds Feeds, options ...JVPOptions) (*JVPAnswer, error) {
	stated := given(options)
	asked := stated.asked(feeds)
	asked.tensors["tangents"] = stated.Tangents
	return compute(ctx, c, "jvp", on, asked, (*reader).jvp)
}

// Jacobian computes full Jacobians, one block for each output and node of Wrt.
func (c *Client) Jacobian(
	ctx context.Context, on Computable, feeds Feeds, options ...JacobianOptions,
) (*JacobianAnswer, error) {
	stated := given(options)
	asked := stated.asked(feeds)
	asked.lists["wrt"] = stated.Wrt
	return compute(ctx, c, "jacobian", on, asked, (*reader).jacobian)
}

// HVP computes exact Hessian-vector products.
func (c *Client) HVP(ctx context.Context, on Computable, feeds Feeds, options ...HVPOptions) (*HVPAnswer, error) {
	stated := given(options)
	asked := stated.asked(feeds)
	asked.of, asked.lists["wrt"], asked.tensors["vectors"] = stated.Of, stated.Wrt, stated.Vectors
	return compute(ctx, c, "hvp", on, asked, (*reader).hvp)
}

// Hessian computes full Hessians, one block for each pair of nodes of Wrt, or one matrix with LayoutMatrix.
func (c *Client) Hessian(
	ctx context.Context, on Computable, feeds Feeds, options ...HessianOptions,
) (*HessianAnswer, error) {
	stated := given(options)
	asked := stated.asked(feeds)
	asked.of, asked.lists["wrt"], asked.values["layout"] = stated.Of, stated.Wrt, stated.Layout
	return compute(ctx, c, "hessian", on, asked, (*reader).hessian)
}

// Batch runs one graph on many examples: it computes the values and gradients of each, or their sum or mean.
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

// Plan estimates the cost of a call (a dry run), without running it.
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

// Differentiate returns the gradient as a graph, without running anything.
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

// Put stores a tensor on the server and returns a handle that calls accept in place of a tensor.
func (c *Client) Put(ctx context.Context, name string, tensor *Tensor, options ...PutOptions) (*Resident, error) {
	request, err := putting(name, tensor, given(options))
	if err != nil {
		return nil, err
	}
	return answered(ctx, c, request, residentOf)
}

// Get downloads the current version of a tensor.
func (c *Client) Get(ctx context.Context, name string, options ...GetOptions) (*ResidentTensor, error) {
	stated := given(options)
	request, err := getting(name, stated.IfMatch, "", stated.Form)
	if err != nil {
		return nil, err
	}
	return c.got(ctx, name, request)
}

// GetIfChanged downloads a tensor if its version differs from this handle's; otherwise it returns nil.
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

// Delete deletes a tensor from the server and returns the metadata of the deleted version.
func (c *Client) Delete(ctx context.Context, name string, options ...DeleteOptions) (*Resident, error) {
	path, err := tensorPath(name)
	if err != nil {
		return nil, err
	}
	return answered(ctx, c, deleting(path, given(options).IfMatch), residentOf)
}

// Tensors iterates over all resident tensors by name, and fetches them page by page. If a page fails, the last item is
// an error.
func (c *Client) Tensors(ctx context.Context, options ...ListOptions) iter.Seq2[*Resident, error] {
	return listed(ctx, c, "tensors", given(options).Limit, residentOf)
}

// Graphs iterates over all registered graphs in order of registration, and fetches them page by page. If a page fails,
// the last item is an error.
func (c *Client) Graphs(ctx context.Context, options ...ListOptions) iter.Seq2[*GraphSummary, error] {
	return listed(ctx, c, "graphs", given(options).Limit, summaryOf)
}

// Models iterates over all models by name, and fetches them page by page. If a page fails, the last item is an error.
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

// Catalogue holds the ops of a server.
type Catalogue struct {
	Opset int
	Ops   []CatalogueOp
}

// CatalogueOp is an op of a server. Fields holds its description by API names.
type CatalogueOp struct {
	Name   string
	Fields map[string]json.RawMessage
}

// Ops returns the server's op catalogue.
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
