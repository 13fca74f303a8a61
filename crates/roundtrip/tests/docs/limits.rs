//! The manual's chapter on limits has the defaults that the code has.

use std::time::Duration;

use roundtrip::http::HttpLimits;
use roundtrip::seal::{CLOCK_SKEW, DEFAULT_TTL, TokenLimits};
use roundtrip::server::Limits;

/// Writes a number as the chapter does: `10,000`.
fn count(number: usize) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Writes a number of bytes as the chapter does: `64 MiB`.
fn bytes(number: usize) -> String {
    match number >> 20 {
        0 => format!("{} KiB", number >> 10),
        large => format!("{large} MiB"),
    }
}

/// Writes a time as the chapter does: `30 s`.
fn seconds(time: Duration) -> String {
    format!("{} s", time.as_secs())
}

/// Writes a longer time: `10 minutes`.
fn minutes(time: Duration) -> String {
    match time.as_secs() / 60 {
        1 => "1 minute".into(),
        minutes => format!("{minutes} minutes"),
    }
}

fn of_servers() -> Vec<(&'static str, String)> {
    let (server, http, token) = (Limits::default(), HttpLimits::default(), TokenLimits::default());
    vec![
        ("calls at once", count(server.concurrent_calls)),
        ("messages of all calls at once, of those over 64 KiB", bytes(server.call_bytes)),
        ("listening streams of modern clients", count(server.subscriptions)),
        (
            "URIs watched by all streams and sessions together, with the capabilities of their clients",
            bytes(server.subscription_bytes),
        ),
        ("size of a result in parts", bytes(server.streamed_bytes)),
        ("time a question waits for a running `once` step", seconds(server.question_behind_step)),
        ("time a round claimed in the ledger goes on without its client", seconds(server.finish_within)),
        ("time for an answer", minutes(DEFAULT_TTL)),
        ("difference between the clocks of instances", minutes(CLOCK_SKEW)),
        ("size of a sealed state", bytes(token.max_token)),
        ("size of a message over HTTP", bytes(http.body_bytes)),
        ("bytes of all messages that are still arriving over HTTP", bytes(http.total_body_bytes)),
        ("time for a message to arrive", seconds(http.body_timeout)),
        ("time for a request's head, idle time included", seconds(http.head_timeout)),
        ("time in which a client reads nothing of its response", seconds(http.write_timeout)),
        ("connections", count(http.connections)),
        ("time for running calls at shutdown", seconds(http.grace)),
    ]
}

#[cfg(not(feature = "client"))]
fn of_clients() -> Vec<(&'static str, String)> {
    Vec::new()
}

#[cfg(feature = "client")]
fn of_clients() -> Vec<(&'static str, String)> {
    let client = roundtrip::client::ClientLimits::default();
    let outside = "questions of older servers outside of any call, at the same time";
    vec![
        ("pages of a list", count(client.list_pages)),
        ("entries of a list", count(client.list_items)),
        ("bytes of a list", bytes(client.list_bytes)),
        ("questions of one round", count(client.questions)),
        (outside, count(client.questions_outside_calls)),
        ("a URL that people are sent to", bytes(client.url_bytes)),
        ("results in the cache", bytes(client.cache_bytes)),
    ]
}

/// Returns whether a row of the chapter gives a limit this default.
fn says(chapter: &str, limit: &str, default: &str) -> bool {
    let rows = chapter.lines().filter_map(|line| line.strip_prefix("| ")?.split_once(" | "));
    let mut cells = rows.filter(|(name, _)| *name == limit).filter_map(|(_, rest)| rest.split(" | ").next());
    cells.any(|cell| cell.match_indices(default).any(|(at, _)| stands_alone(cell, at, default.len())))
}

/// Returns whether a part of a text is not itself part of a longer number or word.
fn stands_alone(text: &str, at: usize, length: usize) -> bool {
    let (before, after) = (&text[..at], &text[at + length..]);
    let more = after.strip_prefix(',').unwrap_or(after);
    !before.ends_with(|c: char| c.is_alphanumeric() || c == ',') && !more.starts_with(char::is_alphanumeric)
}

#[test]
fn limits_have_the_defaults_that_the_manual_says() {
    let chapter = crate::text_of(&crate::root().join("docs/manual/limits.md"));
    for (limit, default) in of_servers().into_iter().chain(of_clients()) {
        assert!(says(&chapter, limit, &default), "limits.md does not give \"{limit}\" the default {default}");
    }
}

/// The check above can fail.
#[test]
fn a_wrong_default_is_found() {
    let chapter = "| calls | 10,000, of 64 MiB | refused | fixed |\n| calls | 32 | refused | fixed |\n";
    for (limit, default, is_said) in [
        ("calls", "10,000", true),
        ("calls", "64 MiB", true),
        ("calls", "32", true),
        ("calls", "10", false),
        ("calls", "000", false),
        ("calls", "4 MiB", false),
        ("calls", "fixed", false),
        ("streams", "32", false),
    ] {
        assert_eq!(says(chapter, limit, default), is_said, "{limit}: {default}");
    }
}
