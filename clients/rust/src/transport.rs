//! One request, one answer: what all transports have in common.

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

/// The time without which no answer can come, not even that it is up.
const LEAST: Duration = Duration::from_millis(50);

/// A request as it is sent.
pub type Outgoing = http::Request<Body>;

/// A body in pieces.
pub struct Body(pub(crate) Vec<Memory>);

impl Body {
    pub(crate) fn len(&self) -> usize {
        self.0.iter().map(Memory::len).sum()
    }
}

/// How requests are sent, and time passes.
pub trait Transport: Send + Sync {
    /// The answer to a request.
    fn send(&self, outgoing: Outgoing, limits: Limits) -> impl Future<Output = Result<Reply, Failure>> + Send;

    /// Has time pass.
    fn sleep(&self, wait: Duration) -> impl Future<Output = ()> + Send;
}

/// What an answer may take.
#[derive(Clone, Copy)]
pub struct Limits {
    pub(crate) time: Option<Duration>,
    pub(crate) bytes: usize,
}

impl Limits {
    /// The length that headers promise of the body, if they do. Fails where it would be too large or another one.
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

/// Why a transport has no answer.
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

/// Where a server is, and the key for it.
pub(crate) struct Address {
    base: String,
    key: Option<HeaderValue>,
}

impl Address {
    /// Fails for a URL or a key that cannot be one, without showing them.
    pub(crate) fn new(url: &str, key: Option<&str>) -> Result<Self> {
        let parsed: Uri = url.parse().map_err(|_| Error::input("the server's URL cannot be read"))?;
        let is_whole = matches!(parsed.scheme_str(), Some("http" | "https")) && parsed.host().is_some();
        let has_more = parsed.query().is_some() || url.contains(['#', '@']);
        if !is_whole || has_more {
            return Err(Error::input(
                "a server's URL begins with http:// or https://, and has a host, no user and no query",
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

    /// A request as it is sent, where so much time is left.
    pub(crate) fn outgoing(&self, request: &Request, left: Option<Duration>) -> Result<Outgoing> {
        let mut made = http::Request::builder()
            .method(request.method.clone())
            .uri(format!("{}{}", self.base, request.target(left)))
            // Compressed answers would be longer than they are said to be, and tensors are not worth it.
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
        return Err(Error::input("the key has characters that a header cannot have"));
    }
    let value = HeaderValue::try_from(format!("Bearer {key}"));
    let mut value = value.map_err(|_| Error::input("the key cannot be in a header"))?;
    value.set_sensitive(true);
    Ok(value)
}

/// One try. Neither headers nor bodies are quoted where it fails.
pub(crate) async fn answer<T: Transport>(core: &Core<T>, request: &Request, deadline: &Deadline) -> Result<Reply> {
    let left = deadline.left()?;
    let limits = Limits { time: left.map(|left| left.max(LEAST)), bytes: core.most };
    let outgoing = core.address.outgoing(request, left)?;
    let reply = core.transport.send(outgoing, limits).await.map_err(|failure| match failure {
        Failure::TimedOut => deadline.passed(),
        Failure::TooLarge => Error::too_large(),
        Failure::Compressed => Error::malformed("the answer is compressed, which was not asked for"),
        Failure::Broken(error) => Error::connection(format!("{} {}: {error}", request.method, request.path), error),
    })?;
    reply.checked()
}

/// An answer as it came.
pub struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Memory,
}

impl Reply {
    /// What a header says; nothing where it is absent.
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }

    pub(crate) fn media(&self) -> String {
        let stated = self.header("content-type");
        stated.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
    }

    /// Fails with what the answer refuses, and for a redirect.
    fn checked(self) -> Result<Self> {
        match self.status {
            400.. => Err(Error::refused(Refusal::of(&self))),
            200 | 201 | 304 => Ok(self),
            status => Err(Error::malformed(format!(
                "the answer has the status {status}, which a server of gradserve does not give"
            ))),
        }
    }

    /// The JSON object that the body is.
    pub(crate) fn object(&self) -> Result<Object> {
        let media = self.media();
        if media != JSON {
            return Err(Error::malformed(format!(
                "the answer is of the media type {media:?}, where {JSON} was asked for"
            )));
        }
        json::object(self.body.bytes()).map_err(Error::of_the_answer)
    }

    fn file(&self) -> Option<Result<Safetensors>> {
        let is_file = [SAFETENSORS, BYTES].contains(&self.media().as_str());
        is_file.then(|| safetensors::decoded(&self.body))
    }

    /// The object that the answer is, and the tensors beside it.
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

    /// The etag and the elements of a resident tensor.
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
            _ => Err(Error::input("the file does not hold one tensor")),
        }
    }
}
