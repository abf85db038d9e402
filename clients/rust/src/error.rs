//! Errors, grouped by how to handle them.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::Refusal;

/// A result that can be an [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The error of a call. [`kind`](Self::kind) tells how to handle it.
#[derive(Clone)]
pub struct Error(Box<Inner>);

#[derive(Clone, Debug)]
struct Inner {
    kind: ErrorKind,
    message: String,
    refusal: Option<Refusal>,
    source: Option<Arc<dyn std::error::Error + Send + Sync>>,
}

/// How to handle an [`Error`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// Rejected by the client before it sent anything: fix the program.
    Input,
    /// There is no response, or an incomplete one: check the network, or retry. The server may still have stored what
    /// the request stores.
    Connection,
    /// The response is invalid, for example its media type: look for a proxy in between.
    Malformed,
    /// The response exceeds the size limit: request less, or raise the limit.
    TooLarge,
    /// The timeout expired, here or on the server: request less, or raise the timeout.
    Deadline,
    /// The request is invalid or exceeds a limit: fix the graph or its feeds.
    Graph,
    /// The API key is missing, unknown, or lacks the permission: use another key.
    Authentication,
    /// The API key has exceeded its rate limit: send fewer requests.
    Rate,
    /// The server is busy or shutting down: retry later.
    Overload,
    /// Nothing is stored under this name or id: put or register it.
    NotFound,
    /// Another client has written it, or it is in use: read again, then write.
    Condition,
    /// The server has no room for what the request stores: delete something.
    StoreFull,
    /// An internal error of the server: report it with its request id.
    Server,
}

impl Error {
    fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self(Box::new(Inner { kind, message: message.into(), refusal: None, source: None }))
    }

    pub(crate) fn input(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Input, message)
    }

    pub(crate) fn malformed(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Malformed, message)
    }

    pub(crate) fn connection(message: String, source: Box<dyn std::error::Error + Send + Sync>) -> Self {
        let mut made = Self::new(ErrorKind::Connection, message);
        made.0.source = Some(source.into());
        made
    }

    pub(crate) fn too_large() -> Self {
        Self::new(ErrorKind::TooLarge, "the response exceeds the size limit (see max_response_bytes)")
    }

    pub(crate) fn deadline(limit: Duration) -> Self {
        Self::new(ErrorKind::Deadline, format!("no response within {limit:?}"))
    }

    /// Converts a problem report. The status decides the kind, not the code, because new codes are added.
    pub(crate) fn refused(refusal: Refusal) -> Self {
        let kind = match refusal.status {
            401 | 403 => ErrorKind::Authentication,
            404 => ErrorKind::NotFound,
            408 | 504 => ErrorKind::Deadline,
            409 | 412 => ErrorKind::Condition,
            429 => ErrorKind::Rate,
            503 => ErrorKind::Overload,
            507 => ErrorKind::StoreFull,
            500.. => ErrorKind::Server,
            _ => ErrorKind::Graph,
        };
        let mut made = Self::new(kind, refusal.to_string());
        made.0.refusal = Some(refusal);
        made
    }

    /// Adds the part of the input that an error of the client is about.
    pub(crate) fn within(mut self, part: impl fmt::Display) -> Self {
        if self.kind() == ErrorKind::Input {
            self.0.message = format!("{part}: {}", self.0.message);
        }
        self
    }

    /// Converts an error found while reading a response.
    pub(crate) fn of_the_answer(mut self) -> Self {
        if self.kind() == ErrorKind::Input {
            self.0.kind = ErrorKind::Malformed;
            self.0.message = format!("invalid response: {}", self.0.message);
        }
        self
    }

    /// Adds a fact that only the client knows.
    pub(crate) fn remarked(mut self, remark: &str) -> Self {
        self.0.message = format!("{} ({remark})", self.0.message);
        self
    }

    /// Returns how to handle the error.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// Returns the server's problem report, if there is one.
    pub fn refusal(&self) -> Option<&Refusal> {
        self.0.refusal.as_ref()
    }

    /// Returns whether there is no readable response: the kinds [`Connection`](ErrorKind::Connection),
    /// [`Malformed`](ErrorKind::Malformed) and [`TooLarge`](ErrorKind::TooLarge).
    pub fn is_transport(&self) -> bool {
        matches!(self.kind(), ErrorKind::Connection | ErrorKind::Malformed | ErrorKind::TooLarge)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0.message)
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        let source = self.0.source.as_deref()?;
        Some(source)
    }
}
