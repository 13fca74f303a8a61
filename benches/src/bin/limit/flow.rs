//! The tool that asks, and the sealed `requestState` of its flow.
//!
//! It does what the specification requires of such a server and no more: the state is sealed, expires, and is bound
//! to the tool and its arguments. There is no principal to bind it to, because clients do not sign in here.

use std::{
    collections::BTreeMap,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use serde::{Deserialize, de::IgnoredAny};
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};
use xaes_256_gcm::{
    Nonce, Tag, Xaes256Gcm,
    aead::{AeadInOut, KeyInit},
};

use crate::{
    message::{Params, Refusal, Text, write_string},
    tools::{SERVER_INFO, write_text},
};

const GOOD_FOR: Duration = Duration::from_secs(600);

/// A state before it is sealed: nonce, expiry in seconds, digest of the call, then every answer so far, each with
/// its length before it.
const NONCE: usize = 24;
const EXPIRY: usize = 8;
const DIGEST: usize = 16;
const ANSWERS: usize = NONCE + EXPIRY + DIGEST;
const TAG: usize = 16;

const BAD_STATE: Refusal = Refusal::new(200, -32602, "invalid or expired requestState");

/// Seals and opens the states of this process.
pub(crate) struct Flows {
    cipher: Xaes256Gcm,
}

#[derive(Deserialize)]
struct Arguments<'a> {
    #[serde(borrow)]
    service: Text<'a>,
    #[serde(borrow)]
    env: Text<'a>,
    #[serde(default = "once")]
    rounds: u32,
}

fn once() -> u32 {
    1
}

#[derive(Deserialize)]
struct Answer<'a> {
    #[serde(borrow)]
    action: Text<'a>,
    #[serde(borrow)]
    content: Option<Content<'a>>,
}

#[derive(Deserialize)]
struct Content<'a> {
    approve: bool,
    #[serde(borrow)]
    reason: Text<'a>,
}

impl Flows {
    pub(crate) fn new() -> Result<Self, getrandom::Error> {
        let mut key = [0; 32];
        getrandom::fill(&mut key)?;
        Ok(Self { cipher: Xaes256Gcm::new(&key.into()) })
    }

    /// Asks one question per round, as often as the arguments say, and then returns the last answer.
    pub(crate) fn deploy(&self, out: &mut Vec<u8>, params: &Params<'_>) -> Result<(), Refusal> {
        let arguments =
            params.arguments.and_then(|raw| serde_json::from_str::<Arguments<'_>>(raw.get()).ok());
        let arguments = arguments.ok_or(Refusal::new(200, -32602, "deploy needs a service and an env"))?;
        let (digest, now) = (arguments.digest(), now());
        let mut state = match &params.request_state {
            Some(token) => self.open(&token.0, digest, now)?,
            None => begin(digest),
        };
        let mut answered = count(&state[ANSWERS..]);
        let answer = match params.input_responses {
            // Answers that come without the state of a question are answers to nothing.
            Some(raw) if params.request_state.is_some() => find(raw, &key(answered + 1))?,
            _ => None,
        };
        if let Some(answer) = &answer {
            let content = answer.content.as_ref().filter(|_| answer.action.0 == "accept");
            let reason = match content {
                Some(Content { approve: true, reason }) => &reason.0,
                Some(Content { reason, .. }) => {
                    write_text(out, &format!("not deployed: {}", reason.0), true);
                    return Ok(());
                }
                None => {
                    write_text(out, "not deployed: the question was not answered", true);
                    return Ok(());
                }
            };
            state.extend_from_slice(&(reason.len() as u32).to_le_bytes());
            state.extend_from_slice(reason.as_bytes());
            answered += 1;
        }
        if answered < arguments.rounds {
            if !may_ask(params) {
                return Err(Refusal::lacks(r#"{"elicitation":{"form":{}}}"#));
            }
            self.ask(out, &arguments, &key(answered + 1), state, now)
        } else {
            let Arguments { service, env, rounds } = &arguments;
            let reason = answer.and_then(|answer| answer.content).map(|content| content.reason.0);
            let reason = reason.unwrap_or_default();
            let text = format!("deployed {} to {} after {rounds} answers: {reason}", service.0, env.0);
            write_text(out, &text, false);
            Ok(())
        }
    }

    fn ask(
        &self,
        out: &mut Vec<u8>,
        arguments: &Arguments<'_>,
        key: &str,
        state: Vec<u8>,
        now: u64,
    ) -> Result<(), Refusal> {
        // A key needs no escapes.
        out.reserve(512 + state.len() * 4 / 3);
        out.extend_from_slice(br#","result":{"resultType":"input_required","inputRequests":{""#);
        out.extend_from_slice(key.as_bytes());
        out.extend_from_slice(br#"":{"method":"elicitation/create","params":{"mode":"form","message":"#);
        write_string(out, &format!("Deploy {} to {}?", arguments.service.0, arguments.env.0));
        out.extend_from_slice(
            br#","requestedSchema":{"type":"object","properties":{"approve":{"type":"boolean"},"reason":{"type":"string"}},"required":["approve","reason"]}}}},"requestState":""#,
        );
        self.seal(out, state, now)?;
        out.extend_from_slice(br#"","#);
        out.extend_from_slice(SERVER_INFO.as_bytes());
        out.push(b'}');
        Ok(())
    }

    /// Seals a state for its next round and writes the token.
    fn seal(&self, out: &mut Vec<u8>, mut state: Vec<u8>, now: u64) -> Result<(), Refusal> {
        const FAILED: Refusal = Refusal::new(500, -32603, "internal error");
        let mut nonce = [0; NONCE];
        getrandom::fill(&mut nonce).map_err(|_| FAILED)?;
        state[..NONCE].copy_from_slice(&nonce);
        state[NONCE..NONCE + EXPIRY].copy_from_slice(&(now + GOOD_FOR.as_secs()).to_le_bytes());
        let plain = &mut state[NONCE..];
        let tag = self.cipher.encrypt_inout_detached(&Nonce::from(nonce), &[], plain.into());
        state.extend_from_slice(&tag.map_err(|_| FAILED)?);
        let start = out.len();
        out.resize(start + state.len().div_ceil(3) * 4, 0);
        let written = BASE64_URL_SAFE_NO_PAD.encode_slice(&state, &mut out[start..]).map_err(|_| FAILED)?;
        out.truncate(start + written);
        Ok(())
    }

    /// Opens a token, and accepts it only if it has not expired and belongs to this call.
    fn open(&self, token: &str, digest: [u8; DIGEST], now: u64) -> Result<Vec<u8>, Refusal> {
        let mut state = BASE64_URL_SAFE_NO_PAD.decode(token).map_err(|_| BAD_STATE)?;
        let (nonce, rest) = state.split_first_chunk_mut::<NONCE>().ok_or(BAD_STATE)?;
        let (sealed, tag) = rest.split_last_chunk_mut::<TAG>().ok_or(BAD_STATE)?;
        self.cipher
            .decrypt_inout_detached(&Nonce::from(*nonce), &[], (&mut *sealed).into(), &Tag::from(*tag))
            .map_err(|_| BAD_STATE)?;
        let (expiry, rest) = sealed.split_first_chunk::<EXPIRY>().ok_or(BAD_STATE)?;
        if u64::from_le_bytes(*expiry) < now || !rest.starts_with(&digest) {
            return Err(BAD_STATE);
        }
        state.truncate(state.len() - TAG);
        Ok(state)
    }
}

impl Arguments<'_> {
    /// Returns half a SHA-256 of the tool and its arguments, independent of their spelling.
    fn digest(&self) -> [u8; DIGEST] {
        let mut hash = Sha256::new();
        for part in ["deploy", &self.service.0, &self.env.0] {
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part);
        }
        hash.update(self.rounds.to_le_bytes());
        let mut half = [0; DIGEST];
        half.copy_from_slice(&hash.finalize()[..DIGEST]);
        half
    }
}

/// Returns the state of a flow that has not asked yet; the seal fills in the rest.
fn begin(digest: [u8; DIGEST]) -> Vec<u8> {
    let mut state = Vec::with_capacity(ANSWERS + TAG);
    state.resize(NONCE + EXPIRY, 0);
    state.extend_from_slice(&digest);
    state
}

/// Returns how many answers a state holds.
fn count(mut answers: &[u8]) -> u32 {
    let mut count = 0;
    while let Some((length, rest)) = answers.split_first_chunk() {
        answers = rest.get(u32::from_le_bytes(*length) as usize..).unwrap_or_default();
        count += 1;
    }
    count
}

fn key(round: u32) -> String {
    if round == 1 { "confirm".to_owned() } else { format!("confirm-{round}") }
}

/// Returns the answer under this key, and ignores others.
fn find<'a>(responses: &'a RawValue, key: &str) -> Result<Option<Answer<'a>>, Refusal> {
    let invalid = |_| Refusal::new(200, -32602, "inputResponses does not fit the question");
    let responses: BTreeMap<Text<'_>, &RawValue> = serde_json::from_str(responses.get()).map_err(invalid)?;
    let answer = responses.get(&Text(key.into()));
    answer.map(|raw| serde_json::from_str(raw.get())).transpose().map_err(invalid)
}

/// Returns whether the client can show a form. Declaring neither mode means forms.
fn may_ask(params: &Params<'_>) -> bool {
    #[derive(Deserialize)]
    struct Capabilities {
        elicitation: Option<Elicitation>,
    }
    #[derive(Deserialize)]
    struct Elicitation {
        form: Option<IgnoredAny>,
        url: Option<IgnoredAny>,
    }
    let declared = params.meta.as_ref().and_then(|meta| meta.client_capabilities);
    let declared = declared.and_then(|raw| serde_json::from_str::<Capabilities>(raw.get()).ok());
    let elicitation = declared.and_then(|declared| declared.elicitation);
    elicitation.is_some_and(|modes| modes.form.is_some() || modes.url.is_none())
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;

    const CALL: [u8; DIGEST] = [1; DIGEST];

    fn token(flows: &Flows) -> String {
        let mut out = Vec::new();
        flows.seal(&mut out, begin(CALL), 1_000).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn opens_its_own_state_for_the_same_call_until_it_expires() {
        let flows = Flows::new().unwrap();
        let token = token(&flows);
        assert_eq!(count(&flows.open(&token, CALL, 1_600).unwrap()[ANSWERS..]), 0);
        assert!(flows.open(&token, CALL, 1_601).is_err());
        assert!(flows.open(&token, [2; DIGEST], 1_000).is_err());
        assert!(Flows::new().unwrap().open(&token, CALL, 1_000).is_err());
    }

    #[test]
    fn refuses_a_state_that_was_changed_anywhere() {
        let flows = Flows::new().unwrap();
        let token = token(&flows);
        for place in 0..token.len() {
            let mut changed = token.clone().into_bytes();
            changed[place] = if changed[place] == b'A' { b'B' } else { b'A' };
            assert!(flows.open(str::from_utf8(&changed).unwrap(), CALL, 1_000).is_err(), "{place}");
        }
        assert!(flows.open("", CALL, 1_000).is_err());
    }

    #[test]
    fn tells_calls_apart_by_what_they_mean() {
        let digest = |text| serde_json::from_str::<Arguments<'_>>(text).unwrap().digest();
        let (one, same) =
            (r#"{"service":"a","env":"b"}"#, r#"{ "rounds": 1, "env": "b", "service": "\u0061" }"#);
        assert_eq!(digest(one), digest(same));
        for other in [r#"{"service":"ab","env":""}"#, r#"{"service":"a","env":"b","rounds":2}"#] {
            assert_ne!(digest(one), digest(other));
        }
    }
}
