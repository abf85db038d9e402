//! Transports: send one request, and return its response.

use std::future::Future;
use std::time::Duration;

use ureq::http::{self, header, HeaderMap, HeaderValue, Uri};

use crate::client::Core;
use crate::json::{self, Object};
use crate::memory::Memory;
use crate::message::{BYTES, JSON, SAFETENSORS};
use crate::request::Request;
use crate::retries::Deadline;
use crate::safetensors::{self, Safetensors};
use crate::tensor_json::tensor_of;
use crate::{Error, Refusal, Result, Tensor};

/// The shortest timeout of an attempt: leaves time to receive even the server's report of a timeout.
const LEAST: Duration = Duration::from_millis(50);

/// A request in the form in which it is sent.
pub type Outgoing = http::Request<Body>;

/// A body in pieces.
pub struct Body(pub(crate) Vec<Memory>);

impl Body {
    pub(crate) fn len(&self) -> usize {
        self.0.iter().map(Memory::len).sum()
    }
}

/// Sends requests and waits.
pub trait Transport: Send + Sync {
    /// Sends a request and returns the response.
    fn send(&self, outgoing: Outgoing, limits: Limits) -> impl Future<Output = Result<Reply, Failure>> + Send;

    /// Waits.
    fn sleep(&self, wait: Duration) -> impl Future<Output = ()> + Send;
}

/// The limits of a response.
#[derive(Clone, Copy)]
pub struct Limits {
    pub(crate) time: Option<Duration>,
    pub(crate) bytes: usize,
}

impl Limits {
    /// Returns the length that the headers state for the body, if they do. Fails if it exceeds the limit, or if the
    /// body is compressed.
    pub(crate) fn admit(&self, headers: &HeaderMap) -> Result<usize, Failure> {
        let encoding = headers.get(header::CONTENT_ENCODING).map(HeaderValue::as_bytes);
        if encoding.is_some_and(|encoding| !encoding.eq_ignore_ascii_case(b"identity")) {
            return Err(Failure::Compressed);
        }
        let stated = headers.get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
        match stated {
            Some(length) if length > self.bytes => Err(Failure::TooLarge),
            stated => Ok(stated.unwrap_or_default()),
        }
    }
}

/// The reason why there is no response.
pub enum Failure {
    TimedOut,
    TooLarge,
    Compressed,
    Broken(Box<dyn std::error::Error + Send + Sync>),
}

impl Failure {
    pub(crate) fn broken(error: impl std::error::Error + Send + Sync + 'static) -> Self {
        Self::Broken(Box::new(error))
    }
}

/// The address of a server, and the API key.
pub(crate) struct Address {
    base: String,
    key: Option<HeaderValue>,
}

impl Address {
    /// Fails if the URL or the key is invalid, without showing them.
    pub(crate) fn new(url: &str, key: Option<&str>) -> Result<Self> {
        let parsed: Uri = url.parse().map_err(|_| Error::input("the server's URL is invalid"))?;
        let is_whole = matches!(parsed.scheme_str(), Some("http" | "https")) && parsed.host().is_some();
        let has_more = parsed.query().is_some() || url.contains(['#', '@']);
        if !is_whole || has_more {
            return Err(Error::input(
                "the server's URL is invalid: expected http:// or https://, a host, no user, query or fragment",
            ));
        }
        Ok(Self {
            base: url.trim_end_matches('/').to_owned(),
            key: key.filter(|key| !key.is_empty()).map(bearer).transpose()?,
        })
    }

    pub(crate) fn base(&self) -> &str {
        &self.base
    }

    /// Returns a request in the form in which it is sent, with the remaining time.
    pub(crate) fn outgoing(&self, request: &Request, left: Option<Duration>) -> Result<Outgoing> {
        let mut made = http::Request::builder()
            .method(request.method.clone())
            .uri(format!("{}{}", self.base, request.target(left)))
            // A compressed response would exceed its stated length, and tensors do not compress well.
            .header(header::ACCEPT_ENCODING, "identity")
            .header(header::USER_AGENT, concat!("gradserve-rust/", env!("CARGO_PKG_VERSION")));
        for (name, value) in &request.headers {
            made = made.header(*name, value);
        }
        if let Some(key) = &self.key {
            made = made.header(header::AUTHORIZATION, key);
        }
        let cannot = |_| Error::input(format!("{} {} cannot be sent", request.method, request.path));
        made.body(Body(request.body.clone())).map_err(cannot)
    }
}

fn bearer(key: &str) -> Result<HeaderValue> {
    if !key.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(Error::input("the API key contains characters that HTTP headers cannot contain"));
    }
    let value = HeaderValue::try_from(format!("Bearer {key}"));
    let mut value = value.map_err(|_| Error::input("the API key is not a valid header value"))?;
    value.set_sensitive(true);
    Ok(value)
}

/// Makes one attempt. Errors do not quote headers or bodies.
pub(crate) async fn answer<T: Transport>(core: &Core<T>, request: &Request, deadline: &Deadline) -> Result<Reply> {
    let left = deadline.left()?;
    let limits = Limits { time: left.map(|left| left.max(LEAST)), bytes: core.most };
    let outgoing = core.address.outgoing(request, left)?;
    let reply = core.transport.send(outgoing, limits).await.map_err(|failure| match failure {
        Failure::TimedOut => deadline.passed(),
        Failure::TooLarge => Error::too_large(),
        Failure::Compressed => Error::malformed("the response is compressed, but the client requested it uncompressed"),
        Failure::Broken(error) => Error::connection(format!("{} {}: {error}", request.method, request.path), error),
    })?;
    reply.checked()
}

/// An HTTP response as received.
pub struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Memory,
}

impl Reply {
    /// Returns a header, or an empty string.
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }

    pub(crate) fn media(&self) -> String {
        let stated = self.header("content-type");
        stated.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
    }

    /// Fails for a problem report and for a redirect.
    fn checked(self) -> Result<Self> {
        match self.status {
            400.. => Err(Error::refused(Refusal::of(&self))),
            200 | 201 | 304 => Ok(self),
            status => Err(Error::malformed(format!("unexpected status {status}: not a gradserve response"))),
        }
    }

    /// Returns the JSON object in the body.
    pub(crate) fn object(&self) -> Result<Object> {
        let media = self.media();
        if media != JSON {
            return Err(Error::malformed(format!("expected a response of media type {JSON}, got {media:?}")));
        }
        json::object(self.body.bytes()).map_err(Error::of_the_answer)
    }

    fn file(&self) -> Option<Result<Safetensors>> {
        let is_file = [SAFETENSORS, BYTES].contains(&self.media().as_str());
        is_file.then(|| safetensors::decoded(&self.body))
    }

    /// Returns the JSON object of the response, and the tensors beside it.
    pub(crate) fn parts(&self) -> Result<(Object, Safetensors)> {
        match self.file() {
            None => Ok((self.object()?, Safetensors::default())),
            Some(file) => {
                let file = file?;
                let text = file.metadata.get("response").map_or("", String::as_str);
                let fields = json::object(text.as_bytes()).map_err(|error| error.within("the response in the file"))?;
                Ok((fields, file))
            }
        }
    }

    /// Returns the etag and the elements of a resident tensor.
    pub(crate) fn tensor(&self) -> Result<(String, Tensor)> {
        let Some(file) = self.file() else {
            let members = self.object()?;
            let tensor = tensor_of(json::inner(&members, "tensor")?)?;
            return Ok((json::text(&members, "etag")?.to_owned(), tensor));
        };
        let etag = self.header("etag").trim_start_matches("W/").trim_matches('"').to_owned();
        let mut tensors = file?.tensors.into_values();
        match (tensors.next(), tensors.next()) {
            (Some(tensor), None) => Ok((etag, tensor)),
            _ => Err(Error::input("the file does not hold exactly one tensor")),
        }
    }
}
