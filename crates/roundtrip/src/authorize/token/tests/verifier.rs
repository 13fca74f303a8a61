//! An author's own check.

use std::convert::Infallible;
use std::sync::atomic::AtomicUsize;

use super::logged::logged;
use super::*;
use crate::authorize::Secret;

fn checker_with(verifier: Verifier) -> TokenChecker {
    TokenChecker::new(CheckerSettings { verifier: Some(verifier), ..settings(&issuer()) })
}

fn verified() -> Verified {
    Verified::new(ISSUER, "alice").audience(RESOURCE).scopes(["files:read"]).claim("tenant", "acme")
}

async fn judged(verdict: Verified) -> Result<Arc<Claims>, CheckError> {
    let judge = move |_| {
        let verdict = verdict.clone();
        async move { Ok::<_, Infallible>(Some(verdict)) }
    };
    checker_with(Verifier::new(judge)).check("key-of-alice").await
}

/// O18: the author's function decides alone, and is asked each time; what it says is held to the rules.
#[tokio::test]
async fn the_authors_function_decides() {
    let asked = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&asked);
    let checker = checker_with(Verifier::new(move |token: Secret| {
        counted.fetch_add(1, Ordering::SeqCst);
        async move { Ok::<_, Infallible>((token.expose() == "key-of-alice").then(verified)) }
    }));
    for _ in 0..2 {
        assert!(checker.check_now("key-of-alice").is_none());
        let claims = checker.check("key-of-alice").await.unwrap();
        assert!(claims.scopes.contains("files:read") && claims.all["tenant"] == "acme");
    }
    assert_eq!(refusal(&checker, "another").await, TokenRefusal::NotVerified);
    assert_eq!(asked.load(Ordering::SeqCst), 3);
    assert_eq!(refusal(&checker, &"x".repeat(LONGEST_TOKEN + 1)).await, TokenRefusal::TooLarge);
}

/// O18: audience, issuer and expiry of a verdict are checked: there is no way around.
#[tokio::test]
async fn a_verdict_is_held_to_the_rules() {
    let refused = async |verdict| match judged(verdict).await {
        Err(CheckError::Refused(refusal)) => refusal,
        other => panic!("{other:?}"),
    };
    let elsewhere = Verified::new(ISSUER, "alice").audience("https://other.example/mcp");
    assert_eq!(refused(elsewhere.clone()).await, TokenRefusal::Audience);
    assert!(judged(elsewhere.audience(RESOURCE)).await.is_ok());
    assert_eq!(refused(Verified::new(ISSUER, "alice")).await, TokenRefusal::Audience);
    assert_eq!(
        refused(Verified::new("https://evil.example", "a").audience(RESOURCE)).await,
        TokenRefusal::Issuer
    );
    let past = SystemTime::now() - Duration::from_secs(61);
    assert_eq!(refused(verified().expires_at(past)).await, TokenRefusal::Expired);
    assert_eq!(refused(verified().claim("sub", 5)).await, TokenRefusal::Type("sub"));
}

/// O35: the principal of a verdict is made as that of any token is.
#[tokio::test]
async fn a_verdict_has_the_usual_principal() {
    let issuer = issuer();
    let signed = checker(&issuer).check(&alice(&issuer).sign()).await.unwrap();
    assert_eq!(judged(verified().client_id("other")).await.unwrap().principal, signed.principal);
}

/// O25: an error of the function is an outage, a panic of it a failure, and one that hangs is not waited for.
#[tokio::test(start_paused = true)]
async fn the_authors_function_may_fail() {
    let checked = async |verifier| checker_with(verifier).check("token").await.unwrap_err();
    let down = Verifier::new(|_| async { Err::<Option<Verified>, _>("the database is down") });
    assert_eq!(checked(down).await, CheckError::Unavailable);
    let hangs = Verifier::new(|_| std::future::pending::<Result<Option<Verified>, Infallible>>());
    assert_eq!(checked(hangs).await, CheckError::Unavailable);
    let panics_late = Verifier::new(|token: Secret| async move {
        tokio::task::yield_now().await;
        if token.expose() == "token" { panic!("boom") } else { Ok::<Option<Verified>, Infallible>(None) }
    });
    assert_eq!(checked(panics_late).await, CheckError::Failed);
    let panics = Verifier::new(|token: Secret| {
        assert_eq!(token.expose(), "another", "boom");
        async { Ok::<Option<Verified>, Infallible>(None) }
    });
    assert_eq!(checked(panics).await, CheckError::Failed);
}

/// O27: neither a token nor what was found in it is in the `Debug` of what holds them.
#[tokio::test]
async fn nothing_is_shown() {
    let secret = Secret::new("key-of-alice");
    let shown = format!("{secret:?} {:?} {:?}", verified(), judged(verified()).await.unwrap());
    let endpoint = Introspection::at("https://login.example/i").client("files", "password");
    let shown = format!("{shown} {endpoint:?}");
    for hidden in ["alice", "password", "acme"] {
        assert!(!shown.contains(hidden), "{shown}");
    }
}

/// O27: whatever becomes of a token, it is not in the log, and neither is what it says.
#[test]
fn nothing_is_logged() {
    let text = logged(async {
        let issuer = issuer();
        let introspection = vec![issuer.introspection()];
        let checker = TokenChecker::new(CheckerSettings { introspection, ..settings(&issuer) });
        let tokens = [alice(&issuer).sign(), alice(&issuer).opaque(), "key-of-alice".to_owned()];
        for token in &tokens {
            drop(checker.check(token).await);
        }
        issuer.stop();
        let stopped = TokenChecker::new(CheckerSettings {
            introspection: vec![issuer.introspection()],
            ..settings(&issuer)
        });
        for token in &tokens {
            assert_eq!(stopped.check(token).await.unwrap_err(), CheckError::Unavailable);
        }
        let down = Verifier::new(|_| async { Err::<Option<Verified>, _>("the database is down") });
        drop(checker_with(down).check(&tokens[2]).await);
    });
    assert!(text.contains("cannot be fetched") && text.contains("cannot be introspected"), "{text}");
    assert!(text.contains("the database is down"), "{text}");
    for hidden in ["alice", "eyJ", "secret of the resource"] {
        assert!(!text.contains(hidden), "{text}");
    }
}
