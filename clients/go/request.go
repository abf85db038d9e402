package gradserve

import (
	"bytes"
	"cmp"
	"io"
	"net/url"
	"slices"
	"strconv"
	"time"
)

// request is a request to send. A request that keeps (stores) something is retried only under an Idempotency-Key.
type request struct {
	method string
	path   string
	query  url.Values
	header map[string]string
	body   [][]byte
	keeps  bool
}

// within returns the path and the query with the remaining time.
func (r *request) within(left time.Duration, limited bool) string {
	query := url.Values{}
	for name, values := range r.query {
		query[name] = values
	}
	if limited {
		query.Set("timeout_ms", strconv.FormatInt(max(1, left.Milliseconds()), 10))
	}
	if len(query) == 0 {
		return r.path
	}
	return r.path + "?" + query.Encode()
}

func (r *request) length() (total int64) {
	for _, piece := range r.body {
		total += int64(len(piece))
	}
	return total
}

// reader returns the body without copying it, or nil if there is none.
func (r *request) reader() io.ReadCloser {
	if len(r.body) == 0 {
		return nil
	}
	pieces := make([]io.Reader, len(r.body))
	for i, piece := range r.body {
		pieces[i] = bytes.NewReader(piece)
	}
	return io.NopCloser(io.MultiReader(pieces...))
}

// computing builds a call on the first nodes of a graph. The nodes of a registered graph are not sent.
func computing(call string, graph *Graph, count int, asked asked, isRegistered bool) (*request, error) {
	message := message{fields: map[string]any{}}
	if !isRegistered {
		message.fields["graph"] = message.graph(graph, count)
	}
	if err := message.fill(graph, count, asked); err != nil {
		return nil, within(call, err)
	}
	form := message.form(asked.Form)
	if form != Safetensors {
		message.fields["encoding"] = form
	}
	media, body, err := message.encoded(form)
	if err != nil {
		return nil, within(call, err)
	}
	return &request{
		method: "POST",
		path:   "/v1/" + call,
		header: map[string]string{"Content-Type": media, "Accept": accepted(media, asked)},
		body:   body,
		keeps:  len(asked.store) > 0,
	}, nil
}

// accepted returns the encoding of the response: that of the request, or safetensors if a feed is a resident tensor,
// since results may then be large.
func accepted(media string, asked asked) string {
	isResident := false
	for _, value := range asked.tensors["feeds"] {
		switch value.(type) {
		case *Resident, *Rows:
			isResident = true
		}
	}
	if media == mediaSafetensors || isResident && asked.Form == "" {
		return mediaSafetensors
	}
	return mediaJSON
}

// registering builds the request that registers a graph. Repeating it changes nothing.
func registering(graph *Graph, options RegisterOptions) (*request, error) {
	message := message{fields: map[string]any{}}
	if options.Description != "" {
		message.fields["description"] = options.Description
	}
	message.fields["graph"] = message.graph(graph, len(graph.nodes))
	media, body, err := message.encoded(message.form(options.Form))
	if err != nil {
		return nil, err
	}
	header := map[string]string{"Content-Type": media, "Accept": mediaJSON}
	return &request{method: "POST", path: "/v1/graphs", header: header, body: body}, nil
}

// putting builds the request that stores a tensor. Without a condition, repeating it changes nothing.
func putting(name string, tensor *Tensor, options PutOptions) (*request, error) {
	path, err := tensorPath(name)
	if err != nil {
		return nil, err
	}
	if tensor == nil {
		return nil, inputErrorf("cannot put %q: the tensor is nil", name)
	}
	media, body, err := alone(tensor, options.Form)
	if err != nil {
		return nil, err
	}
	query := url.Values{}
	if options.Durable != nil {
		query.Set("durable", strconv.FormatBool(*options.Durable))
	}
	header := conditions(options.IfMatch, options.IfNoneMatch)
	keeps := len(header) > 0
	header["Content-Type"], header["Accept"] = media, mediaJSON
	return &request{method: "PUT", path: path, query: query, header: header, body: body, keeps: keeps}, nil
}

// alone encodes a tensor that is the whole body.
func alone(tensor *Tensor, form Form) (string, [][]byte, error) {
	form = cmp.Or(form, defaultForm(len(tensor.raw)))
	if form == Safetensors {
		body, err := EncodeSafetensors(map[string]*Tensor{"tensor": tensor}, nil)
		return mediaSafetensors, body, err
	}
	text, err := written(tensor.toJSON(form))
	return mediaJSON, [][]byte{text}, err
}

// getting builds the request that downloads a tensor, as safetensors unless another form is given.
func getting(name, ifMatch, ifNoneMatch string, form Form) (*request, error) {
	path, err := tensorPath(name)
	if err != nil {
		return nil, err
	}
	query, header := url.Values{}, conditions(ifMatch, ifNoneMatch)
	header["Accept"] = mediaSafetensors
	if !slices.Contains([]Form{"", Safetensors}, form) {
		query.Set("encoding", string(form))
		header["Accept"] = mediaJSON
	}
	return &request{method: "GET", path: path, query: query, header: header}, nil
}

// puttingModel builds the request that stores a model. Without a condition, repeating it changes nothing.
func puttingModel(name string, definition ModelDefinition, options ModelOptions) (*request, error) {
	path, err := modelPath(name)
	if err != nil {
		return nil, err
	}
	body, err := written(definition.toJSON())
	if err != nil {
		return nil, err
	}
	header := conditions(options.IfMatch, options.IfNoneMatch)
	keeps := len(header) > 0
	header["Content-Type"], header["Accept"] = mediaJSON, mediaJSON
	return &request{
		method: "PUT", path: path, header: header, body: [][]byte{body}, keeps: keeps,
	}, nil
}

func deleting(path, ifMatch string) *request {
	return &request{method: "DELETE", path: path, header: conditions(ifMatch, ""), keeps: true}
}

// listing builds the request for a page, which starts after an entry.
func listing(kind string, limit int, after string) *request {
	query := url.Values{}
	if limit != 0 {
		query.Set("limit", strconv.Itoa(limit))
	}
	if after != "" {
		query.Set("after", after)
	}
	return &request{method: "GET", path: "/v1/" + kind, query: query}
}

func tensorPath(name string) (string, error) { return pathOf("tensors", name) }

func graphPath(id string) (string, error) { return pathOf("graphs", id) }

func modelPath(name string) (string, error) { return pathOf("models", name) }

// pathOf returns an error for an empty name, whose path would be that of the listing.
func pathOf(kind, name string) (string, error) {
	if name == "" {
		return "", inputErrorf("the name or id must not be empty")
	}
	return "/v1/" + kind + "/" + url.PathEscape(name), nil
}

func conditions(ifMatch, ifNoneMatch string) map[string]string {
	stated := map[string]string{}
	for name, etag := range map[string]string{"If-Match": ifMatch, "If-None-Match": ifNoneMatch} {
		if etag != "" && etag != "*" {
			etag = `"` + etag + `"`
		}
		if etag != "" {
			stated[name] = etag
		}
	}
	return stated
}
