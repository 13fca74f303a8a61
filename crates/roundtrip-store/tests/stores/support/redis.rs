//! A prefix of a test's own.

use redis::AsyncCommands as _;
use redis::aio::MultiplexedConnection;
use roundtrip_store::{Opening, Redis, StoreError, Usage};

use super::Site;

pub(crate) struct RedisSite {
    pub(crate) url: String,
    pub(crate) prefix: String,
}

impl RedisSite {
    pub(crate) fn new() -> Option<Self> {
        Some(Self { url: super::address("ROUNDTRIP_TEST_REDIS")?, prefix: super::unique() })
    }

    pub(crate) async fn connect(&self) -> MultiplexedConnection {
        let client = redis::Client::open(self.url.as_str()).expect("an address");
        client.get_multiplexed_async_connection().await.expect("a database")
    }

    /// Keys of records.
    pub(crate) async fn records(&self) -> Vec<String> {
        let keys: Vec<String> =
            self.connect().await.keys(format!("{{{}}}:ledger:*", self.prefix)).await.expect("keys");
        let shared = ["ends", "counts", "shares"];
        keys.into_iter().filter(|key| !shared.iter().any(|name| key.ends_with(name))).collect()
    }
}

impl Site for RedisSite {
    type Store = Redis;

    async fn open(
        &self,
        set: impl FnOnce(Opening<Redis>) -> Opening<Redis> + Send,
    ) -> Result<Redis, StoreError> {
        set(Redis::connect(&self.url).prefix(&self.prefix)).await
    }

    async fn usage(store: &Redis) -> Usage {
        store.ledger_usage().await.expect("numbers")
    }

    async fn replies(&self) -> Vec<Vec<u8>> {
        let mut replies = Vec::new();
        for key in self.records().await {
            let reply: Option<Vec<u8>> = self.connect().await.hget(key, "reply").await.expect("a field");
            replies.extend(reply);
        }
        replies
    }

    async fn damage(&self, first: u8) {
        let mut connection = self.connect().await;
        for key in self.records().await {
            let mut reply: Vec<u8> = connection.hget(&key, "reply").await.expect("a field");
            reply[0] = first;
            let _: () = connection.hset(&key, "reply", reply).await.expect("a change");
        }
    }

    async fn disown(&self) {
        let mut connection = self.connect().await;
        for key in self.records().await {
            let _: () = connection.hset(key, "holder", vec![0_u8; 16]).await.expect("a change");
        }
    }

    async fn expire(&self) {
        let mut connection = self.connect().await;
        for key in self.records().await {
            let _: () = connection.pexpire_at(key, 1).await.expect("a change");
        }
    }

    async fn outdate(&self) {
        let key = format!("{{{}}}:schema", self.prefix);
        let _: () = self.connect().await.set(key, 99).await.expect("a change");
    }

    async fn stored(&self) -> u64 {
        self.records().await.len() as u64
    }
}
