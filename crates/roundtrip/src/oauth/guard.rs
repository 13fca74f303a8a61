//! Guard of addresses: URLs that came from the network lead to no private network (O50).

use std::collections::HashSet;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex};

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use roundtrip_core::auth::is_public_address;

use crate::lock::lock;

/// Greatest number of hosts that are remembered.
const MOST_HOSTS: usize = 64;

/// Hosts whose names must not resolve to private addresses. As the resolver of an HTTP client it filters what is connected to,
/// so that a name cannot resolve one way for a check and another way for the connection.
///
/// Other names, those of the server and of proxies, resolve as they are: the author named them.
#[derive(Clone, Default)]
pub(crate) struct Guard(Arc<Mutex<HashSet<String>>>);

/// Error of a name that leads to private addresses alone.
#[derive(Debug, thiserror::Error)]
#[error(
    "`{0}` has only addresses of private networks: allow those with `OAuth::private_networks` if that is intended"
)]
struct Private(String);

impl Guard {
    /// Adds a host. Returns whether it is guarded now.
    pub(super) fn add(&self, host: &str) -> bool {
        let mut hosts = lock(&self.0);
        let host = host.to_ascii_lowercase();
        if hosts.len() >= MOST_HOSTS && !hosts.contains(&host) {
            return false;
        }
        hosts.insert(host);
        true
    }

    fn has(&self, host: &str) -> bool {
        lock(&self.0).contains(&host.to_ascii_lowercase())
    }
}

/// Resolves a name to the addresses that may be connected to.
pub(super) async fn public_addresses(
    host: &str,
) -> Result<Vec<SocketAddr>, Box<dyn std::error::Error + Send + Sync>> {
    let local = host.eq_ignore_ascii_case("localhost");
    let allowed = |address: IpAddr| is_public_address(address) || local && address.is_loopback();
    let found: Vec<SocketAddr> = tokio::net::lookup_host((host, 0)).await?.collect();
    let addresses: Vec<SocketAddr> = found.iter().copied().filter(|found| allowed(found.ip())).collect();
    if addresses.is_empty() && !found.is_empty() {
        return Err(Private(host.to_owned()).into());
    }
    Ok(addresses)
}

impl Resolve for Guard {
    fn resolve(&self, name: Name) -> Resolving {
        let (host, guarded) = (name.as_str().to_owned(), self.has(name.as_str()));
        Box::pin(async move {
            let addresses: Addrs = if guarded {
                Box::new(public_addresses(&host).await?.into_iter())
            } else {
                Box::new(tokio::net::lookup_host((host.as_str(), 0)).await?.collect::<Vec<_>>().into_iter())
            };
            Ok(addresses)
        })
    }
}

impl fmt::Debug for Guard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Guard").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn resolved(guard: &Guard, host: &str) -> Result<usize, String> {
        let name = host.parse().expect("a name");
        guard.resolve(name).await.map(Iterator::count).map_err(|error| error.to_string())
    }

    /// O50: a guarded name resolves to no private address, and other names as they are.
    #[tokio::test]
    async fn names_from_the_network_lead_to_no_private_address() {
        let guard = Guard::default();
        // An address as a name: no network is needed to resolve it.
        assert_eq!(resolved(&guard, "10.0.0.1").await, Ok(1));
        assert!(guard.add("10.0.0.1") && guard.add("169.254.169.254"));
        for host in ["10.0.0.1", "169.254.169.254"] {
            let refused = resolved(&guard, host).await.expect_err("a private address");
            assert!(refused.contains("private networks"), "{refused}");
        }
    }

    /// O50: a server cannot make the guard forget, or grow without end.
    #[test]
    fn the_guard_is_bounded() {
        let guard = Guard::default();
        let added = (0..1000).filter(|number| guard.add(&format!("host-{number}.example"))).count();
        assert_eq!(added, MOST_HOSTS);
        assert!(guard.has("HOST-0.example"));
    }
}
