//! Metadata documents, and where they are.

use roundtrip_core::auth::*;
use serde_json::{Value, json};

use super::support::*;

fn server(document: &Value) -> Result<ServerMetadata, MetadataError> {
    ServerMetadata::parse(document.to_string().as_bytes(), ISSUER)
}

/// O11: the suffix goes between host and path; a slash that follows the host goes, and no other.
#[test]
fn resource_metadata_is_beside_the_path() {
    let url = |resource: &str| resource_metadata_url(&HttpUrl::parse(resource).unwrap());
    for (resource, path) in [
        ("https://h", ""),
        ("https://h/", ""),
        ("https://h/mcp", "/mcp"),
        ("https://h/mcp/", "/mcp/"),
        ("https://h/a/b?c=d", "/a/b?c=d"),
        ("https://h?c", "?c"),
    ] {
        assert_eq!(
            url(resource),
            format!("https://h/.well-known/oauth-protected-resource{path}"),
            "{resource}"
        );
    }
}

/// O41: beside the path, then at the root; a server without a path has one place.
#[test]
fn resource_metadata_is_looked_for_at_the_root_last() {
    let urls = |server: &str| resource_candidates(&HttpUrl::parse(server).unwrap());
    assert_eq!(urls(SERVER), [METADATA, "https://tools.example/.well-known/oauth-protected-resource"]);
    assert_eq!(urls("https://h/"), ["https://h/.well-known/oauth-protected-resource"]);
}

/// O43: three places for an issuer with a path, two for one without, never the root of the former.
#[test]
fn issuer_metadata_is_looked_for_in_order() {
    let urls = |issuer: &str| issuer_candidates(&HttpUrl::parse(issuer).unwrap());
    let with_path = [
        "https://h/.well-known/oauth-authorization-server/t/1",
        "https://h/.well-known/openid-configuration/t/1",
        "https://h/t/1/.well-known/openid-configuration",
    ];
    assert_eq!(urls("https://h/t/1"), with_path);
    assert_eq!(urls("https://h/t/1/"), with_path);
    let root =
        ["https://h/.well-known/oauth-authorization-server", "https://h/.well-known/openid-configuration"];
    assert_eq!(urls("https://h"), root);
    assert_eq!(urls("https://h/"), root);
}

/// O42: the same URL or a parent by whole segments, at the same origin, queries aside.
#[test]
fn a_resource_covers_its_server() {
    let covers = |resource: &str, server: &str| covers_server(resource, &HttpUrl::parse(server).unwrap());
    for resource in [
        SERVER,
        "https://tools.example",
        "https://tools.example/",
        "https://TOOLS.example:443/mcp/",
        "https://tools.example/mcp?x",
    ] {
        assert!(covers(resource, SERVER), "{resource}");
    }
    assert!(covers(SERVER, "https://tools.example/mcp/?session=1"));
    for resource in [
        "https://tools.example/mc",
        "https://tools.example/mcp/v1",
        "https://tools.example/MCP",
        "http://tools.example/mcp",
        "https://tools.example:8443/mcp",
        "https://tools.example.evil.example/mcp",
        "https://evil.example/mcp",
        "https://tools.example@evil.example/mcp",
        "https://tools.example/mcp#x",
        "https://tools.example/x/../mcp",
        "",
    ] {
        assert!(!covers(resource, SERVER), "{resource}");
    }
}

/// O44: the issuer is compared byte for byte: no slash, case, port or escape is forgiven.
#[test]
fn an_issuer_is_an_exact_string() {
    assert!(server(&issuer()).is_ok());
    for other in [
        "https://login.example/tenant1/",
        "https://LOGIN.example/tenant1",
        "https://login.example:443/tenant1",
        "https://login.example/tenant%31",
        "https://login.example",
        "",
    ] {
        let refused = server(&with(issuer(), "issuer", json!(other)));
        assert!(matches!(refused, Err(MetadataError::Issuer { .. })), "{other}");
    }
    let huge = server(&with(issuer(), "issuer", json!("x".repeat(60_000)))).unwrap_err();
    assert!(huge.to_string().len() < 1_000);
}

/// O52: what is huge, deep, no object, or has a member twice or of another type is not used.
#[test]
fn hostile_documents_are_refused() {
    let refused = |text: &str| match ServerMetadata::parse(text.as_bytes(), ISSUER).unwrap_err() {
        MetadataError::Document(error) => error,
        other => panic!("{other}"),
    };
    assert_eq!(refused(&" ".repeat(65_537)), DocumentError::TooLarge);
    for text in ["", "<!DOCTYPE html>", "[]", "null", "\"x\"", "{", "{}x", "\u{feff}{}"] {
        assert_eq!(refused(text), DocumentError::NotJson, "{text:.20}");
    }
    // Members that are not looked at are passed over without recursion, however deep they are.
    let deep = format!(r#"{{"issuer":"{ISSUER}","x":{}1{}}}"#, "[".repeat(30_000), "]".repeat(30_000));
    assert!(ServerMetadata::parse(deep.as_bytes(), ISSUER).is_ok());
    let wrong = [
        format!(r#"{{"issuer":"{ISSUER}","issuer":"https://evil.example"}}"#),
        format!(r#"{{"issuer":"{ISSUER}","authorization_response_iss_parameter_supported":"true"}}"#),
        format!(r#"{{"issuer":"{ISSUER}","token_endpoint":["https://a/"]}}"#),
        format!(r#"{{"issuer":"{ISSUER}","code_challenge_methods_supported":"S256"}}"#),
        r#"{"issuer":5}"#.to_owned(),
    ];
    for text in wrong {
        assert!(matches!(refused(&text), DocumentError::Malformed(_)), "{text}");
    }
    let resource = |text: &str| ProtectedResource::parse(text.as_bytes()).unwrap_err();
    assert!(matches!(resource("{}"), DocumentError::Malformed(_)), "no resource");
    assert!(matches!(resource(r#"{"resource":"a","resource":"b"}"#), DocumentError::Malformed(_)));
}

/// O61: S256 must be listed, in OAuth and in OpenID metadata alike.
#[test]
fn pkce_must_be_listed() {
    for methods in [json!([]), json!(["plain"]), json!(["s256"]), Value::Null] {
        let document = server(&with(issuer(), "code_challenge_methods_supported", methods)).unwrap();
        assert_eq!(document.check_pkce(), Err(MetadataError::NoPkce));
    }
    assert!(server(&issuer()).unwrap().check_pkce().is_ok());
}

/// O10, O12, O14, O15: a published document has the identifier as configured, issuers, and no `offline_access`.
#[test]
fn a_published_document_is_exact() {
    let publish = |resource: &str, issuers: &[&str], scopes: &str| {
        let issuers: Vec<_> = issuers.iter().map(|issuer| (*issuer).to_owned()).collect();
        ProtectedResource::publish(&ResourceIdentifier::parse(resource)?, &issuers, &scopes.parse().unwrap())
    };
    let document = publish("https://tools.example", &[ISSUER], "b a").unwrap();
    assert_eq!(
        serde_json::to_value(&document).unwrap(),
        json!({
            "resource": "https://tools.example",
            "authorization_servers": [ISSUER],
            "scopes_supported": ["a", "b"],
            "bearer_methods_supported": ["header"],
        })
    );
    let text = serde_json::to_vec(&document).unwrap();
    assert_eq!(ProtectedResource::parse(&text).unwrap(), document);
    assert!(
        publish("http://localhost:3000/mcp", &["http://localhost:4000"], "")
            .unwrap()
            .scopes_supported
            .is_none()
    );
    for resource in ["http://tools.example/mcp", "https://tools.example/#x", "tools.example", "https://a@b/"]
    {
        assert!(
            matches!(publish(resource, &[ISSUER], ""), Err(ResourceSetupError::Identifier { .. })),
            "{resource}"
        );
    }
    for issuer in ["http://login.example", "https://login.example?x", "login.example", ""] {
        assert!(matches!(publish(SERVER, &[issuer], ""), Err(ResourceSetupError::Issuer { .. })), "{issuer}");
    }
    assert_eq!(publish(SERVER, &[], ""), Err(ResourceSetupError::NoIssuer));
    assert_eq!(publish(SERVER, &[ISSUER], "a offline_access"), Err(ResourceSetupError::OfflineAccess));
}

/// O23, O49: endpoints of the metadata are held to the rules for URLs.
#[test]
fn endpoints_are_checked() {
    let policy = UrlPolicy::new(HttpUrl::parse(SERVER).unwrap(), false).unwrap();
    let at = |url: Value| server(&with(issuer(), "jwks_uri", url)).unwrap().endpoint("jwks_uri", &policy);
    assert_eq!(at(json!("https://login.example/keys")).unwrap().as_str(), "https://login.example/keys");
    assert_eq!(at(Value::Null), Err(MetadataError::Missing("jwks_uri")));
    for (url, why) in [
        ("http://login.example/keys", UrlError::Insecure),
        ("https://169.254.169.254/latest", UrlError::Private),
        ("javascript:alert(1)", UrlError::Scheme),
        ("https://a@login.example/keys", UrlError::UserInfo),
    ] {
        assert_eq!(at(json!(url)), Err(MetadataError::Endpoint { member: "jwks_uri", why }), "{url}");
    }
}
