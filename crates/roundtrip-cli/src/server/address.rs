//! Addresses of servers: those that are this machine, and user info, which none of them may have.

use std::net::IpAddr;

use reqwest::Url;

/// Returns whether a host of a URL is this machine. A name is not one of its addresses, whatever it looks like.
pub(crate) fn is_loopback(host: &str) -> bool {
    let literal = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(host);
    host == "localhost" || literal.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

/// Refuses a URL with a user name or a password: it would be shown, kept in files and sent on.
pub(crate) fn check(url: &str) -> Result<(), String> {
    let shown = without_user_info(url);
    if shown == url {
        return Ok(());
    }
    Err(format!(
        "a URL may have no user name and no password: give `{shown}`, and credentials by `--header 'authorization: ..'`"
    ))
}

/// Returns a URL for people, without its user info. It may be a text that only resembles a URL.
pub(crate) fn without_user_info(text: &str) -> String {
    if let Ok(mut url) = Url::parse(text)
        && (!url.username().is_empty() || url.password().is_some())
        && url.set_username("").is_ok()
        && url.set_password(None).is_ok()
    {
        return url.into();
    }
    let Some((scheme, rest)) = text.split_once("://") else { return text.to_owned() };
    let end = rest.find(['/', '?', '#', '\\']).unwrap_or(rest.len());
    match rest[..end].rfind('@') {
        Some(at) => format!("{scheme}://{}", &rest[at + 1..]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_looks_like_an_address_is_a_name() {
        for this in ["localhost", "127.0.0.1", "127.1.2.3", "[::1]"] {
            assert!(is_loopback(this), "{this}");
        }
        for other in ["127.evil.example", "127.0.0.1.evil.example", "10.0.0.1", "[::2]", "localhost.evil", ""]
        {
            assert!(!is_loopback(other), "{other}");
        }
    }

    #[test]
    fn user_info_is_found_wherever_it_is_read_from() {
        for (url, shown) in [
            ("https://ada:pw@a.example/mcp?q", "https://a.example/mcp?q"),
            ("https://ada@a.example/", "https://a.example/"),
            ("https://:pw@a.example/", "https://a.example/"),
            ("https:////ada:pw@a.example/", "https://a.example/"),
            ("https:\\\\ada:pw@a.example/", "https://a.example/"),
            ("https://ada:p@w@[/mcp", "https://[/mcp"),
            ("htp://ada:pw@a.example", "htp://a.example"),
        ] {
            assert_eq!(without_user_info(url), shown);
            let why = check(url).unwrap_err();
            assert!(why.contains(shown) && !why.contains("pw") && !why.contains("ada"), "{why}");
        }
        for fine in ["https://a.example/@b?c@d", "http://[::1]:80/", "shop", "a@b"] {
            assert_eq!((without_user_info(fine), check(fine)), (fine.to_owned(), Ok(())));
        }
    }
}
