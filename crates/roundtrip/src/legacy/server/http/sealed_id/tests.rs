//! Tests of [`SealedIds`] by themselves, with a clock that is set by hand.

use roundtrip_core::seal::Key;
use roundtrip_core::wire::Raw;
use serde_json::{Value, json};

use super::*;

const DAY: u64 = 24 * 60 * 60;
const NOW: Timestamp = Timestamp::from_unix(1_785_000_000);

fn ring(key: u8) -> Keyring {
    Keyring::new([Key::generate([key; 32])]).expect("a ring")
}

fn ids(key: u8, audience: &str) -> SealedIds {
    let audience = Digest::of("audience", &[audience.as_bytes()]);
    SealedIds::new(&Sealer::new(ring(key)), audience).expect("a shared ring")
}

fn negotiated(version: ProtocolVersion, capabilities: Value, client_info: &Value) -> Negotiated {
    Negotiated {
        version,
        capabilities: serde_json::from_value(capabilities).expect("capabilities"),
        client_info: Some(translate::raw(client_info).expect("JSON")),
    }
}

fn usual() -> Negotiated {
    negotiated(ProtocolVersion::V2025_11_25, json!({}), &json!({ "name": "old", "version": "1" }))
}

fn later(seconds: u64) -> Timestamp {
    NOW.plus(Duration::from_secs(seconds))
}

/// L8: an id holds what was negotiated: the revision, every known capability, the client's name and version.
#[test]
fn an_id_holds_what_was_negotiated() {
    let ids = ids(1, "a");
    let modes = [
        json!({}),
        json!({ "roots": {} }),
        json!({ "sampling": {} }),
        json!({ "sampling": { "context": {} } }),
        json!({ "sampling": { "tools": {} } }),
        json!({ "elicitation": {} }),
        json!({ "elicitation": { "form": {} } }),
        json!({ "elicitation": { "url": {} } }),
        json!({ "roots": {}, "sampling": { "context": {}, "tools": {} }, "elicitation": { "form": {}, "url": {} } }),
    ];
    let info = json!({ "name": "n\u{e9}", "version": "", "title": "T", "icons": [{ "src": "data:," }] });
    for version in [ProtocolVersion::V2025_03_26, ProtocolVersion::V2025_06_18, ProtocolVersion::V2025_11_25]
    {
        for declared in &modes {
            let agreed = negotiated(version, declared.clone(), &info);
            let id = ids.seal(&agreed, None, NOW).expect("randomness").expect("it fits");
            let opened = ids.open(&id, None, NOW).expect("it opens").negotiated;
            assert_eq!((opened.version, &opened.capabilities), (version, &agreed.capabilities));
            let client: Value = opened.client_info.as_ref().map(Raw::to).expect("a client").expect("JSON");
            assert_eq!(client, json!({ "name": "n\u{e9}", "version": "" }));
        }
    }
}

/// L8: an id has at most 1,024 characters, however long its parts may be; what is longer, or has no name, is not sealed.
#[test]
fn an_id_is_short_or_not_sealed() {
    let (ids, ada) = (ids(1, "a"), Principal::new("a".repeat(10_000)));
    let named = |name: &str, version: &str| {
        let info = json!({ "name": name, "version": version });
        let agreed = negotiated(ProtocolVersion::V2025_11_25, json!({}), &info);
        ids.seal(&agreed, Some(&ada), NOW).expect("randomness")
    };
    let longest = "\u{1f600}".repeat(64);
    let id = named(&longest, &longest).expect("it fits");
    assert!(id.len() <= LONGEST, "{}", id.len());
    assert!(ids.open(&id, Some(&ada), NOW).is_ok());
    assert!(named(&"n".repeat(65), "1").is_none() && named("n", &"1".repeat(65)).is_none());
    for info in [json!({}), json!({ "name": 1, "version": "1" }), json!(["n", "1"]), json!("n")] {
        let agreed = negotiated(ProtocolVersion::V2025_11_25, json!({}), &info);
        assert!(ids.seal(&agreed, None, NOW).expect("randomness").is_none());
    }
}

/// L8: an id is good for seven days, to the second, by whichever clock; and one from the future is not good yet.
#[test]
fn an_id_is_good_for_seven_days() {
    let ids = ids(1, "a");
    let id = ids.seal(&usual(), None, NOW).expect("randomness").expect("it fits");
    let left = |now| ids.open(&id, None, now).map(|terms| terms.left.as_secs());
    assert_eq!(left(NOW), Ok(7 * DAY));
    assert_eq!(left(later(7 * DAY - 1)), Ok(1));
    for seconds in [7 * DAY, 8 * DAY, 1_000 * DAY, u64::MAX] {
        assert_eq!(left(later(seconds)), Err(Reason::Expired), "{seconds}");
    }
    assert_eq!(left(Timestamp::from_unix(NOW.as_unix() - 60)), Ok(7 * DAY));
    assert_eq!(left(Timestamp::from_unix(NOW.as_unix() - 61)), Err(Reason::NotYetValid));
}

/// L8, L9, S11: what is changed, cut or made for someone else is refused, and the log says why.
#[test]
fn an_id_of_someone_else_is_refused() {
    let (own, ada, eve) = (ids(1, "a"), Principal::new("ada"), Principal::new("eve"));
    let sealed =
        |who: Option<&Principal>| own.seal(&usual(), who, NOW).expect("randomness").expect("it fits");
    let (id, nobodys) = (sealed(Some(&ada)), sealed(None));
    let refused = |ids: &SealedIds, id: &str, who| ids.open(id, who, NOW).expect_err("a refusal");
    assert_eq!(refused(&own, &id, Some(&eve)), Reason::WrongPrincipal);
    assert_eq!(refused(&own, &id, None), Reason::WrongPrincipal);
    assert_eq!(refused(&own, &nobodys, Some(&ada)), Reason::WrongPrincipal);
    assert_eq!(refused(&ids(1, "b"), &id, Some(&ada)), Reason::WrongAudience);
    assert_eq!(refused(&ids(2, "a"), &id, Some(&ada)), Reason::UnknownKey);
    assert_eq!(refused(&own, &"x".repeat(100 * 1024), Some(&ada)), Reason::TooLarge);
    for place in 0..id.len() {
        assert!(own.open(&id[..place], Some(&ada), NOW).is_err(), "{place}");
        let other = if id.as_bytes()[place] == b'x' { "y" } else { "x" };
        let changed = format!("{}{other}{}", &id[..place], &id[place + 1..]);
        assert!(own.open(&changed, Some(&ada), NOW).is_err(), "{place}");
    }
    for spelling in [format!("{id}="), format!("{id} "), format!(" {id}"), format!("{id}A"), String::new()] {
        assert!(own.open(&spelling, Some(&ada), NOW).is_err(), "{spelling}");
    }
    let nowhere = [Sealer::new(ring(1).single_process())];
    assert!(nowhere.iter().all(|sealer| SealedIds::new(sealer, own.audience).is_none()));
}

/// L8, S3: a record of another kind that holds the same, or content that ends early or late, is not an id.
#[test]
fn only_an_id_is_an_id() {
    let ids = ids(1, "a");
    let content = ids.content(&usual(), None, NOW, [7; 16]).expect("it fits");
    let seal = |label, content: &[u8]| {
        URL_SAFE_NO_PAD.encode(ids.ring.seal_record(label, content, [9; 24]).expect("sealed"))
    };
    assert!(ids.open(&seal(LABEL, &content), None, NOW).is_ok());
    let other = RecordLabel { kind: "ledger reply", id: b"" };
    assert_eq!(ids.open(&seal(other, &content), None, NOW).expect_err("a refusal"), Reason::Forged);
    for length in 0..content.len() {
        assert!(ids.open(&seal(LABEL, &content[..length]), None, NOW).is_err(), "{length}");
    }
    assert!(ids.open(&seal(LABEL, &[&content[..], b"x"].concat()), None, NOW).is_err());
    for (place, value) in [(0, 2), (1, 4), (1, 200)] {
        let mut wrong = content.clone();
        wrong[place] = value;
        assert!(ids.open(&seal(LABEL, &wrong), None, NOW).is_err(), "{place} {value}");
    }
}

/// L8: two ids of one client are different, and nothing of the client can be read from them.
#[test]
fn an_id_shows_nothing() {
    let ids = ids(1, "a");
    let ada = Principal::new("ada");
    let seal = || ids.seal(&usual(), Some(&ada), NOW).expect("randomness").expect("it fits");
    let (one, two) = (seal(), seal());
    assert_ne!(one, two);
    let bytes = URL_SAFE_NO_PAD.decode(one).expect("base64");
    assert!(!bytes.windows(3).any(|part| part == b"old" || part == b"ada"));
}

#[test]
fn an_id_is_the_same_in_every_release() {
    // Instances of two releases share sessions: this may change only with the version of the format.
    let ids = ids(1, "a");
    let agreed = negotiated(
        ProtocolVersion::V2025_11_25,
        json!({ "elicitation": { "form": {} } }),
        &json!({ "name": "old", "version": "1" }),
    );
    let ada = Principal::new("ada");
    let content = ids.content(&agreed, Some(&ada), NOW, [7; 16]).expect("it fits");
    let hex: String = content.iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(
        hex,
        "0103b04aaa641e62ef0e8599575238fe5916460707070707070707070707070707070740f0646a0000000074fde252e7554847\
         354116857e371cf403006f6c64010031"
    );
}
