//! Client side: a server as a child process, started by the first call and again after it has died.

mod child;
mod inbox;
#[cfg(feature = "legacy")]
mod legacy;
mod link;
mod stderr;

use std::fmt;

use roundtrip_core::wire::ProtocolVersion;
use tokio::process::Command;

use self::child::Launcher;
#[cfg(feature = "legacy")]
use self::legacy::Connection;
use self::link::ChildLink;
use crate::client::{BoxFuture, Client, Error, Incoming, Outgoing, Transport};

/// Connection of a client to its server.
#[cfg(not(feature = "legacy"))]
type Connection = crate::client::ModernClient<ChildLink>;

impl Client {
    /// Creates a client of a server that runs as a child process and speaks on its standard streams.
    ///
    /// The child is started by the first call, in a process group of its own. When it dies, calls under way fail with
    /// its exit status and the last lines of its standard error, and the next call starts it again. It is ended in
    /// the background when the last clone of the client is dropped, or by [`close`](Self::close), which waits for it:
    /// its input is closed, and if that is not enough, the whole group gets SIGTERM, then SIGKILL.
    ///
    /// ```no_run
    /// # async fn example() -> Result<(), roundtrip::Error> {
    /// use roundtrip::Client;
    /// use tokio::process::Command;
    ///
    /// let mut command = Command::new("my-server");
    /// command.arg("--quiet");
    /// let client = Client::stdio(command);
    /// let tools = client.list_tools().await?;
    /// client.close().await;
    /// # Ok(())
    /// # }
    /// ```
    pub fn stdio(command: impl Into<Command>) -> Self {
        Self::new(Stdio(Connection::new(ChildLink::new(Launcher::new(command.into())))))
    }
}

struct Stdio(Connection);

impl Transport for Stdio {
    fn send(&self, outgoing: Outgoing) -> BoxFuture<Result<Incoming, Error>> {
        self.0.send(outgoing)
    }

    fn speaks(&self, version: ProtocolVersion) -> bool {
        Connection::speaks(version)
    }

    #[cfg(feature = "legacy")]
    fn protocol_version(&self) -> Option<ProtocolVersion> {
        self.0.protocol_version()
    }

    #[cfg(feature = "opentelemetry")]
    fn network(&self) -> crate::telemetry::Network {
        crate::telemetry::Network::pipe()
    }

    #[cfg(feature = "legacy")]
    fn abandon(&self, state: &str) {
        self.0.abandon(state);
    }

    fn close(&self) -> BoxFuture<()> {
        let connection = self.0.clone();
        Box::pin(async move {
            connection.close().await;
            connection.link().close().await;
        })
    }
}

impl fmt::Debug for Stdio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stdio").finish_non_exhaustive()
    }
}
