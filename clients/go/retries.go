package gradserve

import (
	"context"
	"crypto/rand"
	"errors"
	mathrand "math/rand/v2"
	"time"
)

const (
	firstWait   = 500 * time.Millisecond
	longestWait = 8 * time.Second
)

// Surroundings are what a client has of the world beside the network. What is nil is as usual.
type Surroundings struct {
	// Now is the clock that deadlines are told by.
	Now func() time.Time
	// Wait has time pass, unless the context ends before, whose error it returns.
	Wait func(ctx context.Context, wait time.Duration) error
	// Chance is between 0 and 1.
	Chance func() float64
	// NewKey is a key of idempotency, which nobody else has.
	NewKey func() string
}

func (s Surroundings) orUsual() Surroundings {
	if s.Now == nil {
		s.Now = time.Now
	}
	if s.Wait == nil {
		s.Wait = sleep
	}
	if s.Chance == nil {
		s.Chance = mathrand.Float64
	}
	if s.NewKey == nil {
		s.NewKey = rand.Text
	}
	return s
}

func sleep(ctx context.Context, wait time.Duration) error {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// deadline is when a call has to be over, all of its tries together.
type deadline struct {
	now func() time.Time
	end time.Time
	// isSet says whether there is an end.
	isSet bool
	// limit is how long the call may take, 0 where its context says when it ends.
	limit time.Duration
}

// deadlineOf is the end of a call that begins now: by its own time or by that of its context, whichever is first.
func deadlineOf(ctx context.Context, limit time.Duration, now func() time.Time) deadline {
	made := deadline{now: now}
	if limit > 0 {
		made.end, made.isSet, made.limit = now().Add(limit), true, limit
	}
	if end, is := ctx.Deadline(); is {
		if left := time.Until(end); !made.isSet || left < limit {
			made.end, made.isSet, made.limit = now().Add(left), true, 0
		}
	}
	return made
}

// left is how much time there is, where there is an end. It fails with a DeadlineError where that has come.
func (d *deadline) left() (time.Duration, error) {
	if !d.isSet {
		return 0, nil
	}
	left := d.end.Sub(d.now())
	if left <= 0 {
		return 0, d.passed()
	}
	return left, nil
}

// admits says whether there is time left after a wait.
func (d *deadline) admits(wait time.Duration) bool {
	return !d.isSet || wait < d.end.Sub(d.now())
}

func (d *deadline) passed() error { return &DeadlineError{limit: d.limit} }

// tries are those of one call.
type tries struct {
	remaining int
	wait      time.Duration
	chance    func() float64
	deadline  *deadline
	deaths    int
}

// after is how long to wait before the next try. It fails with the error of the last one where there is none.
func (t *tries) after(err error) (time.Duration, error) {
	wait := time.Duration(float64(min(t.wait, longestWait)) * (0.5 + t.chance()/2))
	var refusal *Refusal
	if errors.As(err, &refusal) {
		if refusal.RetryAfter != nil {
			wait = max(wait, *refusal.RetryAfter)
		}
		if refusal.Code == "worker_died" {
			t.deaths++
		}
	}
	if t.remaining == 0 || t.deaths > 1 || !isPassing(err, refusal) || !t.deadline.admits(wait) {
		return 0, err
	}
	t.remaining--
	t.wait = min(2*t.wait, longestWait)
	return wait, nil
}

// isPassing says whether the same request may be answered later on.
func isPassing(err error, refusal *Refusal) bool {
	if refusal == nil {
		var connection *ConnectionError
		return errors.As(err, &connection)
	}
	switch refusal.Status {
	case 408, 429, 503:
		return true
	}
	return refusal.Code == "conflict" && refusal.RetryAfter != nil
}
