//! Vectors of RFC 7515, RFC 7520 and RFC 8037, and signatures that were tampered with.

use roundtrip_core::auth::Jwt;

use super::*;

const RFC7515_N: &str = "ofgWCuLjybRlzo0tZWJjNiuSfb4p4fAkd_wWJcyQoTbji9k0l8W26mPddxHmfHQp-Vaw-4qPCJrcS2mJPMEzP1Pt0Bm4d4Ql\
    L-yRT-SFd2lZS-pCgNMsD1W_YpRPEwOWvG6b32690r2jZ47soMZo9wGzjb_7OMg0LOL-bSf63kpaSHSXndS5z5rexMdbBYUsLA9e-KXBdQOS-UTo\
    7WTBEMa2R2CapHg665xsmtdVMTBQY4uDZlxvb3qCo5ZwKh9kG4LT6_I5IhlJH7aGhyxXFvUK-DWNmoudF8NAco9_h9iaGNj8q2ethFkMLs91kzk2\
    PAcDTW9gb54h4FRWyuXpoQ";
const RFC7515_RS256: &str = "eyJhbGciOiJSUzI1NiJ9.eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS\
    9pc19yb290Ijp0cnVlfQ.cC4hiUPoj9Eetdgtv3hF80EGrhuB__dzERat0XF9g2VtQgr9PJbu3XOiZj5RZmh7AAuHIm4Bh-0Qc_lF5YKt_O8W2Fp5j\
    ujGbds9uJdbF9CUAr7t1dnZcAcQjbKBYNX4BAynRFdiuB--f_nZLgrnbyTyWzO75vRK5h6xBArLIARNPvkSjtQBMHlb1L07Qe7K0GarZRmB_eSN93\
    83LcOLn6_dO--xi12jzDwusC-eOkHWEsqtFZESc6BfI7noOPqvhJ1phCnvWh6IeYI2w9QOYEUipUTI8np6LbgGY9Fs98rqVt5AXLIhWkWywlVmtVrB\
    p0igcN_IoypGlUPQGe77Rw";
const RFC7515_ES256: &str = "eyJhbGciOiJFUzI1NiJ9.eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS\
    9pc19yb290Ijp0cnVlfQ.DtEhU3ljbEg8L38VWAfUAqOyKAM6-Xx-F4GawxaepmXFCgfTjDxw5djxLa8ISlSApmWQxfKTUJqPP3-Kg6NU1Q";
const RFC7520_N: &str = "n4EPtAOCc9AlkeQHPzHStgAbgs7bTZLwUBZdR8_KuKPEHLd4rHVTeT-O-XV2jRojdNhxJWTDvNd7nqQ0VEiZQHz_AJmSCpMa\
    JMRBSFKrKb2wqVwGU_NsYOYL-QtiWN2lbzcEe6XC0dApr5ydQLrHqkHHig3RBordaZ6Aj-oBHqFEHYpPe7Tpe-OfVfHd1E6cS6M1FZcD1NNLYD5lF\
    HpPI9bTwJlsde3uhGqC0ZCuEHg8lhzwOHrtIQbS0FVbb9k3-tVTU4fg_3L_vniUFAKwuCLqKnS2BYwdq_mzSnbLY7h_qixoR7jig3__kRhuaxwUkR\
    z5iaiQkqgc5gHdrNP5zw";
const RFC7520_PS384: &str = "eyJhbGciOiJQUzM4NCIsImtpZCI6ImJpbGJvLmJhZ2dpbnNAaG9iYml0b24uZXhhbXBsZSJ9.SXTigJlzIGEgZGFuZ2Vyb\
    3VzIGJ1c2luZXNzLCBGcm9kbywgZ29pbmcgb3V0IHlvdXIgZG9vci4gWW91IHN0ZXAgb250byB0aGUgcm9hZCwgYW5kIGlmIHlvdSBkb24ndCBrZW\
    VwIHlvdXIgZmVldCwgdGhlcmXigJlzIG5vIGtub3dpbmcgd2hlcmUgeW91IG1pZ2h0IGJlIHN3ZXB0IG9mZiB0by4.cu22eBqkYDKgIlTpzDXGvaF\
    fz6WGoz7fUDcfT0kkOy42miAh2qyBzk1xEsnk2IpN6-tPid6VrklHkqsGqDqHCdP6O8TTB5dDDItllVo6_1OLPpcbUrhiUSMxbbXUvdvWXzg-UD8b\
    iiReQFlfz28zGWVsdiNAUf8ZnyPEgVFn442ZdNqiVJRmBqrYRXe8P_ijQ7p8Vdz0TTrxUeT3lm8d9shnr2lfJT8ImUjvAA2Xez2Mlp8cBE5awDzT0q\
    I0n6uiP1aCN_2_jLAeQTlqRHtfa64QQSUmFAAjVKPbByi7xho0uTOcbH510a6GYmJUAfmWjwZ6oD4ifKo8DYM-X72Eaw";
const RFC8037_EDDSA: &str = "eyJhbGciOiJFZERTQSJ9.RXhhbXBsZSBvZiBFZDI1NTE5IHNpZ25pbmc.hgyY0il_MGCjP0JzlnLWG1PPOt7-09PGcvMg3A\
    IbQR6dWbhijcNR4ki4iylGjg5BhVsPt9g7sVvpAr_MuM0KAg";
/// A key of 1024 bits, and its good signature of the text `signed`.
const SHORT_N: &str = "xCSYZTD2-U1Ra-8TG1gcQIuM_gNKmBzeVImI5xoqmZgDxXZamG5n2turC-UzO_uBPMAxlED-1dNqY76Ex4b9pcuUInAgQeJQjAADF\
    1b4X9rCjB-jtZLav-ir9sJzuoK5lFr2Iq-LBfwg5Lf4IFx9jgndgBvpKMXRhX4jRBPO-_M";
const SHORT_SIGNATURE: &str = "UoGKuDNPVzFaIf-e5EHmNxsxScGsIr04LX11K9imjPivr_b4wS1Fy5ZfaQMlHRvBbT6pZZz0NflRXPmruuYpLFchSQAUk\
    WYSWoaaOj_MZSrMTHHZAa5sEJzcqbtvmPCswHCHjHqb_fJqsP_-y3ilnBwT_CnlsbPyVjs0AFYhAIs";

fn rsa_key(n: &str) -> PublicKey {
    PublicKey::Rsa { n: n.to_owned(), e: "AQAB".to_owned() }
}

fn ec_key() -> PublicKey {
    PublicKey::Ec {
        crv: "P-256".to_owned(),
        x: "f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU".to_owned(),
        y: "x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0".to_owned(),
    }
}

fn ed_key() -> PublicKey {
    let x = "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo".to_owned();
    PublicKey::Okp { crv: "Ed25519".to_owned(), x }
}

fn vectors() -> [(PublicKey, Jwt<'static>); 4] {
    [
        (rsa_key(RFC7515_N), RFC7515_RS256),
        (ec_key(), RFC7515_ES256),
        (rsa_key(RFC7520_N), RFC7520_PS384),
        (ed_key(), RFC8037_EDDSA),
    ]
    .map(|(key, token)| (key, Jwt::parse(token).unwrap()))
}

/// O21: the signatures of RFC 7515, RFC 7520 and RFC 8037 are good, each by its own key alone.
#[test]
fn the_vectors_of_the_standards_are_good() {
    for (at, (_, token)) in vectors().iter().enumerate() {
        for (other, (key, _)) in vectors().iter().enumerate() {
            let good = verify(key, token.header().algorithm, token.signed(), token.signature());
            assert_eq!(good, at == other, "{token:?} by {key:?}");
        }
    }
}

/// O21: a signature that was tampered with is bad: another byte, message, length or algorithm.
#[test]
fn tampered_signatures_are_bad() {
    for (key, token) in vectors() {
        let (algorithm, signature) = (token.header().algorithm, token.signature());
        for at in [0, signature.len() / 2, signature.len() - 1] {
            let mut other = signature.to_vec();
            other[at] ^= 1;
            assert!(!verify(&key, algorithm, token.signed(), &other), "{token:?}");
        }
        let longer = [signature, &[0]].concat();
        for other in [&[][..], &signature[1..], &signature[..signature.len() - 1], &longer] {
            assert!(!verify(&key, algorithm, token.signed(), other), "{token:?}");
        }
        assert!(!verify(&key, algorithm, &token.signed()[1..], signature));
        for other in
            [Algorithm::RS256, Algorithm::RS384, Algorithm::PS256, Algorithm::ES384, Algorithm::EdDSA]
        {
            let good = verify(&key, other, token.signed(), signature);
            assert_eq!(good, other == algorithm, "{token:?} as {other:?}");
        }
    }
}

/// O21: the signature of all zeros, which a broken check of ECDSA takes for any message, is bad.
#[test]
fn a_signature_of_zeros_is_bad() {
    assert!(!verify(&ec_key(), Algorithm::ES256, b"anything", &[0; 64]));
    assert!(!verify(&ed_key(), Algorithm::EdDSA, b"anything", &[0; 64]));
}

/// O21: an RSA key of less than 2048 bits signs nothing, and its signature is good otherwise.
#[test]
fn short_rsa_keys_are_refused() {
    let signature = decode(SHORT_SIGNATURE).unwrap();
    assert!(!verify(&rsa_key(SHORT_N), Algorithm::RS256, b"signed", &signature));
    let key = signature::RsaPublicKeyComponents { n: decode(SHORT_N).unwrap(), e: vec![1, 0, 1] };
    let any_size = &signature::RSA_PKCS1_1024_8192_SHA256_FOR_LEGACY_USE_ONLY;
    assert!(key.verify(any_size, b"signed", &signature).is_ok());
}

#[test]
fn numbers_with_a_zero_in_front_are_read() {
    let token = Jwt::parse(RFC7515_RS256).unwrap();
    let padded = URL_SAFE_NO_PAD.encode([&[0], decode(RFC7515_N).unwrap().as_slice()].concat());
    assert!(verify(&rsa_key(&padded), Algorithm::RS256, token.signed(), token.signature()));
}

#[test]
fn keys_that_are_none_verify_nothing() {
    let ec = |x: &str, y: &str| PublicKey::Ec { crv: "P-256".to_owned(), x: x.to_owned(), y: y.to_owned() };
    let ed = |x: &str| PublicKey::Okp { crv: "Ed25519".to_owned(), x: x.to_owned() };
    let zeros = URL_SAFE_NO_PAD.encode([0; 32]);
    for key in
        [ec("", ""), ec("AA", "AA"), ec(&zeros, &zeros), ec("\u{e9}", "!"), ed(""), ed("AA"), rsa_key("")]
    {
        for (_, token) in vectors() {
            assert!(!verify(&key, token.header().algorithm, token.signed(), token.signature()), "{key:?}");
        }
    }
}
