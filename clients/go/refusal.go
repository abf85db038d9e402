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

// Refusal is a problem report of the server. errors.As finds it in AuthenticationError, ConditionError, DeadlineError,
// GraphError, NotFoundError, OverloadError, RateError, ServerError and StoreFullError.
//
// New codes may be added at any time. Members that the report lacks, for example in an error page of a proxy, are empty
// or nil.
type Refusal struct {
	Status int
	// Code is for programs, Detail is for people.
	Code, Detail string
	// Type is the address of the code's documentation page. Title is its heading.
	Type, Title string
	RequestID   string
	// Node is the id of the node with the error, Operand the position of the operand. If the error is in a function,
	// Node runs the function, Function is the function's index, and FunctionNode is the node in it.
	Node, Function, FunctionNode, Operand *int
	Expected, Got                         string
	// Pointer is a JSON pointer into the request.
	Pointer string
	// Errors lists all errors if the server found several.
	Errors []*Refusal
	// RetryAfter is the time after which the server accepts a retry.
	RetryAfter *time.Duration
	// Extra holds the members that this client does not know.
	Extra map[string]json.RawMessage
	// remark is a fact that only the client knows.
	remark string
}

func (r *Refusal) Error() string {
	said := fmt.Sprintf("%s: %s", r.Code, r.Detail)
	if r.Code == "" {
		said = fmt.Sprintf("status %d without a problem report", r.Status)
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

// refusalOf reads a problem report from a response. A report has a code.
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

// readMember reports whether the client knows this member.
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

// retryAfterOf reads a whole number of seconds and ignores any other value.
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

// asError converts a problem report into an error. The status decides the type, not the code, because new codes are
// added.
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
