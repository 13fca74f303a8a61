//! Keys: how they are read, how a ring of them turns, and what of them is shown.

use proptest::prelude::*;
use roundtrip_core::seal::*;

use crate::{call, claims, key, open, ring, seal};

#[track_caller]
fn refusal(text: &str) -> String {
    Keyring::parse(text).unwrap_err().to_string()
}

/// S2: a ring needs a key, of 32 bytes or more, and each one once.
#[test]
fn rings_refuse_no_keys_short_keys_and_duplicates() {
    assert_eq!(Keyring::new([]).unwrap_err(), KeyringError::Empty);
    assert_eq!(Key::from_bytes(&[1; 31]).unwrap_err(), KeyError::Short { bytes: 31 });
    assert!(Key::from_bytes(&[1; 32]).is_ok());
    assert!(Key::from_bytes(&[1; 100]).is_ok());
    assert_eq!(
        Keyring::new([key(1), key(2), key(1)]).unwrap_err(),
        KeyringError::Duplicate { first: 1, second: 3 }
    );
}

/// S2: the first key seals, every key opens.
#[test]
fn the_first_key_seals_and_every_key_opens() {
    let (old, new, both) = (ring([1]), ring([2]), ring([2, 1]));
    assert!(open(&both, &seal(&old, &claims(), b"")).is_ok());
    assert!(open(&both, &seal(&new, &claims(), b"")).is_ok());
    assert!(open(&new, &seal(&both, &claims(), b"")).is_ok());
    assert_eq!(open(&old, &seal(&both, &claims(), b"")), Err(Reason::UnknownKey));
}

/// S2: keys are changed in three phases, and while any two neighbouring phases run side by side no flow is lost.
#[test]
fn three_phase_rotation_loses_no_flow() {
    let phases = [ring([1]), ring([1, 2]), ring([2, 1]), ring([2])];
    for pair in phases.windows(2) {
        for (sealing, opening) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
            let token = seal(&pair[sealing], &claims(), b"journal");
            assert_eq!(open(&pair[opening], &token).unwrap().payload, b"journal");
        }
    }
    // And a phase skipped does lose some, so the phases are needed.
    assert!(open(&phases[0], &seal(&phases[2], &claims(), b"")).is_err());
}

/// S12: two instances with one ring finish each other's flows; with two rings they refuse them.
#[test]
fn instances_share_flows_when_they_share_keys() {
    let token = seal(&ring([7]), &claims(), b"journal");
    assert_eq!(open(&ring([7]), &token).unwrap().payload, b"journal");
    let rejected = ring([8]).open(&token, &call(), crate::at(0), &TokenLimits::default()).unwrap_err();
    assert_eq!(rejected.reason, Reason::UnknownKey);
    assert_eq!(rejected.key, ring([7]).key_ids().next(), "the log names the key");
}

/// S10: a key reads the same in hex and in every kind of base64.
#[test]
fn keys_are_read_in_hex_and_base64() {
    let ids = |text: &str| Keyring::parse(text).unwrap().key_ids().collect::<Vec<_>>();
    let expected: Vec<_> = Keyring::new(Key::from_bytes(&[0xfb; 35])).unwrap().key_ids().collect();
    let url = "-_v7".repeat(11) + "-_s";
    let standard = url.replace('-', "+").replace('_', "/");
    let hex = "fb".repeat(35);
    for text in [&url, &format!("{url}="), &standard, &format!("{standard}="), &hex, &hex.to_uppercase()] {
        assert_eq!(ids(text), expected, "{text}");
    }
    assert_eq!(Key::from_text(&hex).unwrap().to_text(), url);
}

/// S10: variables and files hold several keys, with blanks and comments.
#[test]
fn rings_are_read_from_lines_and_commas() {
    let [one, two, three] = [1, 2, 3].map(|byte| key(byte).to_text());
    let expected: Vec<_> = ring([1, 2, 3]).key_ids().collect();
    for text in [
        format!("{one},{two},{three}"),
        format!("{one}\n{two}\n{three}\n"),
        format!("# newest first, then the old\r\n\r\n  {one} \t# june\r\n{two} , {three},\r\n#{one}\r\n"),
    ] {
        assert_eq!(Keyring::parse(&text).unwrap().key_ids().collect::<Vec<_>>(), expected, "{text}");
    }
}

/// S10: errors say which key is wrong and how, and show nothing of it.
#[test]
fn errors_name_the_key_by_its_number() {
    let good = key(1).to_text();
    assert_eq!(refusal(""), "a key ring needs at least one key");
    assert_eq!(refusal(" \n # none yet\n,"), "a key ring needs at least one key");
    assert_eq!(
        refusal(&format!("{good}\n\nc2hvcnQ=")),
        "key 2: a key needs 32 bytes or more and this one has 5"
    );
    let neither = "key 2: a key is written in base64 or in hex, and this is neither";
    for bad in ["pass word", "p\u{e4}ss", "+-".repeat(30).as_str(), "abc".repeat(21).as_str(), "===="] {
        assert_eq!(refusal(&format!("{good},{bad}")), neither, "{bad}");
    }
    assert_eq!(refusal(&format!("{good},{}", "01".repeat(32))), "keys 1 and 2 are the same");
    // 24 bytes in hex would be 36 bytes in base64.
    assert_eq!(refusal(&"1f".repeat(24)), "key 1: a key needs 32 bytes or more and this one has 24");
}

/// S10: `Debug` shows key ids and nothing else.
#[test]
fn debug_shows_no_secret() {
    let keyring = ring([1, 2]);
    let ids: Vec<String> = keyring.key_ids().map(|id| id.to_string()).collect();
    assert_eq!(format!("{keyring:?}"), format!("Keyring[{}, {}]", ids[0], ids[1]));
    assert_eq!(format!("{:?}", key(1)), format!("Key({})", ids[0]));
    assert!(format!("{:?}", Sealer::new(keyring)).starts_with("Sealer { by: Keyring["));
}

/// S10: what is derived is kept in types that wipe themselves.
#[test]
fn ciphers_wipe_themselves() {
    fn wipes<T: zeroize::ZeroizeOnDrop>() {}
    wipes::<chacha20poly1305::XChaCha20Poly1305>();
    wipes::<xaes_256_gcm::Xaes256Gcm>();
    wipes::<zeroize::Zeroizing<Vec<u8>>>();
}

proptest! {
    /// S10: what `to_text` writes, `parse` reads.
    #[test]
    fn text_form_round_trips(secret in prop::array::uniform32(any::<u8>())) {
        let key = Key::generate(secret);
        let again = Key::from_text(&key.to_text()).unwrap();
        prop_assert_eq!(again.to_text(), key.to_text());
        prop_assert_eq!(Key::from_bytes(&secret).unwrap().to_text(), key.to_text());
    }

    /// S10: no text makes the parser panic.
    #[test]
    fn any_text_is_read_or_refused(text in "[0-9a-f#, \n=+/_-]{0,90}|\\PC{0,60}") {
        let _ = Keyring::parse(&text);
    }
}
