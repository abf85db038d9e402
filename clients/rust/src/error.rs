//! What can go wrong, told apart by what one does about it.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::Refusal;

/// The result of what may fail with an [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why there is no answer. [`kind`](Self::kind) says what to do about it.
#[derive(Clone)]
pub struct Error(Box<Inner>);

#[derive(Clone, Debug)]
struct Inner {
    kind: ErrorKind,
    message: String,
    refusal: Option<Refusal>,
    source: Option<Arc<dyn std::error::Error + Send + Sync>>,
}

/// What one does about an [`Error`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// Refused by the client, before anything was sent: mend the program.
    Input,
    /// No answer came, or half of one: look at the network, or try again. What is to be kept may have been.
    Connection,
    /// Something else came than was promised, such as another media type: look at what stands in between.
    Malformed,
    /// The answer is longer than may be read: ask for less, or allow more.
    TooLarge,
    /// The time was up, here or on the server: ask for less, or give more.
    Deadline,
    /// The request is wrong, or more than one may ask: mend the graph, or what it is fed.
    Graph,
    /// The key is missing, unknown, or not allowed this: get another.
    Authentication,
    /// The key has used up its rate: ask less often.
    Rate,
    /// The server is busy, or about to stop: ask later.
    Overload,
    /// Nothing is kept under this name or id: put or register it.
    NotFound,
    /// Somebody else has written meanwhile, or needs it: read again, then write.
    Condition,
    /// The server has no room for what was to be kept: delete something.
    StoreFull,
    /// A fault of the server's own: report it with its request id.
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
        Self::new(ErrorKind::TooLarge, "the answer is longer than may be read (see max_response_bytes)")
    }

    pub(crate) fn deadline(limit: Duration) -> Self {
        Self::new(ErrorKind::Deadline, format!("no answer within {limit:?}"))
    }

    /// What a report says; its status decides, since codes are added.
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

    /// The same of a part of something, where the client found it.
    pub(crate) fn within(mut self, part: impl fmt::Display) -> Self {
        if self.kind() == ErrorKind::Input {
            self.0.message = format!("{part}: {}", self.0.message);
        }
        self
    }

    /// The same of an answer, where reading it found what is wrong.
    pub(crate) fn of_the_answer(mut self) -> Self {
        if self.kind() == ErrorKind::Input {
            self.0.kind = ErrorKind::Malformed;
            self.0.message = format!("the answer is not as promised: {}", self.0.message);
        }
        self
    }

    /// The same with what the client knows beside the report.
    pub(crate) fn remarked(mut self, remark: &str) -> Self {
        self.0.message = format!("{} ({remark})", self.0.message);
        self
    }

    /// What to do about it.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// The server's report, where there is one.
    pub fn refusal(&self) -> Option<&Refusal> {
        self.0.refusal.as_ref()
    }

    /// Whether there is no answer that could be read: of the kinds [`Connection`](ErrorKind::Connection),
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
