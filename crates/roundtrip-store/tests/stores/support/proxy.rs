//! A proxy before a database: it counts exchanges, breaks connections and loses answers.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

#[derive(Clone)]
pub(crate) struct Proxy(Arc<Inner>);

struct Inner {
    address: SocketAddr,
    database: String,
    exchanges: AtomicUsize,
    loses_an_answer: AtomicBool,
    /// Whether the database is away.
    away: watch::Sender<bool>,
    /// Number of open connections.
    open: watch::Sender<usize>,
}

/// An open connection: counted while it is there.
struct Open(Proxy);

impl Open {
    fn new(proxy: &Proxy) -> Self {
        proxy.0.open.send_modify(|open| *open += 1);
        Self(proxy.clone())
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.0.open.send_modify(|open| *open -= 1);
    }
}

impl Proxy {
    /// Starts a proxy before the database of a URL, and returns the URL that leads through it.
    pub(crate) async fn before(url: &str) -> (Self, String) {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a listener");
        let address = listener.local_addr().expect("an address");
        let (_, rest) = url.split_once("127.0.0.1:").expect("a database on this machine");
        let port: String = rest.chars().take_while(char::is_ascii_digit).collect();
        let database = format!("127.0.0.1:{port}");
        let url = url.replace(&database, &address.to_string());
        let proxy = Self(Arc::new(Inner {
            address,
            database,
            exchanges: AtomicUsize::new(0),
            loses_an_answer: AtomicBool::new(false),
            away: watch::channel(false).0,
            open: watch::channel(0).0,
        }));
        tokio::spawn(proxy.clone().serve(listener));
        (proxy, url)
    }

    /// Number of times that something was said after an answer.
    pub(crate) fn exchanges(&self) -> usize {
        self.0.exchanges.load(Ordering::SeqCst)
    }

    /// Breaks every connection, and refuses new ones until [`come_back`](Self::come_back).
    pub(crate) async fn go_away(&self) {
        self.0.away.send_replace(true);
        // The sender is here, so this does not fail.
        let _ = self.0.open.subscribe().wait_for(|open| *open == 0).await;
    }

    pub(crate) fn come_back(&self) {
        self.0.away.send_replace(false);
    }

    /// Breaks the connection that gets the next answer, before the answer.
    pub(crate) fn lose_an_answer(&self) {
        self.0.loses_an_answer.store(true, Ordering::SeqCst);
    }

    pub(crate) fn has_lost_it(&self) -> bool {
        !self.0.loses_an_answer.load(Ordering::SeqCst)
    }

    async fn serve(self, listener: TcpListener) {
        assert_ne!(self.0.address.port(), 0);
        while let Ok((client, _)) = listener.accept().await {
            let open = Open::new(&self);
            if !*self.0.away.borrow() {
                tokio::spawn(self.clone().pass(client, open));
            }
        }
    }

    async fn pass(self, client: TcpStream, _open: Open) {
        let Ok(database) = TcpStream::connect(&self.0.database).await else { return };
        let (from_client, to_client) = client.into_split();
        let (from_database, to_database) = database.into_split();
        let answered = AtomicBool::new(true);
        let mut away = self.0.away.subscribe();
        tokio::select! {
            () = self.questions(from_client, to_database, &answered) => {}
            () = self.answers(from_database, to_client, &answered) => {}
            _ = away.wait_for(|away| *away) => {}
        }
    }

    async fn questions(&self, mut from: OwnedReadHalf, mut to: OwnedWriteHalf, answered: &AtomicBool) {
        let mut bytes = vec![0; 1 << 16];
        while let Ok(length @ 1..) = from.read(&mut bytes).await {
            if answered.swap(false, Ordering::SeqCst) {
                self.0.exchanges.fetch_add(1, Ordering::SeqCst);
            }
            if to.write_all(&bytes[..length]).await.is_err() {
                return;
            }
        }
    }

    async fn answers(&self, mut from: OwnedReadHalf, mut to: OwnedWriteHalf, answered: &AtomicBool) {
        let mut bytes = vec![0; 1 << 16];
        while let Ok(length @ 1..) = from.read(&mut bytes).await {
            answered.store(true, Ordering::SeqCst);
            if self.0.loses_an_answer.swap(false, Ordering::SeqCst)
                || to.write_all(&bytes[..length]).await.is_err()
            {
                return;
            }
        }
    }
}
