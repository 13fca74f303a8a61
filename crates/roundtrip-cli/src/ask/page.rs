//! Web pages that a server wants visited: the whole URL with its host marked, warnings, consent.

use anstyle::{AnsiColor, Style};
use inquire::error::InquireError;
use reqwest::Url;

use super::terminal::choose;
use crate::output::err;
use crate::printable::printable;
use crate::rows::{Screen, is_blank};
use crate::server::address::is_loopback;

/// Answer of the user to a page.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Consent {
    /// The page may be opened in the browser.
    Open,
    /// The user opens the page elsewhere.
    Elsewhere,
    /// The user says no.
    Decline,
    /// The user dismisses the question.
    Cancel,
}

/// Shows a page, and asks for consent. The page is never fetched.
pub(super) fn ask(url: &str) -> Result<Consent, InquireError> {
    show(url);
    let options = [
        ("Open it in the browser", Consent::Open),
        ("I open it elsewhere", Consent::Elsewhere),
        ("Decline", Consent::Decline),
        ("Cancel", Consent::Cancel),
    ];
    choose("Visit this page?", &options)
}

/// Shows the page of a sign-in, and asks for consent.
pub(crate) fn ask_to_sign_in(url: &str) -> Result<bool, InquireError> {
    show(url);
    choose("Sign in?", &[("Open it in the browser", true), ("Decline", false)])
}

/// Shows the whole URL, its host by itself, and what is suspicious about it.
pub(crate) fn show(text: &str) {
    let (bold, warning) = (Style::new().bold(), Style::new().bold().fg_color(Some(AnsiColor::Yellow.into())));
    let shown = unbroken(text);
    let (before, host, after) = marked(&shown);
    let shown = format!("{}{bold}{}{bold:#}{}", printable(before), printable(host), printable(after));
    if Screen::Err.rows("  ", &shown).contains('\n') {
        // Rows that the terminal makes of it have no marks: ours say where it begins and ends.
        err!("  all rows from here to its end are the address:\n  {shown}\n  (end of the address)");
    } else {
        err!("  {shown}");
    }
    if let Ok(url) = Url::parse(text) {
        let host = format!("{bold}{}{bold:#}", printable(url.host_str().unwrap_or_default()));
        err!("{}", Screen::Err.rows("  host: ", &host));
        for why in warnings(text, &url) {
            err!("{}", Screen::Err.rows("  ", &format!("{warning}warning:{warning:#} {why}")));
        }
    }
}

/// Returns a URL without blanks, which would put its further words on rows of their own. It is not wrapped: people copy it.
fn unbroken(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            ' ' => shown.push_str("%20"),
            c if is_blank(c) => shown.extend(c.escape_default()),
            c => shown.push(c),
        }
    }
    shown
}

/// Splits a URL into the text before its host, the host as it is written, and the rest.
fn marked(text: &str) -> (&str, &str, &str) {
    let Some((scheme, rest)) = text.split_once("://") else { return (text, "", "") };
    let authority = rest.find(['/', '?', '#', '\\']).unwrap_or(rest.len());
    let start = rest[..authority].rfind('@').map_or(0, |at| at + 1);
    let begin = scheme.len() + 3 + start;
    let host = &text[begin..scheme.len() + 3 + authority];
    (&text[..begin], host, &text[scheme.len() + 3 + authority..])
}

/// Returns what users should know about a URL before they visit it.
fn warnings(text: &str, url: &Url) -> Vec<String> {
    let host = url.host_str().unwrap_or_default();
    let (before, written, _) = marked(text);
    let mut warnings = Vec::new();
    if host.split('.').any(|label| label.starts_with("xn--")) {
        let written =
            if written.is_ascii() { String::new() } else { format!(", written {}", printable(written)) };
        warnings.push(format!("the host is in punycode: {host}{written}. It may imitate another one"));
    }
    if url.scheme() != "https" && !is_loopback(host) {
        warnings.push("the connection is not encrypted (http)".to_owned());
    }
    if before.ends_with('@') {
        warnings.push("the text before `@` is not the host".to_owned());
    }
    warnings
}

/// Opens a page in the user's browser, or says that it cannot be. Returns whether it was opened. Some browsers run in the terminal
/// until they are closed: that is outside of the runtime's threads.
pub(crate) async fn open(url: String) -> bool {
    tokio::task::spawn_blocking(move || opened(&url)).await.unwrap_or(false)
}

fn opened(url: &str) -> bool {
    let options = webbrowser::BrowserOptions::new().with_suppress_output(true).clone();
    let opened = webbrowser::open_browser_with_options(webbrowser::Browser::Default, url, &options).is_ok();
    if !opened {
        err!("  there is no browser to be found: open the page yourself");
    }
    opened
}

#[cfg(test)]
mod tests {
    use super::*;

    fn warned(text: &str) -> Vec<String> {
        warnings(text, &Url::parse(text).unwrap())
    }

    /// E5: the host is marked as it is written, whatever stands before it.
    #[test]
    fn the_host_is_marked() {
        let cases = [
            ("https://a.example/b?c#d", ("https://", "a.example", "/b?c#d")),
            ("https://bank.example@evil.example:8/x", ("https://bank.example@", "evil.example:8", "/x")),
            ("http://a.example", ("http://", "a.example", "")),
            (
                "https://a.example?x=https://b.example/@c",
                ("https://", "a.example", "?x=https://b.example/@c"),
            ),
        ];
        for (url, parts) in cases {
            assert_eq!(marked(url), parts);
        }
    }

    /// E5: punycode, plain HTTP outside of this machine, and user names are warned of.
    #[test]
    fn what_is_suspicious_is_said() {
        let punycode = warned("https://аpple.example/");
        assert!(punycode[0].contains("xn--pple-43d.example, written"), "{punycode:?}");
        assert!(warned("https://xn--pple-43d.example/")[0].contains("punycode"));
        assert!(warned("http://a.example/")[0].contains("not encrypted"));
        assert!(warned("https://bank.example@evil.example/")[0].contains('@'));
        for quiet in ["https://a.example/", "http://localhost:8/", "http://127.0.0.1/x", "http://[::1]/"] {
            assert_eq!(warned(quiet), Vec::<String>::new(), "{quiet}");
        }
    }
}
