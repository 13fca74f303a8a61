//! Response cache (caching). The cache belongs to one client, and is emptied when the credentials of that change
//! ([`Memory`](super::memory::Memory)), so private results may be kept in it as public ones are.

use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use indexmap::IndexMap;
use roundtrip_core::wire::{
    Discover, ListPrompts, ListResourceTemplates, ListResources, ListTools, Method as _, Raw, ReadResource,
};
use serde::Deserialize;
use serde_json::Value;
use tokio::time::Instant;

use super::change::Change;
use super::request::Request;
use crate::lock::lock;

/// Key of a kept result: the method, and the one parameter that matters.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    method: &'static str,
    detail: Option<String>,
}

impl Key {
    /// Returns the key of a request; none where the result must not be kept: other methods, and requests with more to
    /// them than a cursor or a URI, such as those that answer questions.
    pub(crate) fn of(request: &Request<'_>) -> Option<Self> {
        let detail = match request.method {
            ListTools::NAME | ListPrompts::NAME | ListResources::NAME | ListResourceTemplates::NAME => {
                "cursor"
            }
            ReadResource::NAME => "uri",
            Discover::NAME => "",
            _ => return None,
        };
        if !request.names().all(|name| name == detail) {
            return None;
        }
        Some(Self { method: request.method, detail: request.get(detail).and_then(|value| value.to().ok()) })
    }
}

#[derive(Debug, Default)]
pub(crate) struct Cache(Mutex<Entries>);

#[derive(Debug, Default)]
struct Entries {
    /// Oldest first.
    kept: IndexMap<Key, Entry>,
    /// Bytes of all of it.
    bytes: usize,
    /// Counts changes, so that an answer from before a change is not kept after it.
    generation: u64,
}

#[derive(Debug)]
struct Entry {
    result: Arc<Raw>,
    until: Instant,
}

/// Capacity of a cache; the oldest results go first.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Capacity {
    pub(crate) results: usize,
    pub(crate) bytes: usize,
}

impl Entries {
    fn remove(&mut self, key: &Key) {
        if let Some(entry) = self.kept.shift_remove(key) {
            self.bytes -= weight(key, &entry);
        }
    }

    fn insert(&mut self, key: Key, entry: Entry, capacity: Capacity) {
        self.remove(&key);
        let bytes = weight(&key, &entry);
        if bytes > capacity.bytes || capacity.results == 0 {
            return;
        }
        while self.kept.len() >= capacity.results || self.bytes + bytes > capacity.bytes {
            let Some((oldest, entry)) = self.kept.shift_remove_index(0) else { break };
            self.bytes -= weight(&oldest, &entry);
        }
        self.bytes += bytes;
        self.kept.insert(key, entry);
    }
}

/// Bytes of an entry. The server chose the length of its cursors, too.
fn weight(key: &Key, entry: &Entry) -> usize {
    key.detail.as_ref().map_or(0, String::len) + entry.result.get().len()
}

impl Cache {
    fn entries(&self) -> MutexGuard<'_, Entries> {
        lock(&self.0)
    }

    pub(crate) fn get(&self, key: &Key) -> Option<Arc<Raw>> {
        let mut entries = self.entries();
        let entry = entries.kept.get(key)?;
        if Instant::now() < entry.until {
            return Some(Arc::clone(&entry.result));
        }
        entries.remove(key);
        None
    }

    /// Returns the count of changes, to be taken before a request is sent and given with its result.
    pub(crate) fn generation(&self) -> u64 {
        self.entries().generation
    }

    pub(crate) fn keep(&self, key: Key, result: &Arc<Raw>, generation: u64, capacity: Capacity) {
        let until = Instant::now().checked_add(time_to_live(result));
        let mut entries = self.entries();
        match until.filter(|until| *until > Instant::now() && entries.generation == generation) {
            Some(until) => entries.insert(key, Entry { result: Arc::clone(result), until }, capacity),
            None => entries.remove(&key),
        }
    }

    /// Drops all results: other credentials may see others.
    pub(crate) fn clear(&self) {
        let mut entries = self.entries();
        entries.generation += 1;
        entries.kept.clear();
        entries.bytes = 0;
    }

    /// Drops results that a change has made stale.
    pub(crate) fn invalidate(&self, change: &Change) {
        let mut entries = self.entries();
        let Entries { kept, bytes, generation } = &mut *entries;
        *generation += 1;
        kept.retain(|key, _| match change {
            // No result about a task is kept.
            Change::Task(_) => true,
            Change::Tools => key.method != ListTools::NAME,
            Change::Prompts => key.method != ListPrompts::NAME,
            Change::Resources => ![ListResources::NAME, ListResourceTemplates::NAME].contains(&key.method),
            Change::Resource { uri } => {
                key.method != ReadResource::NAME || key.detail.as_deref() != Some(uri.as_str())
            }
        });
        *bytes = kept.iter().map(|(key, entry)| weight(key, entry)).sum();
    }
}

/// Returns the time a result stays fresh (`ttlMs`). Anything but a positive number of milliseconds means not at all.
fn time_to_live(result: &Raw) -> Duration {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Hint {
        #[serde(default)]
        result_type: Value,
        #[serde(default)]
        ttl_ms: Value,
    }
    let hint = result.to::<Hint>().ok();
    // What asks is no result to keep, whatever it says (caching, "Cacheable Results").
    let hint = hint.filter(|hint| hint.result_type.is_null() || hint.result_type == "complete");
    let hint = hint.and_then(|hint| hint.ttl_ms.as_f64());
    // A cast from a float saturates: below zero is 0.
    Duration::from_millis(hint.unwrap_or(0.0) as u64)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const ROOMY: Capacity = Capacity { results: 9, bytes: 10_000 };

    /// Z2: results are kept up to a number of bytes, too: the oldest go first, and one that is larger is not kept.
    #[test]
    fn a_cache_is_bounded_in_bytes() {
        let cache = Cache::default();
        let key = |uri: &str| {
            let mut request = Request::new(ReadResource::NAME);
            request.set("uri", Some(json!(uri).into()));
            Key::of(&request).expect("a plain read")
        };
        let keep = |uri: &str, bytes: usize| {
            let result = json!({ "ttlMs": 60_000, "text": "x".repeat(bytes) });
            cache.keep(key(uri), &Arc::new(Raw::from(result)), cache.generation(), ROOMY);
        };
        let kept = |uri: &str| cache.get(&key(uri)).is_some();
        keep("app://a", 4000);
        keep("app://b", 4000);
        keep("app://c", 4000);
        assert_eq!((kept("app://a"), kept("app://b"), kept("app://c")), (false, true, true));
        keep("app://large", 11_000);
        keep(&"u".repeat(11_000), 1);
        assert_eq!((kept("app://large"), kept("app://b"), kept("app://c")), (false, true, true));
        cache.invalidate(&Change::Resource { uri: "app://b".to_owned() });
        keep("app://c", 5000);
        keep("app://d", 4000);
        assert_eq!((kept("app://c"), kept("app://d")), (true, true));
        cache.invalidate(&Change::Resource { uri: "app://c".to_owned() });
        cache.invalidate(&Change::Resource { uri: "app://d".to_owned() });
        assert_eq!(cache.entries().bytes, 0);
    }

    /// N3: an answer that was under way when its list changed is not kept.
    #[test]
    fn an_answer_from_before_a_change_is_not_kept_after_it() {
        let cache = Cache::default();
        let key = Key::of(&Request::new(ListTools::NAME)).expect("a list");
        let result = Arc::new(Raw::from(json!({ "ttlMs": 60_000 })));
        let before = cache.generation();
        cache.invalidate(&Change::Tools);
        cache.keep(key.clone(), &result, before, ROOMY);
        assert!(cache.get(&key).is_none());
        cache.keep(key.clone(), &result, cache.generation(), ROOMY);
        assert!(cache.get(&key).is_some());
    }

    /// N3: what answers questions, and what has no positive time to live, is never kept.
    #[test]
    fn only_plain_requests_with_a_time_to_live_are_kept() {
        let mut request = Request::new(ReadResource::NAME);
        request.set("uri", Some(json!("app://x").into()));
        let key = Key::of(&request).expect("a plain read");
        request.set("requestState", Some(json!("s").into()));
        assert_eq!(Key::of(&request), None);
        assert_eq!(Key::of(&Request::new("tools/call")), None);
        let cache = Cache::default();
        for ttl in [json!(0), json!(-5), json!(null), json!("1")] {
            let result = Arc::new(Raw::from(json!({ "ttlMs": ttl })));
            cache.keep(key.clone(), &result, cache.generation(), ROOMY);
            assert!(cache.get(&key).is_none(), "{result:?}");
        }
        let asks = json!({ "resultType": "input_required", "requestState": "s", "ttlMs": 60_000 });
        cache.keep(key.clone(), &Arc::new(Raw::from(asks)), cache.generation(), ROOMY);
        assert!(cache.get(&key).is_none(), "what asks is no result");
    }
}
