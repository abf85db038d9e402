package gradserve

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
)

// reply is an HTTP response as received.
type reply struct {
	status int
	header http.Header
	body   []byte
}

// media returns the media type of the body.
func (r reply) media() string {
	media, _, _ := strings.Cut(r.header.Get("Content-Type"), ";")
	return strings.ToLower(strings.TrimSpace(media))
}

// checked returns an error for a problem report and for a redirect.
func (r reply) checked() error {
	if r.status >= 400 {
		return refusalOf(r).asError()
	}
	if r.status != http.StatusOK && r.status != http.StatusCreated && r.status != http.StatusNotModified {
		return malformedf("unexpected status %d: not a gradserve response", r.status)
	}
	return nil
}

// object returns the JSON object in the body.
func (r reply) object() (object, error) {
	if media := r.media(); media != mediaJSON {
		return nil, malformedf("expected a response of media type %s, got %q", mediaJSON, media)
	}
	members, err := objectOf(r.body)
	return members, within("body", err)
}

func (r reply) isFile() bool { return r.media() == mediaSafetensors || r.media() == mediaBytes }

// parts returns the JSON object of the response, and the tensors beside it.
func (r reply) parts() (object, map[string]*Tensor, error) {
	if !r.isFile() {
		members, err := r.object()
		return members, nil, err
	}
	beside, metadata, err := decodeSafetensors(r.body)
	if err != nil {
		return nil, nil, err
	}
	members, err := objectOf([]byte(metadata["response"]))
	return members, beside, within(metadataName+".response of the safetensors file", err)
}

// tensor returns the etag and the elements of a resident tensor.
func (r reply) tensor() (string, *Tensor, error) {
	if !r.isFile() {
		return r.tensorInJSON()
	}
	tensors, _, err := decodeSafetensors(r.body)
	if err != nil {
		return "", nil, err
	}
	if len(tensors) != 1 {
		return "", nil, inputErrorf("expected exactly one tensor, got %d", len(tensors))
	}
	etag := strings.Trim(strings.TrimPrefix(r.header.Get("ETag"), "W/"), `"`)
	for _, tensor := range tensors {
		return etag, tensor, nil
	}
	return "", nil, nil
}

func (r reply) tensorInJSON() (string, *Tensor, error) {
	members, err := r.object()
	if err != nil {
		return "", nil, err
	}
	etag, err := textOf(members["etag"])
	if err != nil {
		return "", nil, within("etag", err)
	}
	tensor, err := tensorFromJSON(members["tensor"])
	return etag, tensor, within("tensor", err)
}

// transport is the connection to a server.
type transport struct {
	http *http.Client
	base string
	key  string
	most int64
}

func transportOf(address, key string, most int64, over http.RoundTripper) (*transport, error) {
	if strings.IndexFunc(key, func(r rune) bool { return r <= ' ' || r > '~' }) >= 0 {
		return nil, inputErrorf("the API key is not a valid header value")
	}
	base, err := url.Parse(address)
	if err != nil {
		// The message of the parse error contains the address, which may contain a password.
		return nil, inputErrorf("the server's URL is invalid")
	}
	if base.Scheme != "http" && base.Scheme != "https" || base.Host == "" || base.RawQuery != "" || base.Fragment != "" {
		return nil, inputErrorf("the server's URL must be an http:// or https:// URL with a host and no query or fragment")
	}
	client := &http.Client{
		Transport:     over,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return &transport{client, strings.TrimRight(base.String(), "/"), key, most}, nil
}

// send sends one request and returns the response.
func (t *transport) send(running *running, request *request) (reply, error) {
	left, err := running.deadline.left()
	if err != nil {
		return reply{}, err
	}
	sent, err := t.prepared(running.ctx, request, request.within(left, running.deadline.isSet))
	if err != nil {
		return reply{}, err
	}
	response, err := t.http.Do(sent)
	if err != nil {
		return reply{}, running.failed(request, err)
	}
	defer response.Body.Close()
	body, err := t.read(response)
	if err != nil {
		return reply{}, running.failed(request, err)
	}
	return reply{response.StatusCode, response.Header, body}, nil
}

// prepared returns a request of net/http without GetBody, so that net/http does not retry it on its own.
func (t *transport) prepared(ctx context.Context, request *request, target string) (*http.Request, error) {
	sent, err := http.NewRequestWithContext(ctx, request.method, t.base+target, nil)
	if err != nil {
		return nil, inputErrorf("cannot send %s %s", request.method, request.path)
	}
	if body := request.reader(); body != nil {
		sent.Body, sent.ContentLength = body, request.length()
	}
	for name, value := range request.header {
		sent.Header.Set(name, value)
	}
	// A compressed response would exceed its stated length, and tensors do not compress well.
	sent.Header.Set("Accept-Encoding", "identity")
	sent.Header.Set("User-Agent", "gradserve-go/"+Version)
	if t.key != "" {
		sent.Header.Set("Authorization", "Bearer "+t.key)
	}
	return sent, nil
}

// read reads the body of a response up to the size limit.
func (t *transport) read(response *http.Response) ([]byte, error) {
	if encoding := response.Header.Get("Content-Encoding"); encoding != "" && !strings.EqualFold(encoding, "identity") {
		return nil, malformedf("the response has an unexpected Content-Encoding")
	}
	tooLarge := &TooLargeError{&TransportError{message: "the response exceeds the size limit (see WithMaxResponseBytes)"}}
	if response.ContentLength > t.most {
		return nil, tooLarge
	}
	if response.ContentLength >= 0 {
		body := make([]byte, response.ContentLength)
		_, err := io.ReadFull(response.Body, body)
		return body, err
	}
	var body bytes.Buffer
	count, err := io.Copy(&body, io.LimitReader(response.Body, t.most+1))
	if err == nil && count > t.most {
		return nil, tooLarge
	}
	return body.Bytes(), err
}

// running is a call in progress, with all of its attempts.
type running struct {
	client   *Client
	ctx      context.Context
	caller   context.Context
	deadline deadline
}

// failed returns the error if there is no response. It does not quote headers or bodies.
func (r *running) failed(request *request, err error) error {
	var known *TransportError
	if errors.As(err, &known) {
		return err
	}
	if ended := r.ended(); ended != nil {
		return ended
	}
	// The message of net/http contains the address, whose path may contain names, or a password.
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		err = wrapped.Err
	}
	message := request.method + " " + request.path + ": " + err.Error()
	return &ConnectionError{&TransportError{message, err}}
}

// ended returns the reason why the call ended early, if it did.
func (r *running) ended() error {
	if err := r.caller.Err(); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return &canceledError{err}
	}
	if r.ctx.Err() != nil {
		return r.deadline.passed()
	}
	return nil
}

// canceledError is the error of calls whose context was cancelled.
type canceledError struct{ cause error }

func (e *canceledError) Error() string { return "gradserve: call cancelled: " + e.cause.Error() }

func (e *canceledError) Unwrap() error { return e.cause }
