//! Sealed session ids, which every instance with the same key ring opens (L8).
//!
//! An id holds what `initialize` agreed on, so that an instance which has never seen the session can serve its calls. It is
//! sealed as a record, under keys that no `requestState` is sealed with, and its label is the label of no other record.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use roundtrip_core::seal::{
    CLOCK_SKEW, Digest, Keyring, Reason, RecordError, RecordLabel, Sealer, Timestamp,
};
use roundtrip_core::wire::{
    ClientCapabilities, ElicitationCapability, Era, ErrorObject, Implementation, JsonObject, ProtocolVersion,
    RootsCapability, SamplingCapability,
};
use serde::Deserialize;

use crate::legacy::server::negotiated::Negotiated;
use crate::legacy::server::translate;
use crate::server::{Principal, random};

/// Lifetime of an id: an id cannot be revoked.
pub(super) const LIFETIME: Duration = Duration::from_secs(7 * 24 * 60 * 60);
/// Longest id, in characters. Checked before anything is decoded.
const LONGEST: usize = 1024;
/// Most characters of a client's name, and of its version.
const LONGEST_NAME: usize = 64;
/// Version of the encoding.
const FORMAT: u8 = 1;
const LABEL: RecordLabel<'_> = RecordLabel { kind: "session id", id: b"" };

/// Bits of the capabilities that a client declared.
mod flag {
    pub(super) const ROOTS: u8 = 1;
    pub(super) const SAMPLING: u8 = 1 << 1;
    pub(super) const SAMPLING_CONTEXT: u8 = 1 << 2;
    pub(super) const SAMPLING_TOOLS: u8 = 1 << 3;
    pub(super) const ELICITATION: u8 = 1 << 4;
    pub(super) const ELICITATION_FORM: u8 = 1 << 5;
    pub(super) const ELICITATION_URL: u8 = 1 << 6;
    /// A digest of the principal follows.
    pub(super) const PRINCIPAL: u8 = 1 << 7;
}

/// Seals and opens the session ids of one service.
#[derive(Debug, Clone)]
pub(super) struct SealedIds {
    ring: Keyring,
    audience: Digest,
}

/// Content of an opened id.
#[derive(Debug)]
pub(super) struct Terms {
    pub(super) negotiated: Negotiated,
    /// Time for which the id is still good.
    pub(super) left: Duration,
}

#[derive(Deserialize)]
struct ClientName {
    name: String,
    version: String,
}

impl SealedIds {
    /// Returns `None` if no other process can have the keys: then sessions stay at their process.
    pub(super) fn new(sealer: &Sealer, audience: Digest) -> Option<Self> {
        Some(Self { ring: sealer.shared_keyring()?.clone(), audience })
    }

    /// Seals what was negotiated into an id. `None` if that does not fit.
    pub(super) fn seal(
        &self,
        negotiated: &Negotiated,
        principal: Option<&Principal>,
        now: Timestamp,
    ) -> Result<Option<String>, ErrorObject> {
        let Some(content) = self.content(negotiated, principal, now, random()?) else { return Ok(None) };
        let sealed = self.ring.seal_record(LABEL, &content, random()?);
        let sealed = sealed.map_err(|error| ErrorObject::internal(error.to_string()))?;
        Ok(Some(URL_SAFE_NO_PAD.encode(sealed)).filter(|id| id.len() <= LONGEST))
    }

    fn content(
        &self,
        negotiated: &Negotiated,
        principal: Option<&Principal>,
        now: Timestamp,
        random: [u8; 16],
    ) -> Option<Vec<u8>> {
        let client: ClientName = negotiated.client_info.as_ref()?.to().ok()?;
        let revision = ProtocolVersion::ALL.iter().position(|known| *known == negotiated.version)?;
        let principal = principal.map(digest_of);
        let flags =
            flags_of(&negotiated.capabilities) | if principal.is_some() { flag::PRINCIPAL } else { 0 };
        let mut content = vec![FORMAT, u8::try_from(revision).ok()?, flags];
        content.extend_from_slice(self.audience.as_bytes());
        content.extend_from_slice(&random);
        content.extend_from_slice(&now.as_unix().to_le_bytes());
        content.extend(principal.iter().flat_map(Digest::as_bytes));
        for name in [client.name, client.version] {
            if name.chars().count() > LONGEST_NAME {
                return None;
            }
            content.extend_from_slice(&u16::try_from(name.len()).ok()?.to_le_bytes());
            content.extend_from_slice(name.as_bytes());
        }
        Some(content)
    }

    /// Opens an id that a caller presents. The reason of a refusal is for the log.
    pub(super) fn open(
        &self,
        id: &str,
        principal: Option<&Principal>,
        now: Timestamp,
    ) -> Result<Terms, Reason> {
        if id.len() > LONGEST {
            return Err(Reason::TooLarge);
        }
        // This variant refuses padding, the other alphabet and left-over bits: an id has one spelling.
        let sealed = URL_SAFE_NO_PAD.decode(id).map_err(|_| Reason::Malformed)?;
        let opened = self.ring.open_record(LABEL, &sealed).map_err(|error| match error {
            RecordError::UnknownKey(_) => Reason::UnknownKey,
            RecordError::Forged(_) => Reason::Forged,
            _ => Reason::Malformed,
        })?;
        let mut rest = opened.content.as_slice();
        let [format, revision, flags] = take(&mut rest)?;
        if format != FORMAT {
            return Err(Reason::Format(format));
        }
        if Digest::from_bytes(take(&mut rest)?) != self.audience {
            return Err(Reason::WrongAudience);
        }
        let _: [u8; 16] = take(&mut rest)?;
        let issued = Timestamp::from_unix(u64::from_le_bytes(take(&mut rest)?));
        let bound = if flags & flag::PRINCIPAL == 0 { None } else { Some(take(&mut rest)?) };
        if bound.map(Digest::from_bytes) != principal.map(digest_of) {
            return Err(Reason::WrongPrincipal);
        }
        let left = time_left(issued, now)?;
        let client_info = Implementation::new(text(&mut rest)?, text(&mut rest)?);
        let version = ProtocolVersion::ALL.get(usize::from(revision)).copied();
        let version = version.filter(|version| version.era() == Era::Handshake && rest.is_empty());
        let negotiated = Negotiated {
            version: version.ok_or(Reason::Malformed)?,
            capabilities: capabilities_of(flags),
            client_info: Some(translate::raw(&client_info).map_err(|_| Reason::Malformed)?),
        };
        Ok(Terms { negotiated, left })
    }
}

/// Returns for how long an id is still good.
fn time_left(issued: Timestamp, now: Timestamp) -> Result<Duration, Reason> {
    if issued > now.plus(CLOCK_SKEW) {
        return Err(Reason::NotYetValid);
    }
    // A clock that is behind does not make the id live longer.
    let age = Duration::from_secs(now.as_unix().saturating_sub(issued.as_unix()));
    LIFETIME.checked_sub(age).filter(|left| !left.is_zero()).ok_or(Reason::Expired)
}

fn digest_of(principal: &Principal) -> Digest {
    Digest::of("session principal", &[principal.as_str().as_bytes()])
}

fn flags_of(capabilities: &ClientCapabilities) -> u8 {
    let (sampling, elicitation) = (&capabilities.sampling, &capabilities.elicitation);
    let flags = [
        (capabilities.roots.is_some(), flag::ROOTS),
        (sampling.is_some(), flag::SAMPLING),
        (sampling.as_ref().is_some_and(|own| own.context.is_some()), flag::SAMPLING_CONTEXT),
        (sampling.as_ref().is_some_and(|own| own.tools.is_some()), flag::SAMPLING_TOOLS),
        (elicitation.is_some(), flag::ELICITATION),
        (elicitation.as_ref().is_some_and(|own| own.form.is_some()), flag::ELICITATION_FORM),
        (elicitation.as_ref().is_some_and(|own| own.url.is_some()), flag::ELICITATION_URL),
    ];
    flags.into_iter().filter(|(declared, _)| *declared).fold(0, |all, (_, flag)| all | flag)
}

fn capabilities_of(flags: u8) -> ClientCapabilities {
    let has = |flag| flags & flag != 0;
    let part = |flag| has(flag).then(JsonObject::new);
    ClientCapabilities {
        roots: has(flag::ROOTS).then(RootsCapability::default),
        sampling: has(flag::SAMPLING).then(|| SamplingCapability {
            context: part(flag::SAMPLING_CONTEXT),
            tools: part(flag::SAMPLING_TOOLS),
        }),
        elicitation: has(flag::ELICITATION).then(|| ElicitationCapability {
            form: part(flag::ELICITATION_FORM),
            url: part(flag::ELICITATION_URL),
        }),
        ..ClientCapabilities::default()
    }
}

fn text(rest: &mut &[u8]) -> Result<String, Reason> {
    let length = usize::from(u16::from_le_bytes(take(rest)?));
    let (text, tail) = rest.split_at_checked(length).ok_or(Reason::Malformed)?;
    *rest = tail;
    String::from_utf8(text.to_vec()).map_err(|_| Reason::Malformed)
}

fn take<const N: usize>(rest: &mut &[u8]) -> Result<[u8; N], Reason> {
    let (head, tail) = rest.split_first_chunk().ok_or(Reason::Malformed)?;
    *rest = tail;
    Ok(*head)
}

#[cfg(test)]
mod tests;
