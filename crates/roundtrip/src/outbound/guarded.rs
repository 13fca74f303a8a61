//! HTTP clients for URLs that came from the network: they lead to no private network (O50).

use std::collections::HashMap;
use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::{Client, ClientBuilder};
use roundtrip_core::auth::HttpUrl;

use super::{by_proxy_unless_local, is_this_machine};
use crate::lock::lock;

/// Greatest number of hosts that are remembered.
const MOST_HOSTS: usize = 64;
/// Time for which a name that was judged ahead is not looked up again: introspection asks the same host for every new token.
const JUDGED: Duration = Duration::from_secs(60);

/// HTTP clients of the same settings: one for this machine, and one for other hosts, by the proxies of the environment.
///
/// Names are judged twice: ahead of the request, since a proxy resolves them by itself, and as they are connected to, so that a
/// name cannot resolve one way for the check and another way for the connection.
#[derive(Debug, Clone)]
pub(crate) struct Outbound {
    local: Client,
    other: Client,
    guard: Guard,
}

impl Outbound {
    /// Makes clients that connect to the addresses which a rule allows for a host.
    pub(crate) fn new(
        settings: impl Fn() -> ClientBuilder,
        allows: impl Fn(&str, IpAddr) -> bool + Send + Sync + 'static,
    ) -> Result<Self, reqwest::Error> {
        let guard = Guard::new(allows);
        let client = |host| {
            let settings = by_proxy_unless_local(settings(), host);
            settings.dns_resolver(Arc::new(guard.clone())).build()
        };
        Ok(Self { local: client("localhost")?, other: client("")?, guard })
    }

    /// Takes the author's client, which has its own proxies and resolver: names are judged only ahead of it.
    pub(crate) fn own(client: Client, allows: impl Fn(&str, IpAddr) -> bool + Send + Sync + 'static) -> Self {
        Self { local: client.clone(), other: client, guard: Guard::new(allows) }
    }

    /// Returns the client for a host, without a check.
    pub(crate) fn client(&self, host: &str) -> &Client {
        if is_this_machine(host) { &self.local } else { &self.other }
    }

    /// Returns the client for a URL that came from the network.
    ///
    /// # Errors
    /// Fails if its name has an address that the rule does not allow: a proxy, or a client of the author's, may choose that one. A name
    /// that does not resolve here may do so at a proxy.
    pub(crate) async fn checked(&self, url: &HttpUrl) -> Result<&Client, String> {
        // Those that are written as addresses were judged as such.
        if url.address().is_none() {
            if !self.guard.add(url.host()) {
                return Err("the metadata led to too many hosts".to_owned());
            }
            self.guard.check(url.host()).await?;
        }
        Ok(self.client(url.host()))
    }
}

/// Rule for the addresses of a host.
type Allows = dyn Fn(&str, IpAddr) -> bool + Send + Sync;

/// Resolver that filters the addresses of hosts which came from the network.
///
/// Other names, those of the server and of proxies, resolve as they are: the author named them.
#[derive(Clone)]
struct Guard {
    /// Hosts, and when they were last judged ahead of a request.
    hosts: Arc<Mutex<HashMap<String, Option<Instant>>>>,
    allows: Arc<Allows>,
}

/// Error of a name that has private addresses.
#[derive(Debug, thiserror::Error)]
#[error("`{0}` has addresses of private networks: allow those in the settings if that is intended")]
struct Private(String);

impl Guard {
    fn new(allows: impl Fn(&str, IpAddr) -> bool + Send + Sync + 'static) -> Self {
        Self { hosts: Arc::default(), allows: Arc::new(allows) }
    }

    /// Adds a host. Returns whether it is guarded now.
    fn add(&self, host: &str) -> bool {
        let mut hosts = lock(&self.hosts);
        let host = host.to_ascii_lowercase();
        if hosts.len() >= MOST_HOSTS && !hosts.contains_key(&host) {
            return false;
        }
        hosts.entry(host).or_default();
        true
    }

    fn has(&self, host: &str) -> bool {
        lock(&self.hosts).contains_key(&host.to_ascii_lowercase())
    }

    /// Refuses a name that has private addresses, whatever others it has.
    async fn check(&self, host: &str) -> Result<(), String> {
        let host = host.to_ascii_lowercase();
        let judged = lock(&self.hosts).get(&host).copied().flatten();
        if judged.is_some_and(|judged| judged.elapsed() < JUDGED) {
            return Ok(());
        }
        // A name that does not resolve is looked up again the next time: it may resolve by then.
        let Ok(found) = lookup(&host).await else { return Ok(()) };
        self.judge(&host, &found).map_err(|private| private.to_string())?;
        lock(&self.hosts).entry(host).and_modify(|judged| *judged = Some(Instant::now()));
        Ok(())
    }

    /// Judges all addresses of a name, where another may choose the one that is connected to.
    fn judge(&self, host: &str, found: &[SocketAddr]) -> Result<(), Private> {
        let all = found.iter().all(|found| (self.allows)(host, found.ip()));
        if all { Ok(()) } else { Err(Private(host.to_owned())) }
    }

    /// Chooses the addresses of a name that may be connected to, where this resolver chooses.
    fn choose(&self, host: &str, found: Vec<SocketAddr>) -> Result<Vec<SocketAddr>, Private> {
        if !self.has(host) || found.is_empty() {
            return Ok(found);
        }
        let allowed: Vec<SocketAddr> =
            found.into_iter().filter(|found| (self.allows)(host, found.ip())).collect();
        if allowed.is_empty() { Err(Private(host.to_owned())) } else { Ok(allowed) }
    }
}

/// Resolves a name to all its addresses.
async fn lookup(host: &str) -> io::Result<Vec<SocketAddr>> {
    match tokio::net::lookup_host((host, 0)).await {
        Ok(found) => Ok(found.collect()),
        // RFC 6761, 6.3: these names are loopback, also where the system does not know them.
        Err(_) if is_this_machine(host) => Ok(vec![(Ipv4Addr::LOCALHOST, 0).into()]),
        Err(error) => Err(error),
    }
}

impl Resolve for Guard {
    fn resolve(&self, name: Name) -> Resolving {
        let guard = self.clone();
        Box::pin(async move {
            let addresses = guard.choose(name.as_str(), lookup(name.as_str()).await?)?;
            Ok(Box::new(addresses.into_iter()) as Addrs)
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
    use roundtrip_core::auth::is_public_address;

    use super::*;

    fn guard() -> Guard {
        Guard::new(|_, address| is_public_address(address))
    }

    async fn resolved(guard: &Guard, host: &str) -> Result<usize, String> {
        let name = host.parse().expect("a name");
        guard.resolve(name).await.map(Iterator::count).map_err(|error| error.to_string())
    }

    /// O50: a guarded name resolves to no private address, and other names as they are.
    #[tokio::test]
    async fn names_from_the_network_lead_to_no_private_address() {
        let guard = guard();
        // An address as a name: no network is needed to resolve it.
        assert_eq!(resolved(&guard, "10.0.0.1").await, Ok(1));
        assert!(guard.add("10.0.0.1") && guard.add("169.254.169.254"));
        for host in ["10.0.0.1", "169.254.169.254"] {
            let refused = resolved(&guard, host).await.expect_err("a private address");
            assert!(refused.contains("private networks"), "{refused}");
        }
    }

    /// O50: names are judged ahead of a proxy, or of a client of the author's; a proxy may know others.
    #[tokio::test]
    async fn names_are_judged_ahead() {
        let outbound = Outbound::own(Client::new(), |_, address| is_public_address(address));
        let check = async |url: &str| outbound.checked(&HttpUrl::parse(url).expect("a URL")).await.map(drop);
        for private in ["https://localhost/keys", "https://localhost./keys", "https://app.localhost/keys"] {
            let refused = check(private).await.expect_err("a private address");
            assert!(refused.contains("private networks"), "{refused}");
        }
        assert_eq!(check("https://no-such-name.invalid/keys").await, Ok(()));
        let judged = |host: &str| lock(&outbound.guard.hosts).get(host).copied().flatten();
        assert!(judged("no-such-name.invalid").is_none(), "it is looked up again");
    }

    /// O50: a name with a private address beside a public one is refused ahead of a proxy, or of a client of the author's, which choose
    /// between them; the resolver here leaves the private one out.
    #[test]
    fn a_private_address_does_not_hide_behind_a_public_one() {
        let guard = guard();
        assert!(guard.add("tools.example"));
        let address = |text: &str| SocketAddr::new(text.parse().expect("an address"), 0);
        let (public, private) = (address("93.184.215.14"), address("169.254.169.254"));
        for mixed in [[public, private], [private, public]] {
            assert!(guard.judge("tools.example", &mixed).is_err());
            assert_eq!(guard.choose("tools.example", mixed.to_vec()).expect("a public one"), [public]);
        }
        assert!(guard.judge("tools.example", &[public]).is_ok());
        assert!(guard.choose("tools.example", vec![private]).is_err());
    }

    /// O50: a server cannot make the guard forget, or grow without end.
    #[test]
    fn the_guard_is_bounded() {
        let guard = guard();
        let added = (0..1000).filter(|number| guard.add(&format!("host-{number}.example"))).count();
        assert_eq!(added, MOST_HOSTS);
        assert!(guard.has("HOST-0.example"));
    }
}
