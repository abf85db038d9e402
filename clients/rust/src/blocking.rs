//! Blocking I/O.

use std::future::Future;
use std::io::{self, Read};
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use ureq::{Agent, SendBody};

use crate::memory::Memory;
use crate::transport::{Body, Failure, Limits, Outgoing, Reply, Transport};
use crate::Result;

/// Connections whose requests block the thread until there is a response.
pub struct Blocking(Agent);

impl Blocking {
    pub(crate) fn new() -> Self {
        let config = Agent::config_builder().http_status_as_error(false).max_redirects(0);
        Self(config.build().into())
    }
}

impl Transport for Blocking {
    async fn send(&self, outgoing: Outgoing, limits: Limits) -> Result<Reply, Failure> {
        let (mut parts, body) = outgoing.into_parts();
        let length = body.len();
        let body = if length == 0 {
            SendBody::none()
        } else {
            parts.headers.insert("content-length", length.into());
            SendBody::from_owned_reader(Pieces::of(body))
        };
        let request = ureq::http::Request::from_parts(parts, body);
        // A timeout that exceeds the range of the clock means no limit.
        let time = limits.time.filter(|time| Instant::now().checked_add(*time).is_some());
        let configured = self.0.configure_request(request).timeout_global(time).build();
        let response = self.0.run(configured).map_err(failure)?;
        let (parts, body) = response.into_parts();
        let length = limits.admit(&parts.headers)?;
        let body = read(body, length, limits.bytes)?;
        Ok(Reply { status: parts.status.as_u16(), headers: parts.headers, body: Memory::of(body) })
    }

    async fn sleep(&self, wait: Duration) {
        std::thread::sleep(wait);
    }
}

/// Reads a body up to the size limit.
fn read(body: ureq::Body, length: usize, most: usize) -> Result<Vec<u8>, Failure> {
    let mut read = Vec::with_capacity(length);
    let mut reader = body.into_reader().take(most as u64 + 1);
    reader.read_to_end(&mut read).map_err(|error| failure(ureq::Error::from(error)))?;
    if read.len() > most {
        return Err(Failure::TooLarge);
    }
    Ok(read)
}

fn failure(error: ureq::Error) -> Failure {
    match error {
        ureq::Error::Timeout(_) => Failure::TimedOut,
        error => Failure::broken(error),
    }
}

/// Reads pieces one after another.
struct Pieces {
    pieces: std::vec::IntoIter<Memory>,
    current: Option<Memory>,
}

impl Pieces {
    fn of(Body(pieces): Body) -> Self {
        let mut pieces = pieces.into_iter();
        Self { current: pieces.next(), pieces }
    }
}

impl Read for Pieces {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while let Some(piece) = &self.current {
            let count = piece.bytes().read(buffer)?;
            if count > 0 || buffer.is_empty() {
                self.current = Some(piece.part(count..piece.len()));
                return Ok(count);
            }
            self.current = self.pieces.next();
        }
        Ok(0)
    }
}

/// Runs a future that never waits, because its transport blocks: it is ready when it is first polled.
pub(crate) fn run<F: Future>(flow: F) -> F::Output {
    match pin!(flow).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => output,
        Poll::Pending => unreachable!("a future on a blocking transport is never pending"),
    }
}
