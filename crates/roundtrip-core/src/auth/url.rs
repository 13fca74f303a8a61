//! URLs of peers: exact strings whose parts have been checked.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::fmt;

use serde::{Deserialize, Serialize};

/// Longest URL that is read, in bytes.
const LONGEST: usize = 2048;
/// Longest URL of an authorization request, which names scopes, in bytes: what servers commonly take.
const LONGEST_REQUEST: usize = 8 * 1024;

/// An `http` or `https` URL, kept and shown byte for byte as it was given.
///
/// Issuers and resources are compared as plain strings, so nothing here is normalised. The grammar is narrower than that of
/// URL parsers: what two of them could read differently (user info, backslashes, dot segments, numbers for hosts) is
/// refused.
///
/// ```
/// use roundtrip_core::auth::HttpUrl;
///
/// assert_eq!(HttpUrl::parse("https://tools.example").unwrap().as_str(), "https://tools.example");
/// assert!(HttpUrl::parse("https://alice@tools.example/").is_err());
/// assert!(HttpUrl::parse("https://0x7f000001/").is_err());
/// ```
#[derive(Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct HttpUrl(String);

/// Reason a text is not a URL that is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum UrlError {
    /// Longer than 2048 bytes.
    #[error("it is longer than {LONGEST} bytes")]
    TooLong,
    /// A character that URLs do not have.
    #[error("it has a character that URLs do not have")]
    Character,
    /// Another scheme than `http` and `https`, or none.
    #[error("it does not begin with https:// or http://")]
    Scheme,
    /// A name or password before the host.
    #[error("it has a user name before its host")]
    UserInfo,
    /// No host, or one that parsers read differently.
    #[error("its host is neither a name nor an address in its usual form")]
    Host,
    /// A port that is no number, or too large.
    #[error("its port is not a number up to 65535")]
    Port,
    /// A fragment.
    #[error("it has a fragment")]
    Fragment,
    /// `.` or `..` as a segment of the path.
    #[error("its path has the segment `.` or `..`")]
    DotSegment,
    /// A query where there must be none, or one that repeats parameters of ours.
    #[error("its query is not one that can be here")]
    Query,
    /// Plain `http` to a host that is not this machine, or from a server that is not on it.
    #[error("it must be https: plain http is for servers on this machine")]
    Insecure,
    /// An address in a private network.
    #[error("it is an address of a private network; allow those for this client if that is intended")]
    Private,
}

/// The parts of a URL.
struct Parts<'a> {
    scheme: &'a str,
    authority: &'a str,
    path: &'a str,
    query: Option<&'a str>,
}

impl HttpUrl {
    /// Checks a URL without a fragment.
    ///
    /// # Errors
    /// Fails if it is not one.
    pub fn parse(text: &str) -> Result<Self, UrlError> {
        Self::up_to(LONGEST, text)
    }

    /// Checks the URL of an authorization request.
    pub(super) fn of_request(text: &str) -> Result<Self, UrlError> {
        Self::up_to(LONGEST_REQUEST, text)
    }

    fn up_to(longest: usize, text: &str) -> Result<Self, UrlError> {
        if text.len() > longest {
            return Err(UrlError::TooLong);
        }
        if !text.bytes().all(is_url_byte) {
            return Err(UrlError::Character);
        }
        if text.contains('#') {
            return Err(UrlError::Fragment);
        }
        let parts = split(text).ok_or(UrlError::Scheme)?;
        check_authority(parts.authority)?;
        if parts.path.split('/').any(is_dot_segment) {
            return Err(UrlError::DotSegment);
        }
        Ok(Self(text.to_owned()))
    }

    /// Checks the URL of a server, and drops its fragment.
    ///
    /// # Errors
    /// Fails if it is not one.
    pub fn of_server(text: &str) -> Result<Self, UrlError> {
        Self::parse(text.split('#').next().unwrap_or_default())
    }

    /// Returns the URL as it was given.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns whether the scheme is `https`.
    pub fn is_https(&self) -> bool {
        self.parts().scheme.eq_ignore_ascii_case("https")
    }

    /// Returns the host as it was given, an IPv6 address with its brackets.
    pub fn host(&self) -> &str {
        split_port(self.parts().authority).0
    }

    /// Returns the path as it was given; a URL may have none.
    pub fn path(&self) -> &str {
        self.parts().path
    }

    /// Returns the query, without its question mark.
    pub fn query(&self) -> Option<&str> {
        self.parts().query
    }

    /// Returns scheme and authority as they were given.
    pub fn base(&self) -> &str {
        let parts = self.parts();
        &self.0[..parts.scheme.len() + "://".len() + parts.authority.len()]
    }

    /// Returns the URL without its query.
    pub fn without_query(&self) -> &str {
        self.0.split('?').next().unwrap_or_default()
    }

    /// Returns the origin in lower case and without a default port, for comparison.
    pub fn origin(&self) -> String {
        let parts = self.parts();
        let (host, port) = split_port(parts.authority);
        let scheme = parts.scheme.to_ascii_lowercase();
        let usual = if scheme == "https" { 443 } else { 80 };
        let host = host.to_ascii_lowercase();
        match port.and_then(|port| port.parse::<u16>().ok()).filter(|port| *port != usual) {
            Some(port) => format!("{scheme}://{host}:{port}"),
            None => format!("{scheme}://{host}"),
        }
    }

    /// Returns the address that the host is written as.
    pub fn address(&self) -> Option<IpAddr> {
        let host = self.host();
        match host.strip_prefix('[').and_then(|host| host.strip_suffix(']')) {
            Some(host) => host.parse::<Ipv6Addr>().ok().map(IpAddr::V6),
            None => host.parse::<Ipv4Addr>().ok().map(IpAddr::V4),
        }
    }

    /// Returns whether the host is this machine: `localhost`, or a loopback address.
    pub fn is_loopback(&self) -> bool {
        let name = self.host().to_ascii_lowercase();
        name == "localhost" || self.address().is_some_and(|address| address.is_loopback())
    }

    /// Resolves a reference: a URL, a path of the same host, or a name beside this one's last segment.
    ///
    /// # Errors
    /// Fails if the outcome is not a URL that is used.
    pub fn resolve(&self, reference: &str) -> Result<Self, UrlError> {
        let has_scheme = reference.find(':').is_some_and(|at| !reference[..at].contains(['/', '?']));
        if has_scheme {
            return Self::parse(reference);
        }
        let parts = self.parts();
        if reference.starts_with("//") {
            return Self::parse(&format!("{}:{reference}", parts.scheme));
        }
        if reference.starts_with('/') {
            return Self::parse(&format!("{}{reference}", self.base()));
        }
        let folder = parts.path.rfind('/').map_or("/", |at| &parts.path[..=at]);
        Self::parse(&format!("{}{folder}{reference}", self.base()))
    }

    fn parts(&self) -> Parts<'_> {
        // A value of this type has been split once; the empty parts are never seen.
        split(&self.0).unwrap_or(Parts { scheme: "", authority: "", path: "", query: None })
    }
}

/// Returns a text that is or should be a URL, for errors and logs: without query, fragment and user info, which may be secret.
///
/// ```
/// use roundtrip_core::auth::shown_url;
///
/// assert_eq!(shown_url("https://alice:secret@tools.example/mcp?key=secret"), "https://tools.example/mcp");
/// ```
pub fn shown_url(text: &str) -> String {
    let text = text.split(['?', '#']).next().unwrap_or_default();
    let host = text.find("//").map_or(0, |at| at + "//".len());
    let end = text[host..].find('/').map_or(text.len(), |at| host + at);
    match text[host..end].rfind('@') {
        Some(at) => format!("{}{}", &text[..host], &text[host + at + 1..]),
        None => text.to_owned(),
    }
}

fn split(text: &str) -> Option<Parts<'_>> {
    let (scheme, rest) = text.split_once("://")?;
    if !scheme.eq_ignore_ascii_case("https") && !scheme.eq_ignore_ascii_case("http") {
        return None;
    }
    let (authority, rest) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
    let (path, query) = match rest.split_once('?') {
        Some((path, query)) => (path, Some(query)),
        None => (rest, None),
    };
    Some(Parts { scheme, authority, path, query })
}

/// Splits an authority at its port. Colons inside brackets belong to the address.
fn split_port(authority: &str) -> (&str, Option<&str>) {
    match authority.rfind(':').filter(|at| !authority[*at..].contains(']')) {
        Some(at) => (&authority[..at], Some(&authority[at + 1..])),
        None => (authority, None),
    }
}

fn check_authority(authority: &str) -> Result<(), UrlError> {
    if authority.contains('@') {
        return Err(UrlError::UserInfo);
    }
    let (host, port) = split_port(authority);
    let digits = |port: &str| port.bytes().all(|byte| byte.is_ascii_digit());
    if port.is_some_and(|port| !digits(port) || port.parse::<u16>().is_err()) {
        return Err(UrlError::Port);
    }
    if is_host(host) { Ok(()) } else { Err(UrlError::Host) }
}

/// Returns whether a host is a name or an address in its usual form. A last label that begins with a digit makes it a number
/// for URL parsers, which read `2130706433` and `127.1` as addresses.
fn is_host(host: &str) -> bool {
    if let Some(rest) = host.strip_prefix('[') {
        return rest.strip_suffix(']').is_some_and(|address| address.parse::<Ipv6Addr>().is_ok());
    }
    let named = host.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_'));
    let last = host.trim_end_matches('.').rsplit('.').next().unwrap_or_default();
    match last.bytes().next() {
        None => false,
        Some(first) if first.is_ascii_digit() => host.parse::<Ipv4Addr>().is_ok(),
        Some(_) => named && host.split('.').rev().skip(1).all(|label| !label.is_empty()),
    }
}

/// Returns whether a byte may stand in a URL. Backslashes are left out: browsers read them as slashes.
fn is_url_byte(byte: u8) -> bool {
    byte.is_ascii_graphic() && !matches!(byte, b'"' | b'<' | b'>' | b'\\' | b'^' | b'`' | b'{' | b'|' | b'}')
}

fn is_dot_segment(segment: &str) -> bool {
    // Parsers decode `%2e` before they look for dot segments.
    segment.len() <= "%2e%2e".len()
        && matches!(segment.to_ascii_lowercase().replace("%2e", ".").as_str(), "." | "..")
}

impl TryFrom<String> for HttpUrl {
    type Error = UrlError;

    fn try_from(text: String) -> Result<Self, UrlError> {
        Self::parse(&text)
    }
}

impl From<HttpUrl> for String {
    fn from(url: HttpUrl) -> Self {
        url.0
    }
}

impl fmt::Display for HttpUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Leaves the query out, which may be a key: `Debug` is for errors and logs.
impl fmt::Debug for HttpUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let query = if self.query().is_some() { "?.." } else { "" };
        write!(f, "\"{}{query}\"", self.without_query())
    }
}
