//! Listings of stored objects, page by page.

use std::collections::VecDeque;

use crate::blocking::{self, Blocking};
use crate::client::Core;
use crate::exchange::Running;
use crate::json::{self, Object};
use crate::request;
use crate::transport::Transport;
use crate::Result;

/// An iterator over all stored objects of a kind, page by page. It ends after an error.
#[must_use = "a listing fetches pages only when you iterate over it"]
pub struct Listing<'c, T, E> {
    core: &'c Core<T>,
    kind: &'static str,
    read: fn(&Object) -> Result<E>,
    limit: Option<usize>,
    entries: VecDeque<E>,
    after: After,
}

/// The position at which a listing continues.
enum After {
    Beginning,
    Entry(String),
    End,
}

impl<'c, T, E> Listing<'c, T, E> {
    pub(crate) fn new(core: &'c Core<T>, kind: &'static str, read: fn(&Object) -> Result<E>) -> Self {
        Self { core, kind, read, limit: None, entries: VecDeque::new(), after: After::Beginning }
    }

    /// Sets the number of entries per page. The default is the server's.
    pub fn limit(mut self, limit: usize) -> Self {
        self.limit = Some(limit);
        self
    }
}

impl<T: Transport, E> Listing<'_, T, E> {
    async fn entry(&mut self) -> Option<Result<E>> {
        while self.entries.is_empty() {
            let after = match std::mem::replace(&mut self.after, After::End) {
                After::End => return None,
                After::Beginning => None,
                After::Entry(name) => Some(name),
            };
            if let Err(error) = self.page(after.as_deref()).await {
                return Some(Err(error));
            }
        }
        self.entries.pop_front().map(Ok)
    }

    async fn page(&mut self, after: Option<&str>) -> Result<()> {
        let running = Running::begin(self.core, self.core.policy.clone());
        let request = request::listing(self.kind, self.limit, after);
        let read = |answer: Object| {
            let entries = json::objects(&answer, self.kind)?.into_iter().map(self.read);
            let next = json::optional_text(&answer, "next")?.map(str::to_owned);
            Ok((entries.collect::<Result<_>>()?, next))
        };
        let (entries, next) = running.answered(request, read).await?;
        self.entries = entries;
        self.after = next.map_or(After::End, After::Entry);
        Ok(())
    }
}

impl<E> Iterator for Listing<'_, Blocking, E> {
    type Item = Result<E>;

    fn next(&mut self) -> Option<Result<E>> {
        blocking::run(self.entry())
    }
}

#[cfg(feature = "async")]
impl<E: Send> Listing<'_, crate::Awaiting, E> {
    /// Returns the next entry.
    pub async fn next(&mut self) -> Option<Result<E>> {
        self.entry().await
    }
}
