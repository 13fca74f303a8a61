//! Lists: stable order, opaque cursors, pages serialised once and reused until the list changes (N3).

use std::sync::{Arc, OnceLock};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use indexmap::IndexMap;
use roundtrip_core::wire::{ErrorObject, Implementation, Raw, ResultComplete, ResultMeta};
use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};

use super::entry::{Definition, Entry};
use crate::server::access::Access;
use crate::server::cache::Cache;

/// Settings of a list's pages.
#[derive(Debug, Clone)]
pub(crate) struct Presentation {
    pub(crate) cache: Cache,
    pub(crate) page_size: usize,
    pub(crate) server_info: Arc<Implementation>,
}

/// A list in the order of registration, with its pages.
pub(crate) struct Listing<D: Definition> {
    entries: IndexMap<String, Arc<Entry<D>>>,
    /// Number of entries that not every caller sees.
    ruled: usize,
    /// Number of entries that not every caller may use.
    scoped: usize,
    pages: OnceLock<Vec<Arc<Raw>>>,
}

impl<D: Definition> Default for Listing<D> {
    fn default() -> Self {
        Self { entries: IndexMap::new(), ruled: 0, scoped: 0, pages: OnceLock::new() }
    }
}

impl<D: Definition> Listing<D> {
    pub(crate) fn get(&self, name: &str) -> Option<&Arc<Entry<D>>> {
        self.entries.get(name)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<Entry<D>>> {
        self.entries.values()
    }

    /// Returns whether the list depends on the caller.
    pub(crate) fn depends_on(&self, access: &Access) -> bool {
        self.ruled > 0 || self.scoped > 0 && access.hides()
    }

    /// Returns whether there are entries that not every caller sees or may use.
    pub(crate) fn is_restricted(&self) -> bool {
        self.ruled > 0 || self.scoped > 0
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Adds an entry; returns false if the name is taken.
    pub(crate) fn insert(&mut self, name: &str, entry: Entry<D>) -> bool {
        if self.entries.contains_key(name) {
            return false;
        }
        self.ruled += usize::from(!entry.scope.is_open());
        self.scoped += usize::from(entry.scope.needed().is_some());
        self.entries.insert(name.to_owned(), Arc::new(entry));
        self.pages = OnceLock::new();
        true
    }

    /// Removes an entry, keeping the order of the others; returns false if there was none.
    pub(crate) fn remove(&mut self, name: &str) -> bool {
        self.pages = OnceLock::new();
        let removed = self.entries.shift_remove(name);
        self.ruled -= removed.iter().filter(|entry| !entry.scope.is_open()).count();
        self.scoped -= removed.iter().filter(|entry| entry.scope.needed().is_some()).count();
        removed.is_some()
    }

    /// Returns the page a cursor points at, ready to send.
    pub(crate) fn page(&self, cursor: Option<&str>, shown: &Presentation) -> Result<Arc<Raw>, ErrorObject> {
        let pages = self.pages.get_or_init(|| self.render_all(shown));
        let Some(cursor) = cursor else {
            return Ok(Arc::clone(&pages[0]));
        };
        let start = self.start(cursor)?;
        // A cursor from before a change may point into the middle of a page of today.
        match pages.get(start / shown.page_size) {
            Some(page) if start % shown.page_size == 0 => Ok(Arc::clone(page)),
            _ => Ok(self.render(start, shown)),
        }
    }

    /// Returns the entries from a cursor on.
    pub(crate) fn tail(&self, cursor: Option<&str>) -> Result<Tail<D>, ErrorObject> {
        let start = cursor.map_or(Ok(0), |cursor| self.start(cursor))?;
        let entries = self.entries.values().skip(start).map(Arc::clone).collect();
        Ok(Tail { entries, pointed: cursor.is_some() })
    }

    /// Returns the index of the entry that a cursor points at.
    fn start(&self, cursor: &str) -> Result<usize, ErrorObject> {
        read_cursor::<D>(cursor).and_then(|first| self.entries.get_index_of(&first)).ok_or_else(no_cursor)
    }

    fn render_all(&self, shown: &Presentation) -> Vec<Arc<Raw>> {
        let starts = (0..self.entries.len().max(1)).step_by(shown.page_size);
        starts.map(|start| self.render(start, shown)).collect()
    }

    fn render(&self, start: usize, shown: &Presentation) -> Arc<Raw> {
        render(self.entries.values().skip(start), shown)
    }
}

/// The entries of a list from a cursor on, for a page of those that a caller sees.
pub(crate) struct Tail<D: Definition> {
    entries: Vec<Arc<Entry<D>>>,
    /// True if a cursor points at the first of them.
    pointed: bool,
}

impl<D: Definition> Tail<D> {
    /// Returns the page. `shows` is asked about no more entries than it takes to fill it. A cursor that points at an entry
    /// that is not shown is no cursor of this list, so that cursors do not tell of entries.
    pub(crate) fn page(
        self,
        shown: &Presentation,
        shows: impl Fn(&Entry<D>) -> Result<bool, ErrorObject>,
    ) -> Result<Arc<Raw>, ErrorObject> {
        let mut seen = Vec::new();
        for (at, entry) in self.entries.iter().enumerate() {
            if shows(entry)? {
                seen.push(entry);
            } else if self.pointed && at == 0 {
                return Err(no_cursor());
            }
            if seen.len() > shown.page_size {
                break;
            }
        }
        let shown = Presentation { cache: shown.cache.unshared(), ..shown.clone() };
        Ok(render(seen.into_iter(), &shown))
    }
}

/// Renders a page: the first of the entries that are left, and a cursor to the others.
fn render<'a, D: Definition + 'a>(
    mut left: impl Iterator<Item = &'a Arc<Entry<D>>>,
    shown: &Presentation,
) -> Arc<Raw> {
    let definitions = left.by_ref().take(shown.page_size).map(|entry| &entry.definition).collect();
    let next_cursor = left.next().map(|entry| write_cursor::<D>(entry.definition.key()));
    let page = Page { definitions, next_cursor, shown };
    // Definitions are strings and JSON values, all of which serialise.
    Arc::new(Raw::of(&page).unwrap_or_else(|_| Raw::from(serde_json::Value::Null)))
}

fn no_cursor() -> ErrorObject {
    ErrorObject::invalid_params(
        "params.cursor: not a cursor of this list as it is now: start again without one",
    )
}

/// List result that borrows its definitions.
struct Page<'a, D> {
    definitions: Vec<&'a D>,
    next_cursor: Option<String>,
    shown: &'a Presentation,
}

impl<D: Definition> Serialize for Page<'_, D> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Presentation { cache, server_info, .. } = self.shown;
        let meta = ResultMeta { server_info: Some(Arc::clone(server_info)), ..ResultMeta::default() };
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("resultType", &ResultComplete)?;
        map.serialize_entry(D::MEMBER, &self.definitions)?;
        if let Some(cursor) = &self.next_cursor {
            map.serialize_entry("nextCursor", cursor)?;
        }
        map.serialize_entry("ttlMs", &cache.ttl_ms())?;
        map.serialize_entry("cacheScope", &cache.scope())?;
        map.serialize_entry("_meta", &meta)?;
        map.end()
    }
}

/// Encodes a cursor. It names the list and the first entry of the page, so that it stays valid while other entries
/// come and go.
fn write_cursor<D: Definition>(first: &str) -> String {
    URL_SAFE_NO_PAD.encode(format!("{}:{first}", D::MEMBER))
}

fn read_cursor<D: Definition>(cursor: &str) -> Option<String> {
    let text = String::from_utf8(URL_SAFE_NO_PAD.decode(cursor).ok()?).ok()?;
    text.strip_prefix(D::MEMBER)?.strip_prefix(':').map(str::to_owned)
}

/// Caching hints of each list, and of `server/discover`.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Caches {
    pub(crate) discover: Cache,
    pub(crate) tools: Cache,
    pub(crate) prompts: Cache,
    pub(crate) resources: Cache,
    pub(crate) templates: Cache,
}

/// Presentation of each list: caching hints, page size, server info.
#[derive(Debug)]
pub(crate) struct Listings {
    pub(crate) discover: Cache,
    pub(crate) tools: Presentation,
    pub(crate) prompts: Presentation,
    pub(crate) resources: Presentation,
    pub(crate) templates: Presentation,
}
