//! The four formats of a form's text fields. All functions are `const`, so that the default of a derived form is
//! checked while it compiles.

/// Returns whether a text has a format. Formats other than the four are not checked.
pub(super) const fn fits(format: &[u8], text: &str) -> bool {
    let text = text.as_bytes();
    match format {
        b"email" => is_email(text),
        b"uri" => is_uri(text),
        b"date" => is_date(text),
        b"date-time" => is_date_time(text),
        _ => true,
    }
}

/// Names a text of that format for people.
pub(super) fn describe(format: &str) -> &'static str {
    match format {
        "email" => "an e-mail address such as ada@example.com",
        "uri" => "a URI such as https://example.com/page",
        "date" => "a date such as 2026-07-28",
        "date-time" => "a date and time such as 2026-07-28T17:30:00Z",
        _ => "of the right format",
    }
}

/// Checks an address by RFC 5321, without quoted names, address literals and comments, which are not in practical
/// use.
const fn is_email(text: &[u8]) -> bool {
    let Some(at) = last(text, b'@') else { return false };
    let (name, domain) = text.split_at(at);
    let (_, domain) = domain.split_at(1);
    text.len() <= 254 && name.len() <= 64 && is_dotted_name(name) && is_domain(domain)
}

const fn is_dotted_name(mut name: &[u8]) -> bool {
    let mut after_dot = true;
    while let [letter, rest @ ..] = name {
        match letter {
            b'.' if after_dot => return false,
            b'.' => after_dot = true,
            b'!' | b'#'..=b'\'' | b'*' | b'+' | b'-' | b'/' | b'=' | b'?' | b'^'..=b'`' | b'{'..=b'~' => {
                after_dot = false;
            }
            letter if letter.is_ascii_alphanumeric() => after_dot = false,
            _ => return false,
        }
        name = rest;
    }
    !after_dot
}

/// Checks labels of letters, digits and inner hyphens, separated by dots.
const fn is_domain(mut domain: &[u8]) -> bool {
    let (mut length, mut previous) = (0, b'.');
    while let [letter, rest @ ..] = domain {
        match letter {
            b'.' | b'-' if previous == b'.' => return false,
            b'.' if previous == b'-' || length > 63 => return false,
            b'.' => length = 0,
            b'-' => length += 1,
            letter if letter.is_ascii_alphanumeric() => length += 1,
            _ => return false,
        }
        previous = *letter;
        domain = rest;
    }
    previous.is_ascii_alphanumeric() && length <= 63
}

/// Checks a URI by RFC 3986: with a scheme, in ASCII.
const fn is_uri(text: &[u8]) -> bool {
    let Some(colon) = first(text, b":") else { return false };
    let (scheme, rest) = text.split_at(colon);
    let (_, rest) = rest.split_at(1);
    let web = scheme.eq_ignore_ascii_case(b"http") || scheme.eq_ignore_ascii_case(b"https");
    let [b'/', b'/', after @ ..] = rest else {
        return is_scheme(scheme) && !web && !rest.is_empty() && is_path(rest);
    };
    let end = match first(after, b"/?#") {
        Some(end) => end,
        None => after.len(),
    };
    let (authority, path) = after.split_at(end);
    // `file:///etc/hosts` names no host.
    let hostless = authority.is_empty() && !path.is_empty() && !web;
    is_scheme(scheme) && (hostless || is_authority(authority)) && is_path(path)
}

const fn is_scheme(scheme: &[u8]) -> bool {
    let [letter, rest @ ..] = scheme else { return false };
    letter.is_ascii_alphabetic() && all(rest, b"+-.")
}

const fn is_authority(authority: &[u8]) -> bool {
    let host = match last(authority, b'@') {
        None => authority,
        Some(at) => {
            let (user, host) = authority.split_at(at);
            if !is_escaped(user, b"-._~!$&'()*+,;=:") {
                return false;
            }
            host.split_at(1).1
        }
    };
    let (is_host, port) = match host {
        [b'[', literal @ ..] => {
            let Some(end) = last(literal, b']') else { return false };
            let (literal, port) = literal.split_at(end);
            (is_ip6(literal), port.split_at(1).1)
        }
        _ => {
            let (name, port) = match first(host, b":") {
                Some(colon) => host.split_at(colon),
                None => (host, b"".as_slice()),
            };
            (!name.is_empty() && is_escaped(name, b"-._~!$&'()*+,;="), port)
        }
    };
    is_host
        && match port {
            [] => true,
            [b':', digits @ ..] => all_digits(digits),
            _ => false,
        }
}

/// Checks an IPv6 address roughly: digits, colons, and dots for a version 4 address at the end.
const fn is_ip6(mut text: &[u8]) -> bool {
    let mut colons = 0;
    while let [letter, rest @ ..] = text {
        match letter {
            b':' => colons += 1,
            b'.' => {}
            letter if letter.is_ascii_hexdigit() => {}
            _ => return false,
        }
        text = rest;
    }
    2 <= colons && colons <= 7
}

/// Checks a path, a query and a fragment.
const fn is_path(text: &[u8]) -> bool {
    let end = match first(text, b"#") {
        Some(end) => end,
        None => text.len(),
    };
    let (path, fragment) = text.split_at(end);
    let fragment = match fragment {
        [_, fragment @ ..] => fragment,
        [] => fragment,
    };
    is_escaped(path, b"-._~!$&'()*+,;=:@/?") && is_escaped(fragment, b"-._~!$&'()*+,;=:@/?")
}

/// Checks a `full-date` of RFC 3339.
const fn is_date(text: &[u8]) -> bool {
    let [y1, y2, y3, y4, b'-', m1, m2, b'-', d1, d2] = text else { return false };
    let (Some(century), Some(year)) = (two(*y1, *y2), two(*y3, *y4)) else { return false };
    let (Some(month), Some(day)) = (two(*m1, *m2), two(*d1, *d2)) else { return false };
    let leap = if year == 0 { century.is_multiple_of(4) } else { year.is_multiple_of(4) };
    let days = match month {
        1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
        4 | 6 | 9 | 11 => 30,
        2 if leap => 29,
        2 => 28,
        _ => return false,
    };
    1 <= day && day <= days
}

/// Checks a `date-time` of RFC 3339.
const fn is_date_time(text: &[u8]) -> bool {
    let Some((date, time)) = text.split_at_checked(10) else { return false };
    let [b'T' | b't', h1, h2, b':', m1, m2, b':', s1, s2, rest @ ..] = time else { return false };
    let (Some(hour), Some(minute), Some(second)) = (two(*h1, *h2), two(*m1, *m2), two(*s1, *s2)) else {
        return false;
    };
    let Some(offset) = offset_in_minutes(after_fraction(rest)) else { return false };
    // A leap second comes at the end of a day in UTC, wherever the clock that shows it stands.
    let utc = (hour as i32 * 60 + minute as i32 - offset).rem_euclid(24 * 60);
    let leap = second == 60 && utc == 24 * 60 - 1;
    is_date(date) && hour < 24 && minute < 60 && (second < 60 || leap)
}

/// Returns the rest after a fraction such as `.123`; a dot without digits leaves a rest that is no offset.
const fn after_fraction(text: &[u8]) -> &[u8] {
    let [b'.', digit, rest @ ..] = text else { return text };
    if !digit.is_ascii_digit() {
        return b"";
    }
    let mut rest = rest;
    while let [b'0'..=b'9', after @ ..] = rest {
        rest = after;
    }
    rest
}

const fn offset_in_minutes(text: &[u8]) -> Option<i32> {
    let (sign, h1, h2, m1, m2) = match text {
        [b'Z' | b'z'] => return Some(0),
        [b'+', h1, h2, b':', m1, m2] => (1, *h1, *h2, *m1, *m2),
        [b'-', h1, h2, b':', m1, m2] => (-1, *h1, *h2, *m1, *m2),
        _ => return None,
    };
    match (two(h1, h2), two(m1, m2)) {
        (Some(hour @ 0..24), Some(minute @ 0..60)) => Some(sign * (hour as i32 * 60 + minute as i32)),
        _ => None,
    }
}

/// Reads a number of two digits.
const fn two(tens: u8, ones: u8) -> Option<u8> {
    if tens.is_ascii_digit() && ones.is_ascii_digit() {
        Some((tens - b'0') * 10 + (ones - b'0'))
    } else {
        None
    }
}

const fn all_digits(mut text: &[u8]) -> bool {
    while let [b'0'..=b'9', rest @ ..] = text {
        text = rest;
    }
    text.is_empty()
}

/// Returns whether a text consists of letters, digits and the given marks.
const fn all(mut text: &[u8], marks: &[u8]) -> bool {
    while let [letter, rest @ ..] = text {
        if !letter.is_ascii_alphanumeric() && !contains(marks, *letter) {
            return false;
        }
        text = rest;
    }
    true
}

/// Returns whether a text consists of letters, digits, the given marks and percent escapes such as `%41`.
const fn is_escaped(mut text: &[u8], marks: &[u8]) -> bool {
    while let [letter, rest @ ..] = text {
        text = match rest {
            [high, low, rest @ ..]
                if *letter == b'%' && high.is_ascii_hexdigit() && low.is_ascii_hexdigit() =>
            {
                rest
            }
            _ if letter.is_ascii_alphanumeric() || contains(marks, *letter) => rest,
            _ => return false,
        };
    }
    true
}

const fn contains(marks: &[u8], letter: u8) -> bool {
    first(marks, &[letter]).is_some()
}

/// Finds the first of some letters.
const fn first(text: &[u8], letters: &[u8]) -> Option<usize> {
    let mut at = 0;
    while at < text.len() {
        let mut letter = 0;
        while letter < letters.len() {
            if text[at] == letters[letter] {
                return Some(at);
            }
            letter += 1;
        }
        at += 1;
    }
    None
}

/// Finds the last occurrence of a letter.
const fn last(text: &[u8], letter: u8) -> Option<usize> {
    let mut at = text.len();
    while at > 0 {
        at -= 1;
        if text[at] == letter {
            return Some(at);
        }
    }
    None
}
