//! Retries: deadlines, attempts and waits. The clock and randomness are injected.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::{Error, ErrorKind, Refusal, Result};

const FIRST_WAIT: Duration = Duration::from_millis(500);
const LONGEST_WAIT: Duration = Duration::from_secs(8);

/// A client's environment except the network; tests replace it.
pub trait Surroundings: Send + Sync {
    /// Returns the time since some moment in the past.
    fn now(&self) -> Duration;

    /// Returns whether waiting advances the clock by itself, so that the client does not sleep.
    fn pass(&self, wait: Duration) -> bool;

    /// Returns a random number between 0 and 1.
    fn chance(&self) -> f64;

    /// Returns a new unique idempotency key.
    fn new_key(&self) -> String;
}

/// The real environment.
pub(crate) struct Usual {
    start: Instant,
}

impl Usual {
    pub(crate) fn new() -> Self {
        Self { start: Instant::now() }
    }
}

/// Returns 64 bits from the generator that seeds hash maps, which each thread seeds from the operating system.
fn random() -> u64 {
    RandomState::new().build_hasher().finish()
}

impl Surroundings for Usual {
    fn now(&self) -> Duration {
        self.start.elapsed()
    }

    fn pass(&self, _: Duration) -> bool {
        false
    }

    fn chance(&self) -> f64 {
        random() as f64 / u64::MAX as f64
    }

    fn new_key(&self) -> String {
        format!("{:016x}{:016x}", random(), random())
    }
}

/// The default settings of calls.
#[derive(Clone)]
pub(crate) struct Policy {
    /// The time limit for all attempts of a call; None means no limit.
    pub(crate) timeout: Option<Duration>,
    pub(crate) retries: u32,
    pub(crate) idempotency: bool,
    pub(crate) surroundings: Arc<dyn Surroundings>,
}

/// The time by which a call, with all its attempts, must finish.
pub(crate) struct Deadline {
    surroundings: Arc<dyn Surroundings>,
    limit: Option<Duration>,
    start: Duration,
}

impl Deadline {
    /// Returns the deadline of a call that begins now.
    pub(crate) fn new(policy: &Policy) -> Self {
        Self { surroundings: Arc::clone(&policy.surroundings), limit: policy.timeout, start: policy.surroundings.now() }
    }

    /// Returns the remaining time, if there is a deadline. Fails if the deadline has passed.
    pub(crate) fn left(&self) -> Result<Option<Duration>> {
        let Some(limit) = self.limit else {
            return Ok(None);
        };
        let left = limit.saturating_sub(self.surroundings.now() - self.start);
        if left.is_zero() {
            return Err(self.passed());
        }
        Ok(Some(left))
    }

    /// Returns whether time remains after a wait.
    fn admits(&self, wait: Duration) -> bool {
        self.left().is_ok_and(|left| left.is_none_or(|left| wait < left))
    }

    pub(crate) fn passed(&self) -> Error {
        Error::deadline(self.limit.unwrap_or_default())
    }
}

/// The attempts of one call.
pub(crate) struct Tries {
    remaining: u32,
    wait: Duration,
    deaths: u32,
}

impl Tries {
    pub(crate) fn new(policy: &Policy, may_repeat: bool) -> Self {
        Self { remaining: if may_repeat { policy.retries } else { 0 }, wait: FIRST_WAIT, deaths: 0 }
    }

    /// Returns the time to wait before the next attempt. Fails with the error of the last attempt if there is no
    /// further one.
    pub(crate) fn after(&mut self, error: Error, policy: &Policy, deadline: &Deadline) -> Result<Duration> {
        let jitter = 0.5 + policy.surroundings.chance() / 2.0;
        let mut wait = self.wait.min(LONGEST_WAIT).mul_f64(jitter);
        if let Some(refusal) = error.refusal() {
            wait = wait.max(refusal.retry_after.unwrap_or_default());
            self.deaths += u32::from(refusal.code.as_deref() == Some("worker_died"));
        }
        if self.remaining == 0 || self.deaths > 1 || !is_passing(&error) || !deadline.admits(wait) {
            return Err(error);
        }
        self.remaining -= 1;
        self.wait *= 2;
        Ok(wait)
    }
}

/// Returns whether the same request may succeed later.
fn is_passing(error: &Error) -> bool {
    match error.refusal() {
        None => error.kind() == ErrorKind::Connection,
        Some(Refusal { status: 408 | 429 | 503, .. }) => true,
        Some(refusal) => refusal.code.as_deref() == Some("conflict") && refusal.retry_after.is_some(),
    }
}
