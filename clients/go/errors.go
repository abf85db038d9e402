package gradserve

import (
	"context"
	"fmt"
	"time"
)

// InputError is an invalid argument, detected by the client before it sent anything: fix the program.
type InputError struct{ message string }

func (e *InputError) Error() string { return "gradserve: " + e.message }

func inputErrorf(format string, arguments ...any) *InputError {
	return &InputError{fmt.Sprintf(format, arguments...)}
}

// within prefixes an InputError with the part of the input that it is about.
func within(part string, err error) error {
	if input, is := err.(*InputError); is {
		return &InputError{part + ": " + input.message}
	}
	return err
}

// TransportError means that there is no readable response. errors.As finds a ConnectionError, a MalformedError or a
// TooLargeError in it.
type TransportError struct {
	message string
	cause   error
}

func (e *TransportError) Error() string { return "gradserve: " + e.message }

// Unwrap returns the underlying error, if there is one.
func (e *TransportError) Unwrap() error { return e.cause }

// ConnectionError means that there is no response, or an incomplete one: check the network, or retry. The server may
// still have executed the request.
type ConnectionError struct{ *TransportError }

// Unwrap returns the TransportError.
func (e *ConnectionError) Unwrap() error { return e.TransportError }

// MalformedError means that the response is invalid: wrong media type, invalid JSON, or a tensor that does not fit its
// bytes. Look for a proxy in between.
type MalformedError struct{ *TransportError }

// Unwrap returns the TransportError.
func (e *MalformedError) Unwrap() error { return e.TransportError }

func malformedf(format string, arguments ...any) *MalformedError {
	return &MalformedError{&TransportError{message: fmt.Sprintf(format, arguments...)}}
}

// malformed converts an error found while reading a response.
func malformed(err error) error {
	if input, is := err.(*InputError); is {
		return malformedf("invalid response: %s", input.message)
	}
	return err
}

// TooLargeError means that the response exceeds the size limit: request less, or see WithMaxResponseBytes.
type TooLargeError struct{ *TransportError }

// Unwrap returns the TransportError.
func (e *TooLargeError) Unwrap() error { return e.TransportError }

// DeadlineError means that the timeout expired, on the client or, if Refusal is set, on the server: request less, or
// raise the timeout. It is also a context.DeadlineExceeded.
type DeadlineError struct {
	// Refusal is the problem report of the server; nil if the client's own deadline passed.
	Refusal *Refusal
	limit   time.Duration
}

func (e *DeadlineError) Error() string {
	switch {
	case e.Refusal != nil:
		return e.Refusal.Error()
	case e.limit > 0:
		return fmt.Sprintf("gradserve: no response within %v", e.limit)
	}
	return "gradserve: no response before the deadline of the context"
}

// Unwrap returns context.DeadlineExceeded, and the server's problem report if there is one.
func (e *DeadlineError) Unwrap() []error {
	if e.Refusal == nil {
		return []error{context.DeadlineExceeded}
	}
	return []error{context.DeadlineExceeded, e.Refusal}
}

// GraphError means that the request is invalid or exceeds a limit: fix the graph or its feeds.
type GraphError struct{ *Refusal }

// AuthenticationError means that the API key is missing, unknown, or lacks the permission: use another key.
type AuthenticationError struct{ *Refusal }

// RateError means that the API key has exceeded its rate limit: send fewer requests.
type RateError struct{ *Refusal }

// OverloadError means that the server is busy or shutting down: retry later.
type OverloadError struct{ *Refusal }

// NotFoundError means that nothing is stored under this name or id: put or register it.
type NotFoundError struct{ *Refusal }

// ConditionError means that another client has written it, or that it is in use: read again, then write.
type ConditionError struct{ *Refusal }

// StoreFullError means that the server has no room for the request's data: delete something.
type StoreFullError struct{ *Refusal }

// ServerError is an internal error of the server: report it with its RequestID.
type ServerError struct{ *Refusal }

// Unwrap returns the Refusal.
func (e *GraphError) Unwrap() error { return e.Refusal }

// Unwrap returns the Refusal.
func (e *AuthenticationError) Unwrap() error { return e.Refusal }

// Unwrap returns the Refusal.
func (e *RateError) Unwrap() error { return e.Refusal }

// Unwrap returns the Refusal.
func (e *OverloadError) Unwrap() error { return e.Refusal }

// Unwrap returns the Refusal.
func (e *NotFoundError) Unwrap() error { return e.Refusal }

// Unwrap returns the Refusal.
func (e *ConditionError) Unwrap() error { return e.Refusal }

// Unwrap returns the Refusal.
func (e *StoreFullError) Unwrap() error { return e.Refusal }

// Unwrap returns the Refusal.
func (e *ServerError) Unwrap() error { return e.Refusal }
