//! Requests to hosts that the network named: the proxies that see them, and the addresses that are connected to.

use reqwest::ClientBuilder;

/// Returns whether a host is this machine, by its name or address.
fn is_this_machine(host: &str) -> bool {
    let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    if let Ok(address) = host.parse::<std::net::IpAddr>() {
        return address.to_canonical().is_loopback() || address.is_unspecified();
    }
    let name = host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase();
    name == "localhost" || name.ends_with(".localhost")
}

/// Keeps what is sent to this machine from the proxies of the environment: plain `http` is allowed because it stays here.
pub(crate) fn by_proxy_unless_local(client: ClientBuilder, host: &str) -> ClientBuilder {
    if is_this_machine(host) { client.no_proxy() } else { client }
}

#[cfg(any(feature = "authorize", feature = "oauth"))]
pub(crate) use guarded::Outbound;

#[cfg(any(feature = "authorize", feature = "oauth"))]
mod guarded;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_has_many_names() {
        for host in [
            "localhost",
            "LOCALHOST.",
            "app.localhost",
            "127.0.0.1",
            "127.9.9.9",
            "[::1]",
            "[::ffff:127.0.0.1]",
            "0.0.0.0",
        ] {
            assert!(is_this_machine(host), "{host}");
        }
        for host in ["localhost.example", "notlocalhost", "10.0.0.1", "[fe80::1]", "tools.example", ""] {
            assert!(!is_this_machine(host), "{host}");
        }
    }
}
