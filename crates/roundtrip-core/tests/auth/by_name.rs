//! Documents, answers and stored sign-ins are objects: a list of the values of their members is not taken for them.

use std::sync::Arc;

use roundtrip_core::auth::*;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::listed::assert_read_by_name;
use super::support::*;

/// A sign-in of a machine, up to the request for a token.
fn to_token() -> Play {
    let settings = Settings::machine("id").secret("s".into()).registered_with(ISSUER);
    let mut play = Play::to_issuer(&Arc::new(settings), Need::new(SERVER)).unwrap();
    let methods = json!(["client_secret_basic"]);
    play.ok(&with(issuer(), "token_endpoint_auth_methods_supported", methods)).unwrap();
    play
}

/// A sign-in of a device, up to the request for a code.
fn to_code() -> Play {
    let settings = Settings::device("Agent").registered("id").registered_with(ISSUER);
    let mut play = Play::to_issuer(&Arc::new(settings), Need::new(SERVER)).unwrap();
    play.ok(&with(issuer(), "device_authorization_endpoint", json!("https://login.example/device"))).unwrap();
    play
}

fn token() -> Value {
    json!({
        "access_token": "a", "token_type": "Bearer", "expires_in": 60, "refresh_token": "r", "scope": "s",
        "issued_token_type": null,
    })
}

fn code() -> Value {
    json!({
        "device_code": "d", "user_code": "U", "verification_uri": "https://login.example/enter",
        "verification_uri_complete": "https://login.example/enter?U", "expires_in": 600, "interval": 1,
    })
}

/// O52: a list of the members of a metadata document or of a set of keys is not taken for it, nor one inside of it.
#[test]
fn a_list_is_not_taken_for_a_document() {
    let text = |document: &Value| document.to_string().into_bytes();
    assert_read_by_name(&issuer(), |document| ServerMetadata::parse(&text(document), ISSUER).is_ok());
    assert_read_by_name(&resource(), |document| ProtectedResource::parse(&text(document)).is_ok());
    let key = json!({ "kty": "RSA", "n": "AQAB", "e": "AQAB", "crv": null, "x": null, "y": null });
    assert_read_by_name(&json!({ "keys": [key] }), |document| {
        KeySet::parse(&text(document)).is_ok_and(|keys| !keys.is_empty())
    });
}

/// O52: nor for the answer to a registration, to a request for a token or to a request for a code.
#[test]
fn a_list_is_not_taken_for_an_answer_of_an_issuer() {
    let client = json!({
        "client_id": "c", "client_secret": null, "client_secret_expires_at": null,
        "token_endpoint_auth_method": null, "redirect_uris": [CALLBACK],
    });
    assert_read_by_name(&client, |answer| {
        let mut play = Play::to_issuer(&browser(), Need::new(SERVER)).unwrap();
        play.ok(&issuer()).unwrap();
        play.answer(201, answer).is_ok()
    });
    assert_read_by_name(&token(), |answer| to_token().ok(answer).is_ok());
    assert_read_by_name(&code(), |answer| to_code().ok(answer).is_ok());
}

/// Returns whether serde reads a value that was stored.
fn restored<T: DeserializeOwned>(value: &Value) -> bool {
    serde_json::from_value::<T>(value.clone()).is_ok()
}

/// O52: nor for a grant or a sign-in that was stored, whatever reads the JSON.
#[test]
fn a_list_is_not_taken_for_what_was_stored() {
    let mut play = to_token();
    play.ok(&token()).unwrap();
    let grant = serde_json::to_value(play.grant()).unwrap();
    assert_read_by_name(&grant, restored::<Grant>);

    let play = Play::to_browser(&browser(), Need::new(SERVER), &issuer()).unwrap();
    assert_read_by_name(&serde_json::to_value(play.pending()).unwrap(), restored::<Pending>);

    let mut play = to_code();
    play.ok(&code()).unwrap();
    let Some(Step::ShowCode(device)) = play.step else { panic!("no code: {:?}", play.step) };
    assert_read_by_name(&serde_json::to_value(*device).unwrap(), restored::<DevicePending>);
}
