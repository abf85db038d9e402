//! Async I/O, within tokio.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use hyper::body::{Body as _, Bytes, Frame, Incoming, SizeHint};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;

use crate::memory::Memory;
use crate::transport::{Body, Failure, Limits, Outgoing, Reply, Transport};
use crate::Result;

/// Time after which the client closes idle connections. The server closes them after 75 s by default.
const IDLE: Duration = Duration::from_secs(60);

/// Connections for async requests, within tokio.
pub struct Awaiting(Client<HttpsConnector<HttpConnector>, Pieces>);

impl Awaiting {
    pub(crate) fn new() -> Self {
        let connector = HttpsConnectorBuilder::new().with_webpki_roots().https_or_http().enable_http1().build();
        Self(Client::builder(TokioExecutor::new()).pool_idle_timeout(IDLE).build(connector))
    }

    async fn exchange(&self, outgoing: Outgoing, limits: Limits) -> Result<Reply, Failure> {
        let response = self.0.request(outgoing.map(Pieces::of)).await.map_err(Failure::broken)?;
        let (parts, body) = response.into_parts();
        let length = limits.admit(&parts.headers)?;
        let body = read(body, length, limits.bytes).await?;
        Ok(Reply { status: parts.status.as_u16(), headers: parts.headers, body: Memory::of(body) })
    }
}

impl Transport for Awaiting {
    async fn send(&self, outgoing: Outgoing, limits: Limits) -> Result<Reply, Failure> {
        let exchange = self.exchange(outgoing, limits);
        match limits.time {
            None => exchange.await,
            Some(time) => tokio::time::timeout(time, exchange).await.unwrap_or(Err(Failure::TimedOut)),
        }
    }

    fn sleep(&self, wait: Duration) -> impl Future<Output = ()> + Send {
        tokio::time::sleep(wait)
    }
}

/// Reads a body up to the size limit.
async fn read(mut body: Incoming, length: usize, most: usize) -> Result<Vec<u8>, Failure> {
    let mut read = Vec::with_capacity(length);
    while let Some(frame) = std::future::poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await {
        if let Ok(chunk) = frame.map_err(Failure::broken)?.into_data() {
            if chunk.len() > most - read.len() {
                return Err(Failure::TooLarge);
            }
            read.extend_from_slice(&chunk);
        }
    }
    Ok(read)
}

/// A body in pieces, which are not copied.
struct Pieces(VecDeque<Memory>);

impl Pieces {
    fn of(Body(pieces): Body) -> Self {
        Self(pieces.into())
    }
}

impl hyper::body::Body for Pieces {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let piece = self.0.pop_front();
        Poll::Ready(piece.map(|piece| Ok(Frame::data(Bytes::from_owner(piece)))))
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.0.iter().map(|piece| piece.len() as u64).sum())
    }
}
