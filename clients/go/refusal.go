package gradserve

import (
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Refusal is a report of the server's. It is found by errors.As in every error that says what to do about it:
// AuthenticationError, ConditionError, DeadlineError, GraphError, NotFoundError, OverloadError, RateError, ServerError
// and StoreFullError.
//
// Codes are an open list. What did not come, as with a proxy's page, is empty or nil.
type Refusal struct {
	Status int
	// Code is a word for programs, Detail a sentence for people.
	Code, Detail string
	// Type leads to the page of the code, whose heading is Title.
	Type, Title string
	RequestID   string
	// Node is the node that it is about, Operand the place of the operand. In a function Node is what runs it, Function is
	// its index, and FunctionNode the node in it.
	Node, Function, FunctionNode, Operand *int
	Expected, Got                         string
	// Pointer is a JSON pointer into the request.
	Pointer string
	// Errors has all that was found wrong, where that was more than one thing.
	Errors []*Refusal
	// RetryAfter is for how long the server wants to be left alone.
	RetryAfter *time.Duration
	// Extra has the members that this client does not know.
	Extra map[string]json.RawMessage
	// remark is what the client knows beside the report.
	remark string
}

func (r *Refusal) Error() string {
	said := fmt.Sprintf("%s: %s", r.Code, r.Detail)
	if r.Code == "" {
		said = fmt.Sprintf("status %d, without a report that says why", r.Status)
	}
	if r.remark != "" {
		said += " (" + r.remark + ")"
	}
	return "gradserve: " + said
}

func (r *Refusal) add(sentence string) {
	if r.remark != "" {
		sentence = r.remark + "; " + sentence
	}
	r.remark = sentence
}

// refusalOf reads an answer that is one; a report has a code.
func refusalOf(reply reply) *Refusal {
	refusal := &Refusal{}
	if media := reply.media(); media == mediaProblem || media == mediaJSON {
		if report, err := objectOf(reply.body); err == nil {
			if _, err := textOf(report["code"]); err == nil {
				refusal.read(report)
			}
		}
	}
	refusal.Status = reply.status
	refusal.RetryAfter = retryAfterOf(reply.header)
	return refusal
}

func (r *Refusal) read(report object) {
	r.Extra = map[string]json.RawMessage{}
	for name, value := range report {
		if !r.readMember(name, value) {
			r.Extra[name] = value
		}
	}
}

// readMember says whether this is a member that the client knows.
func (r *Refusal) readMember(name string, value json.RawMessage) bool {
	texts := map[string]*string{
		"code": &r.Code, "detail": &r.Detail, "type": &r.Type, "title": &r.Title, "request_id": &r.RequestID,
		"expected": &r.Expected, "got": &r.Got, "pointer": &r.Pointer,
	}
	if text, known := texts[name]; known {
		return json.Unmarshal(value, text) == nil
	}
	numbers := map[string]**int{
		"node": &r.Node, "function": &r.Function, "function_node": &r.FunctionNode, "operand": &r.Operand,
	}
	if number, known := numbers[name]; known {
		return json.Unmarshal(value, number) == nil
	}
	switch name {
	case "status":
		return json.Unmarshal(value, &r.Status) == nil
	case "errors":
		return r.readErrors(value)
	}
	return false
}

func (r *Refusal) readErrors(value json.RawMessage) bool {
	reports, err := objectsOf(value)
	if err != nil {
		return false
	}
	for _, report := range reports {
		one := &Refusal{}
		one.read(report)
		r.Errors = append(r.Errors, one)
	}
	return true
}

// retryAfterOf reads whole seconds; anything else is passed over.
func retryAfterOf(header http.Header) *time.Duration {
	stated := strings.TrimSpace(header.Get("Retry-After"))
	if stated == "" || strings.Trim(stated, "0123456789") != "" {
		return nil
	}
	wait := time.Duration(math.MaxInt64)
	if seconds, err := strconv.ParseInt(stated, 10, 64); err == nil && seconds < int64(wait/time.Second) {
		wait = time.Duration(seconds) * time.Second
	}
	return &wait
}

// asError is the report as the error that says what to do about it; the status decides, since codes are added.
func (r *Refusal) asError() error {
	switch r.Status {
	case 401, 403:
		return &AuthenticationError{r}
	case 404:
		return &NotFoundError{r}
	case 408, 504:
		return &DeadlineError{Refusal: r}
	case 409, 412:
		return &ConditionError{r}
	case 429:
		return &RateError{r}
	case 503:
		return &OverloadError{r}
	case 507:
		return &StoreFullError{r}
	}
	if r.Status >= 500 {
		return &ServerError{r}
	}
	return &GraphError{r}
}
