//! The principal of a verified token.

/// Derives the principal from the issuer and the subject, or from the issuer and the client where there is no subject.
///
/// The length of the issuer and a tag are part of it, so that no two tokens of different callers have the same. Scopes, times and
/// the id of the token are not: refresh and step-up keep the principal.
///
/// ```
/// use roundtrip_core::auth::principal_of;
///
/// let alice = principal_of("https://login.example", Some("alice"), Some("agent"));
/// assert_eq!(alice, principal_of("https://login.example", Some("alice"), None));
/// assert_ne!(alice, principal_of("https://other.example", Some("alice"), None));
/// assert_eq!(principal_of("https://login.example", None, None), None);
/// ```
pub fn principal_of(issuer: &str, subject: Option<&str>, client_id: Option<&str>) -> Option<String> {
    let (tag, name) = match (subject, client_id) {
        (Some(subject), _) => ("sub", subject),
        (None, Some(client_id)) => ("client", client_id),
        (None, None) => return None,
    };
    Some(format!("{tag}:{}:{issuer}{name}", issuer.len()))
}
