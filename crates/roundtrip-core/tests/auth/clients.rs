//! Registration of clients, and how they authenticate themselves.

use std::sync::Arc;

use http::HeaderMap;
use roundtrip_core::auth::*;
use serde_json::{Value, json};

use super::support::*;

fn cimd() -> ClientMetadataUrl {
    ClientMetadataUrl::parse("https://agent.example/client.json").unwrap()
}

fn settings() -> Settings {
    Settings::browser("Travel agent", CALLBACK).unwrap()
}

fn takes_documents() -> Value {
    let server = with(issuer(), "client_id_metadata_document_supported", json!(true));
    with(server, "authorization_response_iss_parameter_supported", json!(true))
}

/// O55: configured, then a metadata document, then by request, else an error that says what to configure.
#[test]
fn registrations_have_an_order() {
    let client_id = |settings: Settings, server: &Value| {
        let play = Play::to_browser(&Arc::new(settings), Need::new(SERVER), server).unwrap();
        (play.pending().registration().source, play.pending().registration().client_id.clone())
    };
    let all = settings().client_metadata(cimd()).registered("mine").registered_with(ISSUER);
    assert_eq!(client_id(all, &takes_documents()), (RegistrationSource::Configured, "mine".into()));
    let document = settings().client_metadata(cimd());
    assert_eq!(
        client_id(document.clone(), &takes_documents()),
        (RegistrationSource::MetadataDocument, cimd().as_str().into())
    );
    assert_eq!(client_id(document, &issuer()), (RegistrationSource::Dynamic, "c1".into()));

    let mut play = Play::to_issuer(&browser(), Need::new(SERVER)).unwrap();
    let error = play.ok(&without(takes_documents(), "registration_endpoint")).unwrap_err();
    assert_eq!(error, AuthError::NoRegistration(ISSUER.to_owned()));
    assert_eq!(error.blame(), AuthBlame::Settings);
}

/// O67: a client id that every issuer knows is used where `iss` tells their codes apart, or where the author has chosen the
/// issuer; others register the client.
#[test]
fn a_metadata_document_needs_an_issuer_that_names_itself() {
    let document = || settings().client_metadata(cimd());
    let silent = without(takes_documents(), "authorization_response_iss_parameter_supported");
    let closed = without(silent.clone(), "registration_endpoint");
    let source = |settings: Settings, server: &Value| {
        let play = Play::to_browser(&Arc::new(settings), Need::new(SERVER), server)?;
        Ok::<_, AuthError>(play.pending().registration().source)
    };
    assert_eq!(source(document(), &takes_documents()), Ok(RegistrationSource::MetadataDocument));
    assert_eq!(source(document(), &silent), Ok(RegistrationSource::Dynamic));
    let error = source(document(), &closed).unwrap_err();
    assert_eq!(error, AuthError::NoIss(ISSUER.to_owned()));
    assert_eq!(error.blame(), AuthBlame::Settings);
    for chosen in [document().registered_with(ISSUER), document().any_issuer()] {
        assert_eq!(source(chosen, &closed), Ok(RegistrationSource::MetadataDocument));
    }

    let answer = json!({ "client_id": cimd().as_str(), "redirect_uris": [CALLBACK] });
    for settings in [document(), settings()] {
        let mut play = Play::to_issuer(&Arc::new(settings), Need::new(SERVER)).unwrap();
        play.ok(&silent).unwrap();
        let error = play.answer(201, &answer).unwrap_err();
        assert!(
            matches!(error, AuthError::TokenResponse(_)),
            "a hostile issuer registers a known id: {error}"
        );
    }
}

/// O56: the id of a metadata document is https with a path; the document to host says the same id.
#[test]
fn a_metadata_document_is_what_its_url_says() {
    for url in [
        "http://agent.example/c",
        "https://agent.example",
        "https://agent.example/",
        "https://agent.example/c#x",
        "https://a@agent.example/c",
        "https://agent.example/../c",
        "http://localhost/c",
    ] {
        assert!(ClientMetadataUrl::parse(url).is_err(), "{url}");
    }
    let document = cimd().document("Travel agent", &[CALLBACK]);
    assert_eq!(document["client_id"], cimd().as_str());
    assert_eq!(
        (&document["client_name"], &document["redirect_uris"]),
        (&json!("Travel agent"), &json!([CALLBACK]))
    );
}

/// O56, O57: the document says what kind of application the client is: servers ignore the port of native ones alone.
#[test]
fn a_client_metadata_document_names_its_kind() {
    let kind = |uris: &[&str]| cimd().document("Travel agent", uris)["application_type"].clone();
    for native in [
        &["http://127.0.0.1/callback"][..],
        &["https://agent.example/cb", "http://localhost/cb"],
        &["app:/cb"],
        &[],
    ] {
        assert_eq!(kind(native), "native", "{native:?}");
    }
    assert_eq!(kind(&["https://agent.example/cb"]), "web");
}

/// O57: a registration request says what kind of application it is, and that it refreshes.
#[test]
fn a_registration_request_is_complete() {
    let mut play = Play::to_issuer(&browser(), Need::new(SERVER)).unwrap();
    play.ok(&issuer()).unwrap();
    assert_eq!(play.request().headers["content-type"], "application/json");
    assert_eq!(
        play.json(),
        json!({
            "client_name": "Travel agent",
            "application_type": "native",
            "redirect_uris": [CALLBACK],
            "grant_types": ["authorization_code", "refresh_token"],
            "response_types": ["code"],
            "token_endpoint_auth_method": "none",
        })
    );
    let web = Arc::new(Settings::browser("Web", "https://agent.example/back").unwrap());
    let mut play = Play::to_issuer(&web, Need::new(SERVER)).unwrap();
    play.ok(&without(issuer(), "token_endpoint_auth_methods_supported")).unwrap();
    assert_eq!(play.json()["application_type"], "web");
    assert_eq!(play.json()["token_endpoint_auth_method"], "client_secret_basic");
}

/// O58: a refusal is tried once more as the other kind, and then shown with the server's words.
#[test]
fn a_refused_registration_is_shown() {
    let refusal = json!({ "error": "invalid_client_metadata", "error_description": "no\u{1b}[31m natives" });
    let mut play = Play::to_issuer(&browser(), Need::new(SERVER)).unwrap();
    play.ok(&issuer()).unwrap();
    play.answer(400, &refusal).unwrap();
    assert_eq!(play.json()["application_type"], "web");
    let error = play.answer(400, &refusal).unwrap_err();
    assert_eq!(error.blame(), AuthBlame::Refused);
    assert!(error.to_string().ends_with("invalid_client_metadata: no [31m natives"), "{error}");

    let mut play = Play::to_issuer(&browser(), Need::new(SERVER)).unwrap();
    play.ok(&issuer()).unwrap();
    let error = play.answer(403, &json!({ "error": "access_denied" })).unwrap_err();
    assert!(matches!(error, AuthError::RegistrationRefused(_)), "{error}");
}

/// O51: a registration request is not redirected, and an outage is said to be one.
#[test]
fn a_registration_is_not_redirected() {
    for (status, blame) in [(307, AuthBlame::Peer), (302, AuthBlame::Peer), (502, AuthBlame::Unreachable)] {
        let mut play = Play::to_issuer(&browser(), Need::new(SERVER)).unwrap();
        play.ok(&issuer()).unwrap();
        let to = headers(&[("location", "https://login.example/other")]);
        assert_eq!(play.raw(status, &to, b"").unwrap_err().blame(), blame, "{status}");
    }
}

/// O59: secret, expiry and method of the answer are kept with the redirect URI they are for.
#[test]
fn the_answer_to_a_registration_is_obeyed() {
    let server = with(
        issuer(),
        "token_endpoint_auth_methods_supported",
        json!(["client_secret_post", "client_secret_basic"]),
    );
    let mut play = Play::to_issuer(&browser(), Need::new(SERVER)).unwrap();
    play.ok(&server).unwrap();
    let answer = json!({
        "client_id": "c1", "client_secret": "s", "client_secret_expires_at": NOON + 100,
        "token_endpoint_auth_method": "client_secret_post", "redirect_uris": [CALLBACK],
    });
    play.answer(201, &answer).unwrap();
    let kept = play.pending().registration().clone();
    assert_eq!(
        (kept.secret.as_ref().unwrap().expose(), kept.method),
        ("s", Some(ClientAuthMethod::ClientSecretPost))
    );
    assert_eq!((kept.redirect_uri.as_deref(), kept.secret_expires_at), (Some(CALLBACK), Some(NOON + 100)));
    assert_eq!(play.pending().terms().method, ClientAuthMethod::ClientSecretPost);

    for answer in [
        json!({}),
        json!({ "client_id": "" }),
        json!({ "client_id": "a\nb" }),
        json!({ "client_id": "c", "redirect_uris": ["https://evil.example"] }),
        json!([]),
    ] {
        let mut play = Play::to_issuer(&browser(), Need::new(SERVER)).unwrap();
        play.ok(&server).unwrap();
        assert!(play.answer(201, &answer).is_err(), "{answer}");
    }
}

/// O59, O60, O72: a stored registration is used again at its issuer, for its redirect URI, while its secret is good.
#[test]
fn a_stored_registration_is_used_for_what_it_was_made_for() {
    let known = Play::to_browser(&browser(), Need::new(SERVER), &issuer()).unwrap();
    let held = known.pending().registration().clone();
    let registers = |held: Registration, settings: Arc<Settings>| {
        let mut play = Play::to_issuer(&settings, Need::new(SERVER).registrations(vec![held])).unwrap();
        play.ok(&issuer()).unwrap();
        matches!(play.step, Some(Step::Send(_)))
    };
    assert!(!registers(held.clone(), browser()));
    let other_port = Arc::new(Settings::browser("x", "http://127.0.0.1:8888/callback").unwrap());
    assert!(registers(held.clone(), other_port), "another port");
    let mut expired = held.clone();
    expired.secret_expires_at = Some(NOON);
    assert!(registers(expired, browser()), "its secret has ended");
    let mut elsewhere = held;
    elsewhere.issuer = format!("{ISSUER}/");
    assert!(registers(elsewhere, browser()), "another issuer, by one slash");
}

/// O60: a configured client is an error at another issuer than its own, and a metadata document is portable.
#[test]
fn a_configured_client_stays_with_its_issuer() {
    let elsewhere = Arc::new(settings().registered("mine").registered_with("https://old.example"));
    let mut play = Play::begin(&elsewhere, Need::new(SERVER)).unwrap();
    let error = play.ok(&resource()).unwrap_err();
    assert!(
        matches!(&error, AuthError::WrongIssuer { registered, .. } if registered == "https://old.example"),
        "{error}"
    );

    let unbound = Arc::new(settings().registered("mine").secret("s".into()).any_issuer());
    let mut before =
        Play::to_browser(&unbound, Need::new(SERVER), &issuer()).unwrap().pending().registration().clone();
    assert_eq!(before.secret, None, "a configured secret is not copied into stores");
    before.issuer = "https://old.example".into();
    let mut play = Play::to_issuer(&unbound, Need::new(SERVER).registrations(vec![before])).unwrap();
    assert!(
        matches!(play.ok(&issuer()), Err(AuthError::WrongIssuer { .. })),
        "it was used with another issuer before"
    );
}

/// O60: the secret of the settings goes to the issuer that they name alone, whatever grant or sign-in is stored.
#[test]
fn a_configured_secret_goes_to_its_own_issuer_alone() {
    let server = with(issuer(), "token_endpoint_auth_methods_supported", json!(["client_secret_post"]));
    let of = |id: &str| settings().registered(id).secret("s".into());
    let bound = Arc::new(of("mine").registered_with(ISSUER));
    let play = Play::to_browser(&bound, Need::new(SERVER), &server).unwrap();
    let state = query(play.pending().url()).remove("state").unwrap();
    let callback = format!("{CALLBACK}?code=abc&state={state}");
    let resume = |settings: Settings| {
        let answered = play.pending().answered(&callback).unwrap();
        SignIn::resume(Arc::new(settings), answered, &mut World::default())
    };
    let mut finished = Play::of(resume(of("mine").registered_with(ISSUER)).unwrap(), World::default());
    assert_eq!(finished.form()["client_secret"], "s");
    let tokens = json!({ "access_token": "a", "token_type": "Bearer", "refresh_token": "r" });
    finished.ok(&tokens).unwrap();
    let grant = finished.grant();
    let refresh = |settings: Settings| {
        SignIn::refresh(Arc::new(settings), grant, &mut World::default()).unwrap().is_some()
    };

    let elsewhere = "https://new.example";
    let others = || {
        [
            of("mine").registered_with(elsewhere),
            of("mine").issuer(elsewhere),
            of("other").registered_with(ISSUER),
            of("mine").registered_with(elsewhere).trust_issuer("https://other.example", ISSUER),
            settings(),
        ]
    };
    for other in others() {
        assert!(!refresh(other.clone()), "{other:?}");
        let error = resume(other).unwrap_err();
        assert!(matches!(error, AuthError::Settings(_)), "{error}");
    }
    for same in [
        of("mine").any_issuer(),
        of("mine").registered_with(ISSUER),
        of("mine").issuer(ISSUER),
        of("mine").registered_with(elsewhere).trust_issuer(elsewhere, ISSUER),
    ] {
        assert!(refresh(same.clone()) && resume(same).is_ok());
    }
}

/// O70: redirect URIs are https or on this machine.
#[test]
fn redirect_uris_are_https_or_local() {
    for uri in [
        "http://agent.example/cb",
        "http://10.0.0.1/cb",
        "myapp:/cb",
        "https://agent.example/cb?x=y",
        "https://agent.example/cb#x",
        "http://localhost.evil.example/cb",
    ] {
        assert_eq!(Settings::browser("x", uri).err(), Some(AuthError::RedirectUri(uri.to_owned())), "{uri}");
    }
    for uri in ["http://[::1]:7/cb", "http://localhost/cb", "https://agent.example/cb"] {
        assert!(Settings::browser("x", uri).is_ok(), "{uri}");
    }
}

/// O77: the method is chosen from what the client has, what it was told and what the server lists.
#[test]
fn the_method_is_chosen_from_the_list() {
    use ClientAuthMethod::*;
    let choose = |listed: Value, said, secret, key| {
        let document = with(issuer(), "token_endpoint_auth_methods_supported", listed).to_string();
        ClientAuthMethod::choose(
            &ServerMetadata::parse(document.as_bytes(), ISSUER).unwrap(),
            said,
            secret,
            key,
        )
    };
    let (basic, post, none, key) = ("client_secret_basic", "client_secret_post", "none", "private_key_jwt");
    for (listed, said, has_secret, has_key, chosen) in [
        (json!([none]), Option::None, true, false, None),
        (json!([basic, post]), Option::None, true, false, ClientSecretBasic),
        (json!([post]), Option::None, true, false, ClientSecretPost),
        (json!([post, basic]), Some(ClientSecretPost), true, false, ClientSecretPost),
        (json!([basic]), Some(ClientSecretPost), true, false, ClientSecretBasic),
        (json!([none]), Some(ClientSecretPost), true, false, None),
        (json!([basic, key]), Option::None, false, true, PrivateKeyJwt),
        (json!([basic]), Option::None, false, false, None),
        (json!([basic]), Some(ClientSecretBasic), false, false, None),
        (Value::Null, Option::None, true, false, ClientSecretBasic),
        (Value::Null, Option::None, false, false, None),
        (Value::Null, Option::None, false, true, PrivateKeyJwt),
        (Value::Null, Some(None), true, false, None),
    ] {
        assert_eq!(choose(listed.clone(), said, has_secret, has_key), Ok(chosen), "{listed} {said:?}");
    }
    let error = choose(json!(["tls_client_auth"]), Option::None, true, false).unwrap_err();
    assert!(error.to_string().contains("tls_client_auth"), "{error}");
}

/// O52: an answer that is too long is refused before it is decoded.
#[test]
fn a_huge_answer_is_refused() {
    let mut play = Play::to_issuer(&browser(), Need::new(SERVER)).unwrap();
    play.ok(&issuer()).unwrap();
    let huge = format!(r#"{{"client_id":"{}"}}"#, "x".repeat(70_000));
    assert!(play.raw(201, &HeaderMap::new(), huge.as_bytes()).is_err());
}
