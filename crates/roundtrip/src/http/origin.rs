//! Checks of `Origin` and `Host` against browsers (streamable HTTP, "Security & Endpoint").

use http::StatusCode;
use http::header::ORIGIN;
use http::request::Parts;

use super::head::host;

/// Allowed origins and hosts (H6).
#[derive(Debug, Clone, Default)]
pub(crate) struct Gate {
    origins: Vec<String>,
    hosts: Vec<String>,
    /// True if bound to a loopback address, where only a page that has rebound its own name sends another `Host`.
    pub(crate) loopback: bool,
    /// True if the connection is Roundtrip's, so that no other server has checked that a request names one host.
    pub(crate) needs_host: bool,
}

impl Gate {
    pub(crate) fn allow_origin(&mut self, origin: String) {
        self.origins.push(origin);
    }

    pub(crate) fn allow_host(&mut self, host: String) {
        self.hosts.push(host);
    }

    /// Returns the status and the reason with which a request is refused, if it is.
    pub(crate) fn refuses(&self, head: &Parts) -> Option<(StatusCode, &'static str)> {
        if let Some(origin) = head.headers.get(ORIGIN) {
            let allowed = origin.to_str().is_ok_and(|origin| {
                self.origins.iter().any(|allowed| allowed == origin || allowed == "*")
                    || is_loopback_origin(origin)
            });
            if !allowed {
                let why = "this origin is not allowed: the server's author can add it with `allow_origin`";
                return Some((StatusCode::FORBIDDEN, why));
            }
        }
        if !(self.loopback || self.needs_host) {
            return None;
        }
        match host(head.version, &head.uri, &head.headers) {
            Err(why) => Some((StatusCode::BAD_REQUEST, why)),
            Ok(Some(host)) if self.loopback && !self.allows_host(host) => {
                let why = "this host is not allowed: the server's author can add it with `allow_host`";
                Some((StatusCode::FORBIDDEN, why))
            }
            // HTTP/1.0 has requests without a host. No browser sends them.
            Ok(_) => None,
        }
    }

    fn allows_host(&self, host: &str) -> bool {
        is_loopback_authority(host) || self.hosts.iter().any(|allowed| allowed == host)
    }
}

fn is_loopback_origin(origin: &str) -> bool {
    let authority = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
    authority.is_some_and(is_loopback_authority)
}

/// Returns whether an authority is a loopback host, with any port and nothing else around it.
fn is_loopback_authority(authority: &str) -> bool {
    let port = ["localhost", "127.0.0.1", "[::1]"].iter().find_map(|host| authority.strip_prefix(host));
    port.is_some_and(|port| {
        port.is_empty() || port.strip_prefix(':').is_some_and(|digits| digits.parse::<u16>().is_ok())
    })
}

#[cfg(test)]
mod tests {
    use http::header::HOST;

    use super::*;

    fn refused(gate: &Gate, name: http::HeaderName, value: &str) -> bool {
        let request = http::Request::post("/mcp").header(name, value).body(()).expect("a request");
        gate.refuses(&request.into_parts().0).is_some()
    }

    /// H6: `Origin` is checked by default: loopback and configured ones pass, every other is refused.
    #[test]
    fn only_loopback_and_configured_origins_pass() {
        let mut gate = Gate::default();
        gate.allow_origin("https://app.example".into());
        for fine in ["http://localhost:3000", "https://127.0.0.1", "http://[::1]:80", "https://app.example"] {
            assert!(!refused(&gate, ORIGIN, fine), "{fine}");
        }
        for evil in [
            "http://evil.example",
            "http://localhost.evil.example",
            "http://127.0.0.1.evil.example",
            "http://localhost:80@evil.example",
            "https://app.example.evil.example",
            "https://app.example:444",
            "null",
            "localhost",
            "ftp://localhost",
        ] {
            assert!(refused(&gate, ORIGIN, evil), "{evil}");
        }
        assert!(!refused(&gate, HOST, "tools.example"), "no Origin: not a browser");
    }

    /// H6: on a loopback bind, `Host` is checked too.
    #[test]
    fn a_loopback_bind_answers_to_loopback_names_only() {
        let mut gate = Gate { loopback: true, ..Gate::default() };
        gate.allow_host("dev.example:8000".into());
        for fine in ["localhost:8000", "127.0.0.1:8000", "[::1]", "dev.example:8000"] {
            assert!(!refused(&gate, HOST, fine), "{fine}");
        }
        assert!(refused(&gate, HOST, "evil.example:8000"));
        assert!(!refused(&Gate::default(), HOST, "tools.example"), "not bound to loopback: any name");
    }
}
