//! Bounds of a list that is read page by page.

use std::collections::HashSet;

use roundtrip_core::error::{Error, GaveUp, PeerMisbehaved};
use roundtrip_core::wire::Raw;

use super::limits::ClientLimits;

/// Amount of a list that has been read, and the limits of it (Z2).
#[derive(Debug)]
pub(crate) struct ListBounds {
    method: &'static str,
    limits: ClientLimits,
    pages: usize,
    items: usize,
    bytes: usize,
    /// Cursors so far: one that comes back would lead in a circle.
    seen: HashSet<String>,
}

impl ListBounds {
    pub(crate) fn new(method: &'static str, limits: &ClientLimits) -> Self {
        Self { method, limits: *limits, pages: 0, items: 0, bytes: 0, seen: HashSet::new() }
    }

    /// Counts a page that is to be read.
    pub(crate) fn next_page(&mut self) -> Result<(), Error> {
        self.pages += 1;
        self.within_limit(self.pages, self.limits.list_pages, "list_pages")
    }

    /// Counts the bytes of a page.
    pub(crate) fn read(&mut self, page: &Raw) -> Result<(), Error> {
        self.bytes += page.get().len();
        self.within_limit(self.bytes, self.limits.list_bytes, "list_bytes")
    }

    /// Counts the entries of a page, and refuses the cursor of an earlier one.
    pub(crate) fn found(&mut self, items: usize, cursor: Option<&str>) -> Result<(), Error> {
        self.items += items;
        self.within_limit(self.items, self.limits.list_items, "list_items")?;
        match cursor {
            Some(cursor) if !self.seen.insert(cursor.to_owned()) => {
                Err(PeerMisbehaved::RepeatedCursor { method: self.method }.into())
            }
            _ => Ok(()),
        }
    }

    /// Gives up a list that is longer than it may be.
    fn within_limit(&self, read: usize, allowed: usize, limit: &'static str) -> Result<(), Error> {
        if read <= allowed {
            return Ok(());
        }
        Err(GaveUp::ListTooLong { method: self.method, limit, allowed }.into())
    }
}
