//! Versions of tokens: what each is bound to, and which open.

use super::codecs::now;
use super::*;

/// The usual call, from an OAuth client.
fn through(client: Option<&str>) -> Binding {
    call().through(client.map(|client| Binding::client("https://login.example", client)))
}

fn sealed(version: TokenVersion, client: Option<&str>) -> String {
    let claims = Claims::begin(FlowId::new([9; 16]), through(client), at(0), DEFAULT_TTL);
    seal(&ring([1]), &Claims { version, ..claims }, b"journal")
}

fn opened(token: &str, client: Option<&str>) -> Result<Opened, Reason> {
    let opened = ring([1]).open(token, &through(client), at(0), &TokenLimits::default());
    opened.map_err(|rejected| rejected.reason)
}

/// S4: a token of the second version opens for the OAuth client that it was made through, and for no other; that there is none counts
/// as well.
#[test]
fn the_second_version_is_bound_to_the_client() {
    let clients = [None, Some("agent"), Some("browser"), Some("")];
    for made in clients {
        let token = sealed(TokenVersion::V2, made);
        for shown in clients {
            let reason = opened(&token, shown).err();
            assert_eq!(reason, (made != shown).then_some(Reason::WrongClient), "{made:?} {shown:?}");
        }
    }
    let elsewhere = call().through(Some(Binding::client("https://other.example", "agent")));
    let token = sealed(TokenVersion::V2, Some("agent"));
    let refused = ring([1]).open(&token, &elsewhere, at(0), &TokenLimits::default());
    assert_eq!(refused.err().map(|rejected| rejected.reason), Some(Reason::WrongClient));
}

/// S4: a token of the first version has no client, and opens in each. Its flow has the client that presents it from then on.
#[test]
fn the_first_version_is_bound_to_no_client() {
    let token = sealed(TokenVersion::V1, Some("agent"));
    assert_eq!(token, sealed(TokenVersion::V1, None), "its bytes are those of before");
    let claims = opened(&token, Some("browser")).unwrap().claims;
    assert_eq!((claims.version, claims.binding), (TokenVersion::V1, through(Some("browser"))));
    let next = Claims { version: TokenVersion::V2, ..claims.next_round(at(0), DEFAULT_TTL) };
    let next = seal(&ring([1]), &next, b"");
    assert_eq!(opened(&next, Some("agent")).err(), Some(Reason::WrongClient));
    assert!(opened(&next, Some("browser")).is_ok());
}

/// S4: a sealer writes the first version unless it is set otherwise, and a flow never goes back to an older one.
#[test]
fn a_flow_keeps_the_later_version() {
    let of = |version| Sealer::new(ring([1])).version(version);
    let (plain, first, second) = (Sealer::new(ring([1])), of(TokenVersion::V1), of(TokenVersion::V2));
    for (sealer, before, after) in [
        (&plain, TokenVersion::V1, TokenVersion::V1),
        (&first, TokenVersion::V2, TokenVersion::V2),
        (&second, TokenVersion::V1, TokenVersion::V2),
    ] {
        let token = now(sealer.seal(&Claims { version: before, ..claims() }, b"", [3; 24])).unwrap();
        assert_eq!(now(plain.open(&token, &call(), at(0))).unwrap().claims.version, after);
    }
}
