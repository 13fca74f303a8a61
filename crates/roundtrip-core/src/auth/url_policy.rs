//! Rules for URLs that came from the network.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::url::{HttpUrl, UrlError};

/// Rules for the URLs that a server's metadata leads to.
///
/// They are `https`, except on this machine where the server itself is on it, and they are no addresses of private networks.
/// The host of the server is always reached: the author named it. A name can still resolve to a private address: the
/// resolver of the edge filters by [`is_public_address`].
#[derive(Debug, Clone)]
pub struct UrlPolicy {
    server: HttpUrl,
    private: bool,
}

impl UrlPolicy {
    /// Creates the rules for what a server's metadata leads to. `private` allows private networks.
    ///
    /// # Errors
    /// Fails for a server on plain `http` that is not on this machine.
    pub fn new(server: HttpUrl, private: bool) -> Result<Self, UrlError> {
        if !server.is_https() && !server.is_loopback() {
            return Err(UrlError::Insecure);
        }
        Ok(Self { server, private })
    }

    /// Returns the URL of the server.
    pub fn server(&self) -> &HttpUrl {
        &self.server
    }

    /// Returns whether loopback addresses may be connected to.
    pub fn reaches_loopback(&self) -> bool {
        self.private || self.server.is_loopback()
    }

    /// Returns whether an address that a host name resolved to may be connected to.
    pub fn allows_address(&self, host: &str, address: IpAddr) -> bool {
        self.private
            || host.eq_ignore_ascii_case(self.server.host())
            || is_public_address(address)
            || address.to_canonical().is_loopback() && self.server.is_loopback()
    }

    /// Reads a URL that came from the network.
    ///
    /// # Errors
    /// Fails if it is not one, or not allowed.
    pub fn read(&self, text: &str) -> Result<HttpUrl, UrlError> {
        let url = HttpUrl::parse(text)?;
        self.check(&url)?;
        Ok(url)
    }

    /// Checks a URL that came from the network.
    ///
    /// # Errors
    /// Fails if it is not allowed.
    pub fn check(&self, url: &HttpUrl) -> Result<(), UrlError> {
        if !(url.is_https() || url.is_loopback() && self.server.is_loopback()) {
            return Err(UrlError::Insecure);
        }
        if self.private || url.host().eq_ignore_ascii_case(self.server.host()) {
            return Ok(());
        }
        let allowed = if url.is_loopback() {
            self.server.is_loopback()
        } else {
            url.address().is_none_or(is_public_address)
        };
        if allowed { Ok(()) } else { Err(UrlError::Private) }
    }
}

/// Returns whether an address is one of the public internet. Addresses that carry an IPv4 address inside count as that.
pub fn is_public_address(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let special = matches!(
        address.octets(),
        [0 | 240.., ..]                 // "this network", reserved
            | [100, 64..=127, ..]       // shared by carriers
            | [192, 0, 0, _]            // protocol assignments
            | [198, 18 | 19, ..] // benchmarks
    );
    !(special
        || address.is_private()
        || address.is_loopback()
        || address.is_link_local()
        || address.is_multicast()
        || address.is_documentation())
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    let v4 = |high: u16, low: u16| {
        let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
        is_public_v4(Ipv4Addr::new(a, b, c, d))
    };
    match address.segments() {
        // IPv4-mapped and -compatible (`::` and `::1` too), NAT64, 6to4.
        [0, 0, 0, 0, 0, 0 | 0xffff, high, low] | [0x64, 0xff9b, 0, 0, 0, 0, high, low] => v4(high, low),
        [0x2002, high, low, ..] => v4(high, low),
        // Teredo, documentation, local NAT64.
        [0x2001, 0 | 0xdb8, ..] | [0x64, 0xff9b, 1, ..] => false,
        // Global unicast is 2000::/3; unique local, link-local and multicast lie outside.
        [first, ..] => first >> 13 == 1,
    }
}
