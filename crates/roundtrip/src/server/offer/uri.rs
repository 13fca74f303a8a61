//! Check of resource URIs (RFC 3986).

/// Checks that a text is a URI: a scheme, then characters and escapes that URIs have.
pub(super) fn check_uri(uri: &str) -> Result<(), String> {
    let Some((scheme, rest)) = uri.split_once(':') else {
        return Err("a resource's URI needs a scheme, such as `app://`".into());
    };
    let is_scheme = scheme.starts_with(|first: char| first.is_ascii_alphabetic())
        && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte));
    if !is_scheme {
        return Err(format!(
            "`{scheme}` is not the scheme of a URI: it begins with a letter, and has letters, digits, `+`, `-` and `.`"
        ));
    }
    let plain = |c: char| c.is_ascii_alphanumeric() || "-._~:/?#[]@!$&'()*+,;=%".contains(c);
    if let Some(other) = rest.chars().find(|c| !plain(*c)) {
        let escaped: String = other.to_string().bytes().map(|byte| format!("%{byte:02X}")).collect();
        return Err(format!("a URI has no {other:?}: write it as `{escaped}`"));
    }
    let is_escape = |escape: &str| escape.bytes().take(2).filter(u8::is_ascii_hexdigit).count() == 2;
    if !rest.split('%').skip(1).all(is_escape) {
        return Err(
            "a `%` in a URI is followed by two hexadecimal digits: write `%25` for the sign itself".into()
        );
    }
    if rest.matches('#').count() > 1 {
        return Err("a URI has one `#` at most: write others as `%23`".into());
    }
    Ok(())
}
