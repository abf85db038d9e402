//! The server's reports of why it refuses.

use std::fmt;
use std::time::Duration;

use serde_json::Value;

use crate::json::{self, Object};
use crate::message::{JSON, PROBLEM};
use crate::transport::Reply;

/// A report of the server's, found in an [`Error`](crate::Error) by [`refusal`](crate::Error::refusal).
///
/// Codes are an open list. What did not come, as with a proxy's page, is `None`.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Refusal {
    /// The status of HTTP.
    pub status: u16,
    /// A word for programs.
    pub code: Option<String>,
    /// A sentence for people.
    pub detail: Option<String>,
    /// Where the page of the code is.
    pub type_uri: Option<String>,
    /// The heading of that page.
    pub title: Option<String>,
    /// What the server's log has it under.
    pub request_id: Option<String>,
    /// The id of the node that it is about: of the graph, also where it is about something inside of a function.
    pub node: Option<usize>,
    /// The index of the function that it is about.
    pub function: Option<usize>,
    /// The id of the node in the function.
    pub function_node: Option<usize>,
    /// The place of the operand that it is about.
    pub operand: Option<usize>,
    /// What was expected.
    pub expected: Option<String>,
    /// What came.
    pub got: Option<String>,
    /// A JSON pointer into the request.
    pub pointer: Option<String>,
    /// All that was found wrong, where that was more than one thing.
    pub errors: Vec<Refusal>,
    /// For how long the server wants to be left alone.
    pub retry_after: Option<Duration>,
    /// The members that this client does not know.
    pub extra: Object,
}

impl Refusal {
    /// Reads an answer that is one; a report has a code.
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

    /// Gives back what is no member that the client knows.
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
            None => write!(formatter, "status {}, without a report that says why", self.status),
        }
    }
}

impl Reply {
    /// The object of a report, if the answer has one.
    fn report(&self) -> Option<Object> {
        let media = self.media();
        let report = json::object(self.body.bytes()).ok()?;
        let is_one = (media == PROBLEM || media == JSON) && report.get("code")?.is_string();
        is_one.then_some(report)
    }
}

/// Whole seconds; anything else is passed over.
fn retry_after(reply: &Reply) -> Option<Duration> {
    let stated = reply.header("retry-after").trim();
    if stated.is_empty() || !stated.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    Some(stated.parse().map_or(Duration::MAX, Duration::from_secs))
}
