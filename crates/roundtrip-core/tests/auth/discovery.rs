//! Discovery, from a refused request to the metadata of an issuer.

use std::sync::Arc;

use http::HeaderMap;
use roundtrip_core::auth::*;
use serde_json::{Value, json};

use super::support::*;

const ROOT: &str = "https://tools.example/.well-known/oauth-protected-resource";

fn challenged(field: &str) -> Need {
    Need::new(SERVER).demand(Demand::of(&headers(&[("www-authenticate", field)]), false))
}

fn local(settings: Settings) -> Arc<Settings> {
    Arc::new(settings)
}

/// O41: the URL of the challenge comes first, absolute or relative, at another origin too.
#[test]
fn the_challenge_says_where_the_metadata_is() {
    for (named, url) in [
        ("https://meta.example/x.json", "https://meta.example/x.json"),
        ("/custom/location.json", "https://tools.example/custom/location.json"),
    ] {
        let play =
            Play::begin(&browser(), challenged(&format!("Bearer resource_metadata=\"{named}\""))).unwrap();
        assert_eq!(play.url(), url);
        assert_eq!(play.request().method, "GET");
    }
}

/// O41, O49, O50: a URL of the challenge that is not allowed is not asked; the well-known ones are.
#[test]
fn a_hostile_url_of_the_challenge_is_not_asked() {
    for named in [
        "http://tools.example/x",
        "https://169.254.169.254/",
        "javascript:alert(1)",
        "https://a@tools.example/",
        "file:///etc/passwd",
    ] {
        let play =
            Play::begin(&browser(), challenged(&format!("Bearer resource_metadata=\"{named}\""))).unwrap();
        assert_eq!(play.url(), METADATA, "{named}");
    }
}

/// O41: a 404, a page for people and a redirect elsewhere move on; nothing found is an error that says so.
#[test]
fn what_is_no_metadata_moves_on() {
    let elsewhere = headers(&[("location", "https://evil.example/x")]);
    for (status, headers, body) in
        [(404, &HeaderMap::new(), "{}"), (200, &HeaderMap::new(), "<html>"), (302, &elsewhere, "")]
    {
        let mut play = Play::begin(&browser(), Need::new(SERVER)).unwrap();
        play.raw(status, headers, body.as_bytes()).unwrap();
        assert_eq!((play.asked[0].as_str(), play.url().as_str()), (METADATA, ROOT));
        let error = play.raw(status, headers, body.as_bytes()).unwrap_err();
        assert_eq!(error, AuthError::NoResourceMetadata(SERVER.to_owned()));
        assert_eq!(error.blame(), AuthBlame::Peer);
    }
}

/// O51: redirects are followed within the origin, three times.
#[test]
fn redirects_are_bounded() {
    let mut play = Play::begin(&browser(), Need::new(SERVER)).unwrap();
    for n in 0..3 {
        play.raw(307, &headers(&[("location", &format!("/moved/{n}"))]), b"").unwrap();
        assert_eq!(play.url(), format!("https://tools.example/moved/{n}"));
    }
    play.raw(307, &headers(&[("location", "/moved/4")]), b"").unwrap();
    assert_eq!(play.url(), ROOT, "the fourth is not followed");
    for location in [
        "http://tools.example/x",
        "https://tools.example:444/x",
        "//evil.example/",
        "https://a@tools.example/",
    ] {
        let mut play = Play::begin(&browser(), Need::new(SERVER)).unwrap();
        play.raw(302, &headers(&[("location", location)]), b"").unwrap();
        assert_eq!(play.url(), ROOT, "{location}");
    }
}

/// O25, O41: a server that is down is not one without metadata.
#[test]
fn an_outage_is_said() {
    let legacy = local(Settings::browser("x", CALLBACK).unwrap().legacy_endpoints());
    for status in [500, 503, 429] {
        let mut play = Play::begin(&legacy, Need::new(SERVER)).unwrap();
        play.raw(status, &HeaderMap::new(), b"").unwrap();
        let error = play.answer(404, &json!({})).unwrap_err();
        assert!(matches!(error, AuthError::Unavailable { .. }), "{error}");
        assert_eq!(error.blame(), AuthBlame::Unreachable);
    }
}

/// O42: metadata of another resource ends the sign-in before anything else is asked.
#[test]
fn metadata_of_another_resource_is_refused() {
    for other in
        ["https://evil.example/mcp", "https://tools.example/other", "https://tools.example/mcp/deeper"]
    {
        let mut play = Play::begin(&browser(), Need::new(SERVER)).unwrap();
        let error = play.ok(&with(resource(), "resource", json!(other))).unwrap_err();
        assert!(matches!(error, AuthError::ResourceMismatch { .. }), "{error}");
    }
}

/// O42: a parent of the server speaks for it at its own well-known URL; a document elsewhere speaks for this server and no more.
#[test]
fn a_tenant_does_not_speak_for_its_host() {
    let tenant = "https://tools.example/tenants/evil/mcp";
    let below = "https://tools.example/.well-known/oauth-protected-resource/tenants/evil/mcp";
    let found = |named: Option<&str>, from: &str, resource: &str| {
        let field = named.map(|url| format!("Bearer resource_metadata=\"{url}\""));
        let demand = field.and_then(|field| Demand::of(&headers(&[("www-authenticate", &field)]), false));
        let mut play = Play::begin(&browser(), Need::new(tenant).demand(demand)).unwrap();
        while play.url() != from {
            play.answer(404, &json!({})).unwrap();
        }
        play.ok(&json!({ "resource": resource, "authorization_servers": [ISSUER] }))
    };
    let own = "https://tools.example/tenants/evil/metadata.json";
    for (named, from, resource) in [
        (Some(own), own, "https://tools.example"),
        (Some(own), own, "https://tools.example/tenants"),
        (None, below, "https://tools.example"),
        (None, below, "https://tools.example/tenants/evil"),
        (None, ROOT, "https://tools.example/tenants"),
    ] {
        let error = found(named, from, resource).expect_err("a token for its neighbours");
        assert!(matches!(error, AuthError::ResourceMismatch { .. }), "{from} {resource}: {error}");
    }
    for (named, from, resource) in [
        (Some(own), own, tenant),
        (Some(own), own, "HTTPS://tools.example:443/tenants/evil/mcp/"),
        (None, below, tenant),
        (None, ROOT, "https://tools.example"),
        (None, ROOT, "https://tools.example/"),
        (None, ROOT, tenant),
    ] {
        assert_eq!(found(named, from, resource), Ok(()), "{from} {resource}");
    }
}

/// O42, O62: the query of the server's URL, which may be a key, is in no error and in no resource that no document named.
#[test]
fn the_query_of_a_server_is_kept_to_it() {
    let server = "https://tools.example/mcp?key=hush";
    let quiet = |error: AuthError| assert!(!format!("{error} {error:?}").contains("hush"), "{error:?}");
    let begin = |settings: &Arc<Settings>| Play::begin(settings, Need::new(server)).unwrap();
    let mut play = begin(&browser());
    play.answer(404, &json!({})).unwrap();
    quiet(play.answer(404, &json!({})).unwrap_err());
    quiet(begin(&browser()).ok(&with(resource(), "resource", json!("https://evil.example"))).unwrap_err());
    for (status, body) in [(503, json!({})), (200, json!({ "resource": 5 }))] {
        let mut play = begin(&browser());
        play.answer(status, &body).unwrap();
        quiet(play.answer(404, &json!({})).unwrap_err());
    }
    for server in [
        "http://tools.example/mcp?key=hush",
        "https://user:hush@tools.example/mcp",
        "tools.example?hush",
        "//a:hush@b",
    ] {
        quiet(Play::begin(&browser(), Need::new(server)).err().unwrap());
    }

    let mut play = begin(&local(Settings::browser("x", CALLBACK).unwrap().issuer(ISSUER)));
    play.ok(&issuer()).unwrap();
    play.answer(201, &json!({ "client_id": "c" })).unwrap();
    assert_eq!(play.pending().terms().resource, SERVER);
    assert_eq!(play.pending().terms().server.as_str(), server, "it is still the one that is called");
    assert!(!play.pending().url().as_str().contains("hush"));
    assert!(!format!("{:?}", play.pending()).contains("hush"));
}

/// O10, O42: metadata without an authorization server, or of another shape, is said to be so.
#[test]
fn unusable_metadata_is_said_to_be_so() {
    let mut play = Play::begin(&browser(), Need::new(SERVER)).unwrap();
    assert_eq!(play.ok(&json!({ "resource": SERVER })), Err(AuthError::NoAuthorizationServer));
    let mut play = Play::begin(&browser(), Need::new(SERVER)).unwrap();
    play.ok(&json!({ "resource": 5 })).unwrap();
    let error = play.answer(404, &json!({})).unwrap_err();
    assert!(matches!(&error, AuthError::ResourceMetadata { url, .. } if url == METADATA), "{error}");
}

/// O43: the three places of an issuer with a path, in order, and never its root.
#[test]
fn an_issuer_is_asked_in_order() {
    let mut play = Play::to_issuer(&browser(), Need::new(SERVER)).unwrap();
    play.asked.clear();
    for _ in 0..2 {
        play.raw(404, &HeaderMap::new(), b"<html>").unwrap();
    }
    let last = play.raw(404, &HeaderMap::new(), b"").unwrap_err();
    assert_eq!(last, AuthError::NoServerMetadata(ISSUER.to_owned()));
    assert_eq!(
        play.asked,
        [
            ISSUER_METADATA,
            "https://login.example/.well-known/openid-configuration/tenant1",
            "https://login.example/tenant1/.well-known/openid-configuration"
        ]
    );
}

/// O44: a document of another issuer is not used, and the error names both.
#[test]
fn a_document_of_another_issuer_is_not_used() {
    let mut play = Play::to_issuer(&browser(), Need::new(SERVER)).unwrap();
    let other = with(issuer(), "issuer", json!("https://login.example/tenant1/"));
    play.ok(&other).unwrap();
    play.ok(&other).unwrap();
    let error = play.answer(404, &json!({})).unwrap_err();
    assert!(matches!(&error, AuthError::ServerMetadata { why: MetadataError::Issuer { .. }, .. }), "{error}");
    assert!(error.to_string().contains("`https://login.example/tenant1/`"));

    let mut play = Play::to_issuer(&browser(), Need::new(SERVER)).unwrap();
    play.ok(&other).unwrap();
    play.ok(&issuer()).unwrap();
    assert_eq!(play.url(), "https://login.example/register", "the right one was at the next place");
}

/// O45: of several issuers, the one that the client is registered with, else the first.
#[test]
fn the_issuer_that_knows_the_client_is_chosen() {
    let several = with(resource(), "authorization_servers", json!(["https://first.example", ISSUER]));
    let mut play = Play::begin(&browser(), Need::new(SERVER)).unwrap();
    play.ok(&several).unwrap();
    assert_eq!(play.url(), "https://first.example/.well-known/oauth-authorization-server");

    let known = Play::to_browser(&browser(), Need::new(SERVER), &issuer()).unwrap();
    let held = vec![known.pending().registration().clone()];
    let mut play = Play::begin(&browser(), Need::new(SERVER).registrations(held)).unwrap();
    play.ok(&several).unwrap();
    assert_eq!(play.url(), ISSUER_METADATA);
    play.ok(&issuer()).unwrap();
    assert_eq!(play.pending().terms().issuer, ISSUER, "the choice is visible");
}

/// O46: a named issuer is asked without resource metadata.
#[test]
fn an_author_may_name_the_issuer() {
    let named = local(Settings::browser("x", CALLBACK).unwrap().issuer(ISSUER));
    let mut play = Play::begin(&named, Need::new("https://tools.example/mcp#x")).unwrap();
    assert_eq!(play.url(), ISSUER_METADATA);
    play.ok(&issuer()).unwrap();
    play.answer(201, &json!({ "client_id": "c" })).unwrap();
    assert_eq!(play.pending().terms().resource, SERVER);
}

const TENANTS: &str = "https://login.example/{tenant}";

/// Settings that trust one issuer with another name.
fn trusting() -> Arc<Settings> {
    local(Settings::browser("x", CALLBACK).unwrap().trust_issuer(ISSUER, TENANTS))
}

/// O46: an author may accept another name in the metadata of one issuer, and registrations go by that name.
#[test]
fn one_issuer_may_have_another_name() {
    let other = with(issuer(), "issuer", json!(TENANTS));
    let mut play = Play::to_issuer(&trusting(), Need::new(SERVER)).unwrap();
    play.ok(&other).unwrap();
    assert_eq!(play.url(), "https://login.example/register");
    play.answer(201, &json!({ "client_id": "c", "client_secret": "s" })).unwrap();
    assert_eq!(play.pending().terms().issuer, TENANTS);
    let held = vec![play.pending().registration().clone()];
    let mut play = Play::to_issuer(&trusting(), Need::new(SERVER).registrations(held)).unwrap();
    play.ok(&other).unwrap();
    assert_eq!(play.pending().registration().client_id, "c");
}

/// O44, O46: the name that one issuer is trusted with is nobody else's: neither a server's own issuer nor another one at the
/// same origin gets a code, or a registration, by publishing it.
#[test]
fn nobody_else_may_claim_a_trusted_name() {
    let known = Play::to_browser(&trusting(), Need::new(SERVER), &with(issuer(), "issuer", json!(TENANTS)));
    let held = vec![known.unwrap().pending().registration().clone()];
    for hostile in ["https://evil.example", "https://login.example/tenant2", "https://login.example"] {
        let claims = with(issuer(), "issuer", json!(TENANTS));
        let claims = with(claims, "token_endpoint", json!("https://evil.example/token"));
        let mut play = Play::begin(&trusting(), Need::new(SERVER).registrations(held.clone())).unwrap();
        play.ok(&with(resource(), "authorization_servers", json!([hostile]))).unwrap();
        let mut ended = Ok(());
        while ended.is_ok() && matches!(play.step, Some(Step::Send(_))) {
            ended = play.ok(&claims);
        }
        let error = ended.expect_err("the name of another issuer");
        assert!(
            matches!(&error, AuthError::ServerMetadata { why: MetadataError::Issuer { .. }, .. }),
            "{error}"
        );
        assert!(play.asked.iter().all(|url| url.contains("/.well-known/")), "{:?}", play.asked);
    }
}

/// O47: every sign-in reads the resource metadata again, whatever is stored.
#[test]
fn the_resource_metadata_is_read_again() {
    let known = Play::to_browser(&browser(), Need::new(SERVER), &issuer()).unwrap();
    let need = Need::new(SERVER).registrations(vec![known.pending().registration().clone()]);
    assert_eq!(Play::begin(&browser(), need).unwrap().url(), METADATA);
}

/// O47: a grant that could not be renewed is checked against the metadata of now: resource, issuer and token endpoint.
#[test]
fn a_server_that_has_moved_is_noticed() {
    let terms = Play::to_browser(&browser(), Need::new(SERVER), &issuer()).unwrap().pending().terms().clone();
    let check = |resource: &Value, server: Option<&Value>| {
        let step = SignIn::check(browser(), Need::new(SERVER), terms.clone())?;
        let mut play = Play::of(step, World::default());
        play.ok(resource)?;
        if let Some(server) = server {
            play.ok(server)?;
        }
        match play.step {
            Some(Step::Checked { moved }) => Ok(moved),
            other => panic!("not checked: {other:?}"),
        }
    };
    assert_eq!(check(&resource(), Some(&issuer())), Ok(false));
    let more = with(resource(), "authorization_servers", json!(["https://new.example", ISSUER]));
    assert_eq!(check(&more, Some(&issuer())), Ok(false), "it is one of several");
    let gone = with(resource(), "authorization_servers", json!(["https://new.example"]));
    assert_eq!(check(&gone, None), Ok(true));
    let renamed = with(resource(), "resource", json!("https://tools.example/mcp/"));
    assert_eq!(check(&renamed, None), Ok(true));
    let elsewhere = with(issuer(), "token_endpoint", json!("https://login.example/token2"));
    assert_eq!(check(&resource(), Some(&elsewhere)), Ok(true));
    let broken = without(issuer(), "token_endpoint");
    assert!(matches!(check(&resource(), Some(&broken)), Err(AuthError::ServerMetadata { .. })));
}

/// O47: metadata that a challenge alone had led to is looked for there again, also without a challenge.
#[test]
fn metadata_is_found_again_where_it_was() {
    let need = challenged(r#"Bearer resource_metadata="/custom/metadata.json""#);
    let terms = Play::to_browser(&browser(), need, &issuer()).unwrap().pending().terms().clone();
    let stored: Terms = serde_json::from_str(&serde_json::to_string(&terms).unwrap()).unwrap();
    let step = SignIn::check(browser(), Need::new(SERVER), stored).unwrap();
    let mut play = Play::of(step, World::default());
    assert_eq!(play.url(), "https://tools.example/custom/metadata.json");
    play.answer(404, &json!({})).unwrap();
    assert_eq!(play.url(), METADATA);
}

/// O48: endpoints are assumed at the origin only where the settings say so and no metadata exists at all.
#[test]
fn endpoints_are_assumed_only_without_metadata() {
    let legacy = local(Settings::browser("x", CALLBACK).unwrap().legacy_endpoints());
    let mut play = Play::begin(&legacy, Need::new(SERVER)).unwrap();
    for _ in 0..4 {
        play.answer(404, &json!({})).unwrap();
    }
    assert_eq!(play.asked[2], "https://tools.example/.well-known/oauth-authorization-server");
    assert_eq!(play.url(), "https://tools.example/register");
    play.answer(201, &json!({ "client_id": "c" })).unwrap();
    assert!(play.pending().terms().assumed_endpoints);
    assert!(play.pending().url().as_str().starts_with("https://tools.example/authorize?"));

    let mut play = Play::begin(&legacy, Need::new(SERVER)).unwrap();
    play.answer(404, &json!({})).unwrap();
    play.answer(404, &json!({})).unwrap();
    let published = with(issuer(), "issuer", json!("https://tools.example/"));
    play.ok(&published).unwrap();
    play.answer(201, &json!({ "client_id": "c" })).unwrap();
    assert!(!play.pending().terms().assumed_endpoints, "these were published");
    assert_eq!(play.pending().terms().issuer, "https://tools.example/");
}

/// O45: an issuer that the author has not chosen is asked nothing, wherever it was found: it gets no registration, and no browser.
#[test]
fn an_issuer_that_was_not_chosen_is_not_asked() {
    let bound = |settings: Settings| local(settings.registered_with("https://login.example"));
    let wrong = |error: AuthError, offered: &str| {
        let expected = AuthError::WrongIssuer {
            registered: "https://login.example".to_owned(),
            offered: offered.to_owned(),
        };
        assert_eq!(error, expected);
    };
    let document = ClientMetadataUrl::parse("https://agent.example/client.json").unwrap();
    let browser = || Settings::browser("x", CALLBACK).unwrap();
    for settings in [browser(), browser().client_metadata(document)] {
        let mut play = Play::begin(&bound(settings.legacy_endpoints()), Need::new(SERVER)).unwrap();
        play.answer(404, &json!({})).unwrap();
        wrong(play.answer(404, &json!({})).unwrap_err(), "https://tools.example");
    }
    let other = bound(browser().issuer("https://other.example"));
    wrong(Play::begin(&other, Need::new(SERVER)).err().unwrap(), "https://other.example");

    let asked = "https://login.example/acme";
    let trusted = bound(browser().issuer(asked).trust_issuer(asked, "https://login.example"));
    let play = Play::begin(&trusted, Need::new(SERVER)).unwrap();
    assert_eq!(play.url(), "https://login.example/.well-known/oauth-authorization-server/acme");
    let assumed = local(browser().legacy_endpoints().registered_with("https://tools.example/"));
    let mut play = Play::begin(&assumed, Need::new(SERVER)).unwrap();
    play.answer(404, &json!({})).unwrap();
    play.answer(404, &json!({})).unwrap();
}

/// O49: issuers and servers on plain http are refused, except on this machine.
#[test]
fn plain_http_is_not_signed_in_to() {
    let error = Play::begin(&browser(), Need::new("http://tools.example/mcp")).err().unwrap();
    assert!(matches!(error, AuthError::Server { why: UrlError::Insecure, .. }), "{error}");
    for issuer in [
        "http://login.example",
        "http://localhost:1",
        "https://10.0.0.1",
        "https://login.example?x=y",
        "https://login.example#x",
        "javascript:alert(1)",
    ] {
        let mut play = Play::begin(&browser(), Need::new(SERVER)).unwrap();
        let error = play.ok(&with(resource(), "authorization_servers", json!([issuer]))).unwrap_err();
        assert!(matches!(error, AuthError::Issuer { .. }), "{issuer}: {error}");
    }
    let mut play = Play::begin(&browser(), Need::new("http://localhost:3000/mcp")).unwrap();
    let local = json!({ "resource": "http://localhost:3000/mcp", "authorization_servers": ["http://localhost:4000"] });
    play.ok(&local).unwrap();
    assert_eq!(play.url(), "http://localhost:4000/.well-known/oauth-authorization-server");
}
