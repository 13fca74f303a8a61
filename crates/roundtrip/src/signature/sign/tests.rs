//! Tests of private keys. The files in `keys` were made by OpenSSL, and unlock nothing.

use aws_lc_rs::signature::{self as aws, UnparsedPublicKey};
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use roundtrip_core::auth::sign_jwt;
use serde_json::json;

use super::*;

const RSA_MODULUS: &str = "uwiayB4n12Yn3no9PLdx61O3sqNjhrEm7YcsQ0m_FAgV5sHOQh4eT0XkfwVufIBAIowGj95EE-mDZMOLfLHDz24SKCB3fCu7JCvg\
             3b_SUMWCgbh4rYzvYGO7-xb-MzlrFu38jaCXd_zgMYZwi_Jmyv2iP3Ku8DZ2HfhlmoL8qRofjUBjUwKIVUzIOzulM_vDyAO7PiXQ\
             O4EbXiOz6fH4qFB1g2EBYji93zLOKmMpODwx-sc-1LtBbcM3-neOa8WRgy-NC_B4sC_i7Z__oNbDZBMkvEw1wepQihgkmmJvLRjb\
             olzBo3gzVWMsLizk3BN59PiJv6pSEmvVVsUVCRV0sQ";
/// Signature over `a.b` by OpenSSL.
const RSA_SIGNATURE: &str = "qJ5iyb8bQFLAEbuRMhMprP4LivAViqpH3frgYgJtOycnWuh2QWrh6xP8XIzCoysthSutXK3MoGDOAL4P_R7cVy5zRqbp_tI1ai-s\
             a6EdoKdAhB-CbtMT7Cf8CIVEBk-MDBkcIHqoBPx1ryZ5lFvPMsoaf6TcW20zSoVTOKdznlvuW-g9oJgEn-5CnqukYehbUrKHBxfJ\
             S-CX0KipgztbE4IrAUJe1bxt4_r5m9Uw23Gp6N2Aw3c-PQixNnC3wlVn0VfKghXisaoFNv4kYZpVE9A4BE_eGOfVCXsUDWOBX8yU\
             lHi6QXP7YzSwamNgnMETbEdBip-5v8uqH__EzbKYcQ";
const P256_X: &str = "o-mG2wrNreE8oWG02sH2U-_Mxj9-yFoEEEAmLklFg5w";
const P256_Y: &str = "_5d2Aubx4C8wYpVgIrl_Id1j3HP7s2FOwEZPymrwzfI";

fn text(bytes: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

fn bytes(text: &str) -> Vec<u8> {
    URL_SAFE_NO_PAD.decode(text).unwrap()
}

fn read(pem: &str) -> PrivateKey {
    PrivateKey::from_pem(pem).unwrap()
}

/// Verifies a signature by elliptic curve.
fn verify_ec(key: &PrivateKey, kind: &'static aws::EcdsaVerificationAlgorithm, signature: &[u8]) {
    let PublicKey::Ec { x, y, .. } = key.public_key() else { panic!("another kind") };
    let point = [vec![4], bytes(&x), bytes(&y)].concat();
    UnparsedPublicKey::new(kind, point).verify(b"a.b", signature).unwrap();
}

/// O78: keys on both curves are read in both formats, and sign as RFC 7518 has it.
#[test]
fn elliptic_keys_are_read_and_sign() {
    for pem in [include_str!("keys/p256-sec1.pem"), include_str!("keys/p256-pkcs8.pem")] {
        let key = read(pem);
        assert_eq!(Signer::algorithm(&key), Algorithm::ES256);
        let (crv, x, y) = ("P-256".to_owned(), P256_X.to_owned(), P256_Y.to_owned());
        assert_eq!(key.public_key(), PublicKey::Ec { crv, x, y });
        let signature = key.sign(b"a.b").unwrap();
        assert_eq!(signature.len(), 64);
        verify_ec(&key, &aws::ECDSA_P256_SHA256_FIXED, &signature);
    }
    let key = read(include_str!("keys/p384-sec1.pem"));
    assert_eq!(Signer::algorithm(&key), Algorithm::ES384);
    verify_ec(&key, &aws::ECDSA_P384_SHA384_FIXED, &key.sign(b"a.b").unwrap());
}

/// O78: the published signature by Ed25519 (RFC 8037, A.4).
#[test]
fn a_signature_by_ed25519_is_the_published_one() {
    let seed = bytes("nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A");
    let prefix = [0x30, 0x2e, 2, 1, 0, 0x30, 5, 6, 3, 0x2b, 0x65, 0x70, 4, 0x22, 4, 0x20];
    let der = STANDARD.encode([&prefix[..], &seed].concat());
    let key = read(&format!("-----BEGIN PRIVATE KEY-----\n{der}\n-----END PRIVATE KEY-----\n"));
    let x = "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo".to_owned();
    assert_eq!(key.public_key(), PublicKey::Okp { crv: "Ed25519".to_owned(), x });
    let signature = key.sign(b"eyJhbGciOiJFZERTQSJ9.RXhhbXBsZSBvZiBFZDI1NTE5IHNpZ25pbmc").unwrap();
    assert_eq!(
        text(&signature),
        "hgyY0il_MGCjP0JzlnLWG1PPOt7-09PGcvMg3AIbQR6dWbhijcNR4ki4iylGjg5BhVsPt9g7sVvpAr_MuM0KAg"
    );
    assert_eq!(Signer::algorithm(&read(include_str!("keys/ed-pkcs8.pem"))), Algorithm::EdDSA);
}

/// O78: RSA keys are read in both formats, sign as OpenSSL does, and by PSS where that is chosen.
#[test]
fn rsa_keys_are_read_and_sign() {
    for pem in [include_str!("keys/rsa-pkcs1.pem"), include_str!("keys/rsa-pkcs8.pem")] {
        let key = read(pem);
        let (n, e) = (RSA_MODULUS.to_owned(), "AQAB".to_owned());
        assert_eq!(key.public_key(), PublicKey::Rsa { n, e });
        assert_eq!(text(&key.sign(b"a.b").unwrap()), RSA_SIGNATURE);
        let key = key.algorithm(Algorithm::PS256).unwrap();
        let numbers = aws::RsaPublicKeyComponents { n: bytes(RSA_MODULUS), e: bytes("AQAB") };
        numbers.verify(&aws::RSA_PSS_2048_8192_SHA256, b"a.b", &key.sign(b"a.b").unwrap()).unwrap();
        assert_eq!(key.algorithm(Algorithm::ES256).err(), Some(KeyError::Algorithm));
    }
}

/// O78: a text that is no usable key says what it is, and shows nothing of it.
#[test]
fn other_texts_say_what_they_are() {
    let pem = include_str!("keys/p256-pkcs8.pem");
    for (text, expected) in [
        ("", KeyError::NoKey),
        ("secret", KeyError::NoKey),
        (include_str!("keys/p256-pub.pem"), KeyError::Public),
        ("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", KeyError::Public),
        (include_str!("keys/p256-enc.pem"), KeyError::Encrypted),
        ("-----BEGIN OPENSSH PRIVATE KEY-----\nAAAA\n-----END OPENSSH PRIVATE KEY-----\n", KeyError::OpenSsh),
        (&pem[..pem.len() - 20], KeyError::Damaged),
        (&pem.replace('M', "!"), KeyError::Damaged),
        (include_str!("keys/k1-sec1.pem"), KeyError::Unsupported),
        (include_str!("keys/rsa-1024.pem"), KeyError::Unsupported),
        (&pem.replace('M', "N"), KeyError::Unsupported),
    ] {
        assert_eq!(PrivateKey::from_pem(text).err(), Some(expected), "{text}");
    }
    let shown = format!("{:?}", read(pem).key_id("k"));
    assert_eq!(shown, r#"PrivateKey { algorithm: "ES256", id: Some("k"), .. }"#);
}

/// O96: a key that was made is a new one each time, and the same after it was stored.
#[test]
fn a_made_key_survives_being_stored() {
    let key = PrivateKey::generate().unwrap();
    assert_ne!(key.public_key(), PrivateKey::generate().unwrap().public_key());
    for key in [key, read(include_str!("keys/ed-pkcs8.pem")), read(include_str!("keys/rsa-pkcs8.pem"))] {
        let stored = read(key.to_pem().unwrap().expose());
        assert_eq!(stored.public_key().thumbprint(), key.public_key().thumbprint());
    }
    let token = sign_jwt(&PrivateKey::generate().unwrap().key_id("k1"), &json!({}), &json!({})).unwrap();
    assert!(token.starts_with(&text(br#"{"alg":"ES256","kid":"k1"}"#)), "{token}");
}
