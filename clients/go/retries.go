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

// Surroundings is a client's environment except the network; tests replace it. Nil fields keep their defaults.
type Surroundings struct {
	// Now is the clock for deadlines.
	Now func() time.Time
	// Wait waits, and returns the error of the context if the context ends first.
	Wait func(ctx context.Context, wait time.Duration) error
	// Chance returns a random number between 0 and 1.
	Chance func() float64
	// NewKey returns a new unique idempotency key.
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

// deadline is the time by which a call, with all its attempts, must finish.
type deadline struct {
	now func() time.Time
	end time.Time
	// isSet says whether there is a deadline.
	isSet bool
	// limit is the time limit of the call; 0 if the deadline is that of its context.
	limit time.Duration
}

// deadlineOf returns the deadline of a call that begins now: that of its timeout or that of its context, whichever is
// first.
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

// left returns the remaining time, if there is a deadline. It returns a DeadlineError if the deadline has passed.
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

// admits reports whether time remains after a wait.
func (d *deadline) admits(wait time.Duration) bool {
	return !d.isSet || wait < d.end.Sub(d.now())
}

func (d *deadline) passed() error { return &DeadlineError{limit: d.limit} }

// tries holds the attempts of one call.
type tries struct {
	remaining int
	wait      time.Duration
	chance    func() float64
	deadline  *deadline
	deaths    int
}

// after returns the time to wait before the next attempt. It returns the error of the last attempt if there is no
// further one.
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

// isPassing reports whether the same request may succeed later.
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
