package gradserve

import (
	"context"
	"fmt"
	"time"
)

// InputError is for what the client knows to be wrong, and has not sent: mend the program.
type InputError struct{ message string }

func (e *InputError) Error() string { return "gradserve: " + e.message }

func inputErrorf(format string, arguments ...any) *InputError {
	return &InputError{fmt.Sprintf(format, arguments...)}
}

// within is the same error, of a part of something.
func within(part string, err error) error {
	if input, is := err.(*InputError); is {
		return &InputError{part + ": " + input.message}
	}
	return err
}

// TransportError is for calls without an answer that could be read. What it is more closely is a ConnectionError, a
// MalformedError or a TooLargeError, in which it is found by errors.As.
type TransportError struct {
	message string
	cause   error
}

func (e *TransportError) Error() string { return "gradserve: " + e.message }

// Unwrap is what went wrong below, if anything did.
func (e *TransportError) Unwrap() error { return e.cause }

// ConnectionError is for calls that got no answer, or half of one: look at the network, or try again. What keeps
// something may have been kept.
type ConnectionError struct{ *TransportError }

// Unwrap is the TransportError.
func (e *ConnectionError) Unwrap() error { return e.TransportError }

// MalformedError is for answers that are not what was promised, such as another media type, broken JSON, or a tensor
// that does not fit its bytes: look at what stands in between.
type MalformedError struct{ *TransportError }

// Unwrap is the TransportError.
func (e *MalformedError) Unwrap() error { return e.TransportError }

func malformedf(format string, arguments ...any) *MalformedError {
	return &MalformedError{&TransportError{message: fmt.Sprintf(format, arguments...)}}
}

// malformed is what is wrong with an answer, where reading it found that.
func malformed(err error) error {
	if input, is := err.(*InputError); is {
		return malformedf("the answer is not as promised: %s", input.message)
	}
	return err
}

// TooLargeError is for answers that are longer than may be read: ask for less, or see WithMaxResponseBytes.
type TooLargeError struct{ *TransportError }

// Unwrap is the TransportError.
func (e *TooLargeError) Unwrap() error { return e.TransportError }

// DeadlineError is for calls whose time was up, by the client's clock, or where there is a Refusal by the server's: ask
// for less, or give more. It is a context.DeadlineExceeded, too.
type DeadlineError struct {
	// Refusal is what the server said; nil where it is the client's own deadline.
	Refusal *Refusal
	limit   time.Duration
}

func (e *DeadlineError) Error() string {
	switch {
	case e.Refusal != nil:
		return e.Refusal.Error()
	case e.limit > 0:
		return fmt.Sprintf("gradserve: no answer within %v", e.limit)
	}
	return "gradserve: no answer within the deadline of the context"
}

// Unwrap has context.DeadlineExceeded, and the server's refusal if there is one.
func (e *DeadlineError) Unwrap() []error {
	if e.Refusal == nil {
		return []error{context.DeadlineExceeded}
	}
	return []error{context.DeadlineExceeded, e.Refusal}
}

// GraphError is for requests that are wrong, or more than one may ask: mend the graph, or what it is fed.
type GraphError struct{ *Refusal }

// AuthenticationError is for keys that are missing, unknown, or not allowed this: get another.
type AuthenticationError struct{ *Refusal }

// RateError is for keys that have used up their rate: ask less often.
type RateError struct{ *Refusal }

// OverloadError is for servers that are busy, or about to stop: ask later.
type OverloadError struct{ *Refusal }

// NotFoundError is for names and ids under which nothing is kept: put or register it.
type NotFoundError struct{ *Refusal }

// ConditionError is for what somebody else has written meanwhile, or needs it: read again, then write.
type ConditionError struct{ *Refusal }

// StoreFullError is for servers without room for what was to be kept: delete something.
type StoreFullError struct{ *Refusal }

// ServerError is for faults of the server's own: report it with its RequestID.
type ServerError struct{ *Refusal }

// Unwrap is the Refusal.
func (e *GraphError) Unwrap() error { return e.Refusal }

// Unwrap is the Refusal.
func (e *AuthenticationError) Unwrap() error { return e.Refusal }

// Unwrap is the Refusal.
func (e *RateError) Unwrap() error { return e.Refusal }

// Unwrap is the Refusal.
func (e *OverloadError) Unwrap() error { return e.Refusal }

// Unwrap is the Refusal.
func (e *NotFoundError) Unwrap() error { return e.Refusal }

// Unwrap is the Refusal.
func (e *ConditionError) Unwrap() error { return e.Refusal }

// Unwrap is the Refusal.
func (e *StoreFullError) Unwrap() error { return e.Refusal }

// Unwrap is the Refusal.
func (e *ServerError) Unwrap() error { return e.Refusal }
