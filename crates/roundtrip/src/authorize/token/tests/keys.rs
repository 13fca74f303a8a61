//! Keys: found, cached, rotated, and kept through an outage.

use serde_json::json;
use tokio::task::JoinSet;
use tokio::time::advance;

use super::*;

const MINUTE: Duration = Duration::from_secs(61);
const HOUR: Duration = Duration::from_secs(60 * 60);

fn with_kid(token: &str, kid: &str) -> String {
    use base64::Engine as _;
    let header = json!({ "alg": "ES256", "typ": "at+jwt", "kid": kid }).to_string();
    let header = base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(header);
    format!("{header}{}", &token[token.find('.').unwrap()..])
}

/// O23: keys come from the metadata of the issuer, and are fetched once.
#[tokio::test]
async fn keys_are_found_through_the_metadata() {
    let issuer = issuer();
    let checker = checker(&issuer);
    for subject in ["alice", "bob"] {
        assert!(checker.check(&issuer.token(subject).sign()).await.is_ok());
    }
    assert_eq!((issuer.metadata_fetches(), issuer.key_fetches()), (1, 1));
}

/// O23: metadata is asked for where RFC 8414 has it, then where OpenID Connect has it, and counts only for its own issuer.
#[tokio::test]
async fn metadata_is_of_the_issuer_or_not_used() {
    let issuer = issuer();
    let keys = issuer.published_keys().to_string();
    let metadata = |name: &str| json!({ "issuer": name, "jwks_uri": "https://keys.example/all" }).to_string();
    let oauth = "https://login.example/.well-known/oauth-authorization-server/tenant1";
    let (inserted, appended) = (
        "https://login.example/.well-known/openid-configuration/tenant1",
        "https://login.example/tenant1/.well-known/openid-configuration",
    );
    let all = "https://keys.example/all";
    let token = alice(&issuer).sign();
    for (name, found) in
        [(ISSUER, true), ("https://login.example/tenant1/", false), ("https://login.example", false)]
    {
        let fetch = Scripted::new([
            (oauth, 200, metadata("https://login.example/tenant2")),
            (appended, 200, metadata(name)),
            (all, 200, keys.clone()),
        ]);
        let settings = CheckerSettings { fetch: Some(Arc::clone(&fetch) as _), ..settings(&issuer) };
        let checked = TokenChecker::new(settings).check(&token).await;
        let asked =
            if found { vec![oauth, inserted, appended, all] } else { vec![oauth, inserted, appended] };
        assert_eq!(fetch.asked(), asked, "{name}");
        assert_eq!(checked.err(), (!found).then_some(CheckError::Unavailable), "{name}");
    }
}

/// O23: a URL of keys that the author named needs no metadata.
#[tokio::test]
async fn a_configured_url_needs_no_metadata() {
    let issuer = issuer();
    let mut settings = settings(&issuer);
    settings.issuers[0].jwks = Some(issuer.jwks_uri());
    assert!(TokenChecker::new(settings).check(&alice(&issuer).sign()).await.is_ok());
    assert_eq!((issuer.metadata_fetches(), issuer.key_fetches()), (0, 1));
}

/// O24: a hundred first requests make one fetch.
#[tokio::test]
async fn keys_are_fetched_once_at_a_time() {
    let issuer = issuer();
    let checker = checker(&issuer);
    issuer.hold();
    let mut requests = JoinSet::new();
    for number in 0..100 {
        let (checker, token) = (Arc::clone(&checker), issuer.token(format!("user {number}")).sign());
        requests.spawn(async move { checker.check(&token).await.is_ok() });
    }
    settle().await;
    issuer.start();
    assert!(requests.join_all().await.into_iter().all(|good| good));
    assert_eq!((issuer.metadata_fetches(), issuer.key_fetches()), (1, 1));
}

/// O24: a fetch goes on when the request that began it is dropped.
#[tokio::test]
async fn a_fetch_survives_the_request_that_began_it() {
    let issuer = issuer();
    let checker = checker(&issuer);
    let token = alice(&issuer).sign();
    issuer.hold();
    let request = tokio::spawn({
        let (checker, token) = (Arc::clone(&checker), token.clone());
        async move { checker.check(&token).await.is_ok() }
    });
    settle().await;
    assert_eq!(issuer.metadata_fetches(), 1);
    request.abort();
    assert!(request.await.unwrap_err().is_cancelled());
    issuer.start();
    settle().await;
    assert!(checker.check_now(&token).unwrap().is_ok());
    assert_eq!((issuer.metadata_fetches(), issuer.key_fetches()), (1, 1));
}

/// O24: a fetch that ends with its runtime does not keep the next one from beginning.
#[test]
fn a_fetch_may_end_with_its_runtime() {
    let runtime = || tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let issuer = issuer();
    let checker = checker(&issuer);
    let token = alice(&issuer).sign();
    issuer.hold();
    let first = runtime();
    first.block_on(async {
        tokio::select! {
            biased;
            checked = checker.check(&token) => panic!("{checked:?}"),
            () = settle() => {}
        }
        assert_eq!(issuer.metadata_fetches(), 1);
    });
    drop(first);
    issuer.start();
    assert_eq!(
        checker.check_now(&token).unwrap().unwrap_err(),
        CheckError::Unavailable,
        "it has just failed"
    );
    let later = runtime();
    later.block_on(async {
        tokio::time::pause();
        advance(Duration::from_secs(6)).await;
        assert!(checker.check(&token).await.is_ok());
    });
}

/// O24: tokens with invented `kid`s, however many, make five fetches a minute.
#[tokio::test(start_paused = true)]
async fn invented_key_ids_make_five_fetches_a_minute() {
    let issuer = issuer();
    let checker = checker(&issuer);
    let token = alice(&issuer).sign();
    assert!(checker.check(&token).await.is_ok());
    for second in 1..=120 {
        advance(Duration::from_secs(1)).await;
        for number in 0..100 {
            let forged = with_kid(&token, &format!("invented-{second}-{number}"));
            assert_eq!(refusal(&checker, &forged).await, TokenRefusal::UnknownKey);
        }
    }
    assert_eq!(issuer.key_fetches(), 1 + 10);
}

/// O24: a stranger that invents `kid`s all the time keeps tokens of a new key out for twelve seconds at most.
#[tokio::test(start_paused = true)]
async fn invented_key_ids_do_not_make_a_rotation_an_outage() {
    let issuer = issuer();
    let checker = checker(&issuer);
    assert!(checker.check(&alice(&issuer).sign()).await.is_ok());
    advance(MINUTE).await;
    let forged = with_kid(&alice(&issuer).sign(), "invented");
    assert_eq!(refusal(&checker, &forged).await, TokenRefusal::UnknownKey);
    issuer.rotate().unwrap();
    let new = alice(&issuer).sign();
    advance(Duration::from_secs(12)).await;
    assert!(checker.check(&new).await.is_ok());
}

/// O24: tokens of a new key are accepted with one fetch, under load, and those of the old key meanwhile.
#[tokio::test(start_paused = true)]
async fn keys_rotate_under_load() {
    let issuer = issuer();
    let checker = checker(&issuer);
    assert!(checker.check(&alice(&issuer).sign()).await.is_ok());
    for rotation in 1..=3 {
        advance(MINUTE).await;
        let old = issuer.token("old").sign();
        issuer.rotate().unwrap();
        let mut requests = JoinSet::new();
        for number in 0..200 {
            let checker = Arc::clone(&checker);
            let token =
                if number % 4 == 0 { old.clone() } else { issuer.token(format!("user {number}")).sign() };
            requests.spawn(async move { checker.check(&token).await.is_ok() });
        }
        assert!(requests.join_all().await.into_iter().all(|good| good));
        assert_eq!(issuer.key_fetches(), 1 + rotation);
    }
}

/// O24: a token without `kid` by a key that is new is accepted, too.
#[tokio::test(start_paused = true)]
async fn keys_rotate_without_ids() {
    let issuer = issuer();
    let checker = checker(&issuer);
    let claims = |subject: &str| {
        json!({ "iss": ISSUER, "aud": RESOURCE, "sub": subject, "exp": 9_999_999_999_u64 }).to_string()
    };
    let header = r#"{"alg":"ES256","typ":"at+jwt"}"#;
    assert!(checker.check(&issuer.sign_raw(header, &claims("alice"))).await.is_ok());
    issuer.rotate().unwrap();
    let new = issuer.sign_raw(header, &claims("bob"));
    assert_eq!(refusal(&checker, &new).await, TokenRefusal::Signature, "a fetch has just been");
    advance(MINUTE).await;
    assert!(checker.check(&new).await.is_ok());
}

/// O24: a key that was withdrawn verifies nothing any more, and tokens remembered by it are forgotten.
#[tokio::test(start_paused = true)]
async fn withdrawn_keys_end() {
    let issuer = issuer();
    let checker = checker(&issuer);
    let old = alice(&issuer).sign();
    assert!(checker.check(&old).await.is_ok() && checker.check_now(&old).unwrap().is_ok());
    issuer.rotate().unwrap();
    issuer.withdraw_old_keys();
    advance(MINUTE).await;
    assert!(checker.check(&issuer.token("bob").sign()).await.is_ok());
    assert_eq!(refusal(&checker, &old).await, TokenRefusal::UnknownKey);
}

/// O24: keys are fetched again in the background, at the age that `Cache-Control` says, in bounds; no request waits.
#[tokio::test(start_paused = true)]
async fn keys_are_refreshed_in_the_background() {
    let day = HOUR * 24;
    for (said, age) in [(HOUR / 2, HOUR / 2), (Duration::ZERO, HOUR / 12), (day * 30, day)] {
        let issuer = issuer();
        issuer.set_max_age(said);
        let checker = checker(&issuer);
        assert!(checker.check(&alice(&issuer).sign()).await.is_ok());
        advance(age - Duration::from_secs(1)).await;
        assert!(checker.check_now(&issuer.token("bob").sign()).unwrap().is_ok());
        settle().await;
        assert_eq!(issuer.key_fetches(), 1, "{said:?}");
        advance(Duration::from_secs(2)).await;
        assert!(checker.check_now(&issuer.token("carol").sign()).unwrap().is_ok());
        settle().await;
        assert_eq!(issuer.key_fetches(), 2, "{said:?}");
    }
}

/// O25: an issuer that is down is no reason to refuse: without keys, tokens cannot be judged.
#[tokio::test(start_paused = true)]
async fn an_outage_without_keys_is_unavailable() {
    let issuer = issuer();
    let checker = checker(&issuer);
    let token = alice(&issuer).sign();
    issuer.stop();
    for _ in 0..100 {
        assert_eq!(checker.check(&token).await.unwrap_err(), CheckError::Unavailable);
    }
    assert_eq!(issuer.metadata_fetches(), 1, "the issuer is not flooded when it comes back");
    assert_eq!(refusal(&checker, "opaque").await, TokenRefusal::Malformed);
    issuer.start();
    advance(Duration::from_secs(5)).await;
    assert!(checker.check(&token).await.is_ok());
}

/// O24, O25: old keys are used while the issuer is down, for a day; a token by an unknown key is not refused meanwhile.
#[tokio::test(start_paused = true)]
async fn old_keys_serve_through_an_outage() {
    let issuer = issuer();
    let checker = checker(&issuer);
    assert!(checker.check(&alice(&issuer).sign()).await.is_ok());
    issuer.stop();
    for hours in 1..25 {
        advance(HOUR).await;
        let known = issuer.token(format!("user {hours}")).sign();
        assert!(checker.check(&known).await.is_ok(), "after {hours} hours");
        settle().await;
    }
    assert_eq!(issuer.key_fetches(), 1);
    assert!(issuer.metadata_fetches() > 20, "it was tried again");
    let unknown = with_kid(&alice(&issuer).sign(), "new");
    assert_eq!(checker.check(&unknown).await.unwrap_err(), CheckError::Unavailable);
    advance(HOUR * 2).await;
    let late = issuer.token("late").sign();
    assert_eq!(checker.check(&late).await.unwrap_err(), CheckError::Unavailable);
    issuer.start();
    advance(MINUTE).await;
    assert!(checker.check(&late).await.is_ok());
}

/// O25: a request does not wait for an issuer that does not answer longer than ten seconds.
#[tokio::test(start_paused = true)]
async fn waiting_has_an_end() {
    let issuer = issuer();
    let checker = checker(&issuer);
    issuer.hold();
    let began = tokio::time::Instant::now();
    let checked = checker.check(&alice(&issuer).sign()).await;
    assert_eq!(checked.unwrap_err(), CheckError::Unavailable);
    assert_eq!(began.elapsed().as_secs(), 10);
}

/// O25: keys that cannot be used are an outage, and the old ones stay.
#[tokio::test(start_paused = true)]
async fn bad_documents_are_an_outage() {
    let issuer = issuer();
    let url = issuer.jwks_uri();
    let symmetric = json!({ "keys": [{ "kty": "oct", "k": "AAAA" }] }).to_string();
    for (status, body) in [
        (200, "[]".to_owned()),
        (200, "{}".to_owned()),
        (200, json!({ "keys": [] }).to_string()),
        (200, symmetric),
        (200, "<html>".to_owned()),
        (302, issuer.published_keys().to_string()),
        (401, String::new()),
        (500, String::new()),
        (200, format!("{}{}", issuer.published_keys(), " ".repeat(70_000))),
    ] {
        let mut settings = settings(&issuer);
        settings.issuers[0].jwks = Some(url.clone());
        settings.fetch = Some(Scripted::new([(url.as_str(), status, body.clone())]));
        let checked = TokenChecker::new(settings).check(&alice(&issuer).sign()).await;
        assert_eq!(checked.unwrap_err(), CheckError::Unavailable, "{status} {}", &body[..body.len().min(40)]);
    }
}

/// O23: metadata cannot send the server to plain http or into a private network.
#[tokio::test]
async fn metadata_does_not_lead_into_private_networks() {
    let issuer = issuer();
    for url in [
        "http://keys.example/all",
        "https://127.0.0.1/all",
        "https://localhost/all",
        "https://10.0.0.1/all",
        "https://169.254.169.254/latest",
        "https://[::1]/all",
        "https://[fd00::1]/all",
        "file:///etc/passwd",
        "javascript:alert(1)",
    ] {
        let metadata = json!({ "issuer": ISSUER, "jwks_uri": url }).to_string();
        let at = "https://login.example/.well-known/oauth-authorization-server/tenant1";
        let fetch = Scripted::new([(at, 200, metadata), (url, 200, issuer.published_keys().to_string())]);
        let settings = CheckerSettings { fetch: Some(Arc::clone(&fetch) as _), ..settings(&issuer) };
        let checked = TokenChecker::new(settings).check(&alice(&issuer).sign()).await;
        assert_eq!(checked.unwrap_err(), CheckError::Unavailable, "{url}");
        assert_eq!(fetch.asked(), [at], "{url}");
    }
}

/// O29: with the keys here, a token is verified without a runtime: nothing is spawned, nothing waited for.
#[tokio::test]
async fn verification_needs_no_runtime() {
    let issuer = issuer();
    let checker = checker(&issuer);
    assert!(checker.check_now(&alice(&issuer).sign()).is_none());
    assert!(checker.check(&alice(&issuer).sign()).await.is_ok());
    let (good, forged) = (issuer.token("bob").sign(), issuer.token("bob").expired().sign());
    let outside = std::thread::spawn(move || (checker.check_now(&good), checker.check_now(&forged)));
    let (good, forged) = outside.join().unwrap();
    assert!(good.unwrap().is_ok());
    assert_eq!(forged.unwrap().unwrap_err(), CheckError::Refused(TokenRefusal::Expired));
}
