//! The seal against the requirements: what opens, what must not, and what the client is told.

#[cfg(test)]
mod arguments;
#[cfg(test)]
mod bindings;
#[cfg(test)]
mod codecs;
#[cfg(test)]
mod keys;
#[cfg(test)]
mod tokens;
#[cfg(test)]
mod versions;

#[cfg(test)]
use roundtrip_core::seal::*;

/// A moment to count from.
#[cfg(test)]
const NOON: u64 = 1_785_000_000;

#[cfg(test)]
fn at(seconds_after_noon: i64) -> Timestamp {
    Timestamp::from_unix(NOON.saturating_add_signed(seconds_after_noon))
}

#[cfg(test)]
fn key(byte: u8) -> Key {
    Key::generate([byte; 32])
}

#[cfg(test)]
fn ring<const N: usize>(keys: [u8; N]) -> Keyring {
    Keyring::new(keys.map(key)).unwrap()
}

/// The call that most tests make.
#[cfg(test)]
fn parts() -> BindingParts<'static> {
    BindingParts {
        audience: "bookings",
        method: "tools/call",
        target: "book_table",
        arguments: digest_arguments(Some(r#"{"restaurant":"Nopa","people":2}"#)).unwrap(),
        principal: Some("alice"),
    }
}

#[cfg(test)]
fn call() -> Binding {
    Binding::new(parts())
}

#[cfg(test)]
fn claims() -> Claims {
    Claims::begin(FlowId::new([9; 16]), call(), at(0), DEFAULT_TTL)
}

#[cfg(test)]
fn seal(keyring: &Keyring, claims: &Claims, payload: &[u8]) -> String {
    keyring.seal(claims, payload, [3; 24], &TokenLimits::default()).unwrap()
}

/// Opens a token at noon with the usual call.
#[cfg(test)]
fn open(keyring: &Keyring, token: &str) -> Result<Opened, Reason> {
    keyring.open(token, &call(), at(0), &TokenLimits::default()).map_err(|rejected| rejected.reason)
}
