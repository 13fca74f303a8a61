//! Crypto of one's own, and none at all.

use std::pin::pin;
use std::task::{Context, Poll, Waker};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use roundtrip_core::seal::dangerous::Plaintext;
use roundtrip_core::seal::*;

use crate::{at, call, claims, parts, ring};

/// The outcome of a future that waits for nothing.
#[track_caller]
pub(crate) fn now<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(outcome) => outcome,
        Poll::Pending => panic!("nothing to wait for"),
    }
}

fn sealed(sealer: &Sealer) -> String {
    now(sealer.seal(&claims(), b"journal", [3; 24])).unwrap()
}

fn opened(sealer: &Sealer, token: &str) -> Result<Opened, Reason> {
    now(sealer.open(token, &call(), at(0))).map_err(|rejected| rejected.reason)
}

/// A codec that does what a function says.
struct Toy<S, O>(S, O);

impl<S, O> Codec for Toy<S, O>
where
    S: Fn(&[u8]) -> Result<Vec<u8>, CodecError> + Send + Sync,
    O: Fn(&[u8]) -> Result<Vec<u8>, CodecError> + Send + Sync,
{
    fn seal<'a>(&'a self, plain: &'a [u8], _: &'a [u8]) -> BoxFuture<'a, Result<Vec<u8>, CodecError>> {
        Box::pin(async { (self.0)(plain) })
    }

    fn open<'a>(&'a self, sealed: &'a [u8], _: &'a [u8]) -> BoxFuture<'a, Result<Vec<u8>, CodecError>> {
        Box::pin(async { (self.1)(sealed) })
    }
}

fn backwards(bytes: &[u8]) -> Result<Vec<u8>, CodecError> {
    Ok(bytes.iter().rev().copied().collect())
}

/// S1: the ordinary sealer seals with keys, and is ready at the first poll.
#[test]
fn a_key_ring_seals_without_waiting() {
    let sealer = Sealer::new(ring([1]));
    let token = sealed(&sealer);
    assert_eq!(token, crate::seal(&ring([1]), &claims(), b"journal"));
    assert_eq!(opened(&sealer, &token).unwrap().payload, b"journal");
    fn sends(_: impl Send) {}
    sends(sealer.seal(&claims(), b"", [3; 24]));
    sends(sealer.open(&token, &call(), at(0)));
}

/// S1: plaintext has to be spelled `dangerous`, and an ordinary sealer takes none.
#[test]
fn plaintext_is_readable_and_only_where_asked_for() {
    let plain = Sealer::with_codec(Plaintext);
    let token = sealed(&plain);
    let bytes = URL_SAFE_NO_PAD.decode(&token).unwrap();
    assert!(bytes.ends_with(b"journal"));
    assert_eq!(opened(&plain, &token).unwrap(), Opened { claims: claims(), payload: b"journal".to_vec() });
    assert_eq!(opened(&Sealer::new(ring([1])), &token), Err(Reason::Format(2)));
    for (suite, format) in [(Suite::XChaCha20Poly1305, 1), (Suite::Xaes256Gcm, 3)] {
        let sealed = sealed(&Sealer::new(ring([1]).suite(suite)));
        assert_eq!(opened(&plain, &sealed), Err(Reason::Format(format)));
    }
}

/// S3: plaintext too has one spelling.
#[test]
fn plaintext_is_canonical() {
    let plain = Sealer::with_codec(Plaintext);
    let token = sealed(&plain);
    for added in [" ", "\n", "=", "=="] {
        assert_eq!(opened(&plain, &format!("{token}{added}")), Err(Reason::Malformed));
        assert_eq!(opened(&plain, &format!("{added}{token}")), Err(Reason::Malformed));
    }
    let head = &URL_SAFE_NO_PAD.decode(&token).unwrap()[..111];
    let open = |bytes: &[u8]| opened(&plain, &URL_SAFE_NO_PAD.encode(bytes)).map(|opened| opened.payload);
    assert_eq!(open(head), Ok(vec![]));
    for end in 1..head.len() {
        assert_eq!(open(&head[..end]), Err(Reason::Malformed), "{end}");
    }
    let changed = |version: u8, flags: u8| {
        let mut bytes = head.to_vec();
        (bytes[1], bytes[2]) = (version, flags);
        open(&bytes)
    };
    for unknown in [0, 3, u8::MAX] {
        assert_eq!(changed(unknown, 1), Err(Reason::Format(unknown)));
    }
    assert_eq!((changed(1, 1), changed(2, 1)), (Ok(vec![]), Ok(vec![])));
    assert_eq!(changed(1, 3), Err(Reason::Malformed), "a flag that means nothing in the first version");
    assert_eq!(changed(2, 3), Err(Reason::Malformed), "a client that is not there");
    assert_eq!(changed(2, 5), Err(Reason::Malformed), "a flag that means nothing in the second");
}

/// S9: expiry, bindings and size stay ours, whoever does the crypto.
#[test]
fn claims_are_checked_whatever_the_codec() {
    for sealer in [Sealer::with_codec(Plaintext), Sealer::with_codec(Toy(backwards, backwards))] {
        let token = sealed(&sealer);
        assert_eq!(opened(&sealer, &token).unwrap().payload, b"journal");
        let reason = |parts, time| {
            now(sealer.open(&token, &Binding::new(parts), at(time))).err().map(|rejected| rejected.reason)
        };
        assert_eq!(reason(parts(), 661), Some(Reason::Expired));
        assert_eq!(reason(BindingParts { audience: "x", ..parts() }, 0), Some(Reason::WrongAudience));
        assert_eq!(reason(BindingParts { target: "x", ..parts() }, 0), Some(Reason::WrongTarget));
        assert_eq!(reason(BindingParts { principal: None, ..parts() }, 0), Some(Reason::WrongPrincipal));

        let small = sealer.clone().limits(TokenLimits::default().max_token(token.len() - 1));
        assert_eq!(opened(&small, &token), Err(Reason::TooLarge));
        let error = now(small.seal(&claims(), b"journal", [3; 24])).unwrap_err();
        assert!(matches!(error, SealError::TooLarge { .. }));
        assert_eq!(small.allowed().max_token, token.len() - 1);
    }
}

/// S9: a codec that fails, fails closed, and its error is in the log's chain only.
#[test]
fn failing_codecs_fail_closed() {
    let down = |_: &[u8]| Err(CodecError::from("the key service is down"));
    let sealer = Sealer::with_codec(Toy(backwards, down));
    let rejected = now(sealer.open(&sealed(&sealer), &call(), at(0))).unwrap_err();
    assert_eq!(rejected.to_string(), "the request state was refused: the codec did not open it");
    let source = std::error::Error::source(&rejected).unwrap();
    assert_eq!(source.to_string(), "the key service is down");
    assert_eq!(rejected.error_object(), Rejected::from(Reason::Forged).error_object());

    let sealer = Sealer::with_codec(Toy(down, backwards));
    let error = now(sealer.seal(&claims(), b"journal", [3; 24])).unwrap_err();
    assert_eq!(error.to_string(), "the codec did not seal the state");
}

/// S9: a codec that returns garbage gets the token refused.
#[test]
fn codecs_that_return_garbage_fail_closed() {
    for garbage in [vec![], vec![1], vec![0; 200], vec![1; 200], vec![255; 200], b"{\"step\":2}".to_vec()] {
        let returned = garbage.clone();
        let sealer = Sealer::with_codec(Toy(backwards, move |_: &[u8]| Ok(returned.clone())));
        assert!(opened(&sealer, &sealed(&sealer)).is_err(), "{garbage:?}");
    }
    // Not even with the first two bytes right.
    let sealer = Sealer::with_codec(Toy(backwards, |_: &[u8]| Ok([vec![1, 0], vec![7; 200]].concat())));
    assert_eq!(opened(&sealer, &sealed(&sealer)), Err(Reason::WrongAudience));
}
