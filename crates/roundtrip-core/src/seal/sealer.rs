//! Sealing and opening with a key ring or a codec.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use base64_simd::URL_SAFE_NO_PAD;

use super::token::{BY_CODEC, admit, decode, fits};
use super::{
    Binding, CLOCK_SKEW, Claims, Codec, Keyring, Opened, Rejected, SealError, Timestamp, TokenLimits,
    TokenVersion, claims,
};

/// Associated data for codecs; the last byte is the token's version.
const ASSOCIATED: &[u8] = b"roundtrip/request-state/\x02";

/// Seals and opens with a key ring or a codec.
///
/// With a key ring nothing is waited for and nothing boxed: the futures are ready when first polled.
#[derive(Clone)]
pub struct Sealer {
    by: By,
    limits: TokenLimits,
    version: TokenVersion,
}

#[derive(Clone)]
enum By {
    Keyring(Keyring),
    Codec(Arc<dyn Codec>),
}

impl Sealer {
    /// Creates a sealer with a key ring.
    pub fn new(keyring: Keyring) -> Self {
        Self::by(By::Keyring(keyring))
    }

    /// Creates a sealer with a codec.
    pub fn with_codec(codec: impl Codec + 'static) -> Self {
        Self::by(By::Codec(Arc::new(codec)))
    }

    fn by(by: By) -> Self {
        Self { by, limits: TokenLimits::default(), version: TokenVersion::default() }
    }

    /// Sets the version of the tokens that it makes. A flow that has a later version keeps that. The default is the first.
    ///
    /// ```
    /// use roundtrip_core::seal::{Key, Keyring, Sealer, TokenVersion};
    ///
    /// # fn main() -> Result<(), roundtrip_core::seal::KeyringError> {
    /// let keys = Keyring::new([Key::generate([7; 32])])?;   // random bytes, in earnest
    /// let sealer = Sealer::new(keys).version(TokenVersion::V2);
    /// assert_eq!(sealer.writes(), TokenVersion::V2);
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn version(mut self, version: TokenVersion) -> Self {
        self.version = version;
        self
    }

    /// Returns the version of the tokens that it makes.
    pub fn writes(&self) -> TokenVersion {
        self.version
    }

    /// Sets the limits on tokens.
    #[must_use]
    pub fn limits(mut self, limits: TokenLimits) -> Self {
        self.limits = limits;
        self
    }

    /// Returns the limits on tokens.
    pub fn allowed(&self) -> &TokenLimits {
        &self.limits
    }

    /// Returns the difference of clocks that is allowed for when a token is opened.
    pub fn clock_skew(&self) -> Duration {
        match &self.by {
            By::Keyring(keyring) => keyring.clock_skew(&self.limits),
            By::Codec(_) => self.limits.clock_skew.unwrap_or(CLOCK_SKEW),
        }
    }

    /// Seals a flow's state. The nonce must be random; a codec has its own and ignores it.
    ///
    /// # Errors
    /// Fails if the token would be longer than allowed, or the codec fails.
    pub async fn seal(&self, claims: &Claims, payload: &[u8], nonce: [u8; 24]) -> Result<String, SealError> {
        let claims = &Claims { version: claims.version.max(self.version), ..*claims };
        let codec = match &self.by {
            By::Keyring(keyring) => return keyring.seal(claims, payload, nonce, &self.limits),
            By::Codec(codec) => codec,
        };
        let mut plain = Vec::with_capacity(claims::MAX_LEN + payload.len());
        claims.encode(&mut plain);
        plain.extend_from_slice(payload);
        let sealed = codec.seal(&plain, ASSOCIATED).await.map_err(SealError::Codec)?;
        fits(1 + sealed.len(), &self.limits)?;
        let mut bytes = Vec::with_capacity(1 + sealed.len());
        bytes.push(BY_CODEC);
        bytes.extend_from_slice(&sealed);
        Ok(URL_SAFE_NO_PAD.encode_to_string(bytes))
    }

    /// Returns the key ring, if other processes may have its keys too: `None` with a codec, and with random keys of this process.
    pub fn shared_keyring(&self) -> Option<&Keyring> {
        match &self.by {
            By::Keyring(keyring) if !keyring.is_single_process() => Some(keyring),
            By::Keyring(_) | By::Codec(_) => None,
        }
    }

    /// Returns whether sealing is done at once, because there is no codec to wait for.
    pub fn seals_now(&self) -> bool {
        matches!(self.by, By::Keyring(_))
    }

    /// Opens a token at once, as [`open`](Self::open) does; `None` where a codec has to be waited for.
    pub fn open_now(
        &self,
        token: &str,
        expected: &Binding,
        now: Timestamp,
    ) -> Option<Result<Opened, Rejected>> {
        match &self.by {
            By::Keyring(keyring) => Some(keyring.open(token, expected, now, &self.limits)),
            By::Codec(_) => None,
        }
    }

    /// Opens a `requestState` and checks its claims against the call described by `expected`.
    ///
    /// # Errors
    /// Fails if it does not open, belongs to another call, or is not valid now.
    pub async fn open(&self, token: &str, expected: &Binding, now: Timestamp) -> Result<Opened, Rejected> {
        let codec = match &self.by {
            By::Keyring(keyring) => return keyring.open(token, expected, now, &self.limits),
            By::Codec(codec) => codec,
        };
        let by_codec = |version| (version == BY_CODEC).then_some(());
        let (bytes, ()) = decode(token, &self.limits, by_codec)?;
        let sealed = bytes.get(1..).unwrap_or_default();
        let plain = codec.open(sealed, ASSOCIATED).await.map_err(Rejected::by_codec)?;
        Ok(admit(plain, 0, expected, now, (self.limits.max_flow_age, self.clock_skew()))?)
    }
}

impl From<Keyring> for Sealer {
    fn from(keyring: Keyring) -> Self {
        Self::new(keyring)
    }
}

impl fmt::Debug for Sealer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Sealer");
        match &self.by {
            By::Keyring(keyring) => shown.field("by", keyring),
            By::Codec(_) => shown.field("by", &format_args!("codec")),
        };
        shown.field("limits", &self.limits).field("version", &self.version).finish()
    }
}
