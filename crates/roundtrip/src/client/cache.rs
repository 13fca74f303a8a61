//! Response cache (caching). The cache belongs to one client, and is emptied when the credentials of that change, so private results
//! may be kept in it as public ones are.

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

/// The cache as the holder of some credentials sees it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CacheView<'a> {
    cache: &'a Cache,
    credentials: u64,
}

#[derive(Debug, Default)]
struct Entries {
    /// Number of the credentials that the results were sent to. It only grows: a view of earlier ones is given nothing.
    credentials: u64,
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
    /// Drops all results: other credentials may see others.
    fn clear(&mut self) {
        self.generation += 1;
        self.kept.clear();
        self.bytes = 0;
    }

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
    /// Returns the cache as the holder of credentials with this number sees it.
    pub(crate) fn of(&self, credentials: u64) -> CacheView<'_> {
        CacheView { cache: self, credentials }
    }
}

impl CacheView<'_> {
    /// Returns the entries, without those of earlier credentials. `None` if there are later ones by now.
    fn entries(&self) -> Option<MutexGuard<'_, Entries>> {
        let mut entries = lock(&self.cache.0);
        if self.credentials > entries.credentials {
            entries.clear();
            entries.credentials = self.credentials;
        }
        (self.credentials == entries.credentials).then_some(entries)
    }

    pub(crate) fn get(&self, key: &Key) -> Option<Arc<Raw>> {
        let mut entries = self.entries()?;
        let entry = entries.kept.get(key)?;
        if Instant::now() < entry.until {
            return Some(Arc::clone(&entry.result));
        }
        entries.remove(key);
        None
    }

    /// Returns the count of changes, to be taken before a request is sent and given with its result. `None` means that its result
    /// is not to be kept.
    pub(crate) fn generation(&self) -> Option<u64> {
        Some(self.entries()?.generation)
    }

    pub(crate) fn keep(&self, key: Key, result: &Arc<Raw>, generation: Option<u64>, capacity: Capacity) {
        let until = Instant::now().checked_add(time_to_live(result));
        let Some(mut entries) = self.entries() else { return };
        let is_same = Some(entries.generation) == generation;
        match until.filter(|until| *until > Instant::now() && is_same) {
            Some(until) => entries.insert(key, Entry { result: Arc::clone(result), until }, capacity),
            None => entries.remove(&key),
        }
    }

    /// Drops all results.
    #[cfg(feature = "oauth")]
    pub(crate) fn clear(&self) {
        if let Some(mut entries) = self.entries() {
            entries.clear();
        }
    }

    /// Drops results that a change has made stale.
    pub(crate) fn invalidate(&self, change: &Change) {
        // Under later credentials, what changed for the earlier ones is dropped already.
        let Some(mut entries) = self.entries() else { return };
        let Entries { kept, bytes, generation, .. } = &mut *entries;
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
        let store = Cache::default();
        let cache = store.of(0);
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
        assert_eq!(cache.entries().expect("no later credentials").bytes, 0);
    }

    /// N3: an answer that was under way when its list changed is not kept.
    #[test]
    fn an_answer_from_before_a_change_is_not_kept_after_it() {
        let store = Cache::default();
        let cache = store.of(0);
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
        let store = Cache::default();
        let cache = store.of(0);
        for ttl in [json!(0), json!(-5), json!(null), json!("1")] {
            let result = Arc::new(Raw::from(json!({ "ttlMs": ttl })));
            cache.keep(key.clone(), &result, cache.generation(), ROOMY);
            assert!(cache.get(&key).is_none(), "{result:?}");
        }
        let asks = json!({ "resultType": "input_required", "requestState": "s", "ttlMs": 60_000 });
        cache.keep(key.clone(), &Arc::new(Raw::from(asks)), cache.generation(), ROOMY);
        assert!(cache.get(&key).is_none(), "what asks is no result");
    }

    /// N3: a result that was asked for with other credentials is neither kept nor returned.
    #[test]
    fn results_are_kept_for_their_own_credentials() {
        let cache = Cache::default();
        let key = Key::of(&Request::new(ListTools::NAME)).expect("a list");
        let result = Arc::new(Raw::from(json!({ "ttlMs": 60_000 })));
        let before = cache.of(1).generation();
        cache.of(1).keep(key.clone(), &result, before, ROOMY);
        assert!(cache.of(1).get(&key).is_some());
        assert!(cache.of(2).get(&key).is_none());
        cache.of(2).keep(key.clone(), &result, before, ROOMY);
        assert!(cache.of(2).get(&key).is_none(), "it was asked for before the change");
    }

    /// N3: a reader that was overtaken by a change of credentials is given nothing of the later ones, keeps nothing, and does not
    /// bring the earlier ones back.
    #[test]
    fn a_reader_with_earlier_credentials_finds_no_result_of_later_ones() {
        let cache = Cache::default();
        let key = Key::of(&Request::new(ListTools::NAME)).expect("a list");
        let result = Arc::new(Raw::from(json!({ "ttlMs": 60_000 })));
        let earlier = cache.of(1);
        let before = earlier.generation();
        cache.of(2).keep(key.clone(), &result, cache.of(2).generation(), ROOMY);
        assert!(earlier.get(&key).is_none());
        assert_eq!(earlier.generation(), None);
        earlier.keep(key.clone(), &result, before, ROOMY);
        #[cfg(feature = "oauth")]
        earlier.clear();
        earlier.invalidate(&Change::Tools);
        assert!(cache.of(2).get(&key).is_some(), "it is there for its own credentials");
    }
}
