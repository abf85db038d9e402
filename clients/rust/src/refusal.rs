//! The server's problem reports.

use std::fmt;
use std::time::Duration;

use serde_json::Value;

use crate::json::{self, Object};
use crate::message::{JSON, PROBLEM};
use crate::transport::Reply;

/// A problem report of the server. [`refusal`](crate::Error::refusal) returns the report of an [`Error`](crate::Error).
///
/// New codes may be added at any time. Members that the report lacks, for example in an error page of a proxy, are
/// `None`.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Refusal {
    /// The HTTP status.
    pub status: u16,
    /// The code, for programs.
    pub code: Option<String>,
    /// The message, for people.
    pub detail: Option<String>,
    /// The address of the code's documentation page.
    pub type_uri: Option<String>,
    /// The heading of that page.
    pub title: Option<String>,
    /// The id of the request in the server's log.
    pub request_id: Option<String>,
    /// The id of the node with the error. If the error is in a function, this node runs the function.
    pub node: Option<usize>,
    /// The index of the function with the error.
    pub function: Option<usize>,
    /// The id of the node in the function.
    pub function_node: Option<usize>,
    /// The position of the operand with the error.
    pub operand: Option<usize>,
    /// The expected value.
    pub expected: Option<String>,
    /// The value that the server got.
    pub got: Option<String>,
    /// A JSON pointer into the request.
    pub pointer: Option<String>,
    /// All errors, if the server found several.
    pub errors: Vec<Refusal>,
    /// The time after which the server accepts a retry.
    pub retry_after: Option<Duration>,
    /// The members that this client does not know.
    pub extra: Object,
}

impl Refusal {
    /// Reads a problem report from a response. A report has a code.
    pub(crate) fn of(reply: &Reply) -> Self {
        let mut refusal = reply.report().map_or_else(Self::default, Self::read);
        refusal.status = reply.status;
        refusal.retry_after = retry_after(reply);
        refusal
    }

    fn read(report: Object) -> Self {
        let mut refusal = Self::default();
        for (name, value) in report {
            if let Some(value) = refusal.read_member(&name, value) {
                refusal.extra.insert(name, value);
            }
        }
        refusal
    }

    /// Returns the member if the client does not know it.
    fn read_member(&mut self, name: &str, value: Value) -> Option<Value> {
        let text = match name {
            "code" => &mut self.code,
            "detail" => &mut self.detail,
            "type" => &mut self.type_uri,
            "title" => &mut self.title,
            "request_id" => &mut self.request_id,
            "expected" => &mut self.expected,
            "got" => &mut self.got,
            "pointer" => &mut self.pointer,
            _ => return self.read_other(name, value),
        };
        match value {
            Value::String(stated) => *text = Some(stated),
            Value::Null => {}
            other => return Some(other),
        }
        None
    }

    fn read_other(&mut self, name: &str, value: Value) -> Option<Value> {
        let whole: Option<usize> = value.as_u64().and_then(|whole| whole.try_into().ok());
        match (name, whole) {
            ("status", Some(status)) => self.status = status.try_into().unwrap_or_default(),
            ("node", Some(_)) => self.node = whole,
            ("function", Some(_)) => self.function = whole,
            ("function_node", Some(_)) => self.function_node = whole,
            ("operand", Some(_)) => self.operand = whole,
            ("errors", _) => return self.read_errors(value),
            _ => return Some(value).filter(|value| !value.is_null()),
        }
        None
    }

    fn read_errors(&mut self, value: Value) -> Option<Value> {
        let Value::Array(reports) = &value else {
            return Some(value);
        };
        let read = |report: &Value| report.as_object().cloned().map(Self::read);
        let Some(errors) = reports.iter().map(read).collect() else {
            return Some(value);
        };
        self.errors = errors;
        None
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.code {
            Some(code) => write!(formatter, "{code}: {}", self.detail.as_deref().unwrap_or_default()),
            None => write!(formatter, "status {} without a problem report", self.status),
        }
    }
}

impl Reply {
    /// Returns the JSON object of a report, if the response has one.
    fn report(&self) -> Option<Object> {
        let media = self.media();
        let report = json::object(self.body.bytes()).ok()?;
        let is_one = (media == PROBLEM || media == JSON) && report.get("code")?.is_string();
        is_one.then_some(report)
    }
}

/// Reads a whole number of seconds and ignores any other value.
fn retry_after(reply: &Reply) -> Option<Duration> {
    let stated = reply.header("retry-after").trim();
    if stated.is_empty() || !stated.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    Some(stated.parse().map_or(Duration::MAX, Duration::from_secs))
}
