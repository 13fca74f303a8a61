//! The caller that a token names, and what is bound to it.

use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use http::Request;
use roundtrip::authorize::Verified;
use roundtrip::server::{CallInfo, Next};
#[cfg(feature = "legacy")]
use roundtrip::testing::Issuer;
use roundtrip::{Authorize, Caller, Principal, Server, Tool};
use serde_json::json;
use tower_service::Service as _;

use super::{Desk, ISSUER, RESOURCE, guarded, issuer, server, text, whoami};
use crate::logged::logged;
use crate::peers::Pipe;
#[cfg(feature = "legacy")]
use crate::peers::{V2025_11_25, Web, tool};
use crate::support::{headers, message};

/// O18: the audience is the resource, or one that the author named; nothing lets another one in.
#[tokio::test]
async fn tokens_are_for_this_resource() {
    let desk = Desk::guarded(server(), |guard| guard.audience("api://files")).await;
    for (audience, status) in
        [(json!("api://files"), 200), (json!([RESOURCE, "x"]), 200), (json!("x"), 401), (json!([]), 401)]
    {
        let token = desk.issuer.token("alice").claim("aud", audience.clone()).sign();
        assert_eq!(desk.call(&token, "whoami", json!({})).await.status, status, "{audience}");
    }
    let own = |audience: Option<&'static str>| {
        Desk::guarded(server(), move |guard| {
            guard.verify(move |_| async move {
                let verified = Verified::new(ISSUER, "alice");
                let seen = audience.into_iter().fold(verified, Verified::audience);
                Ok::<_, std::io::Error>(Some(seen))
            })
        })
    };
    for (audience, status) in [(Some(RESOURCE), 200), (Some("https://other.example"), 401), (None, 401)] {
        assert_eq!(own(audience).await.call("any", "whoami", json!({})).await.status, status, "{audience:?}");
    }
}

/// O28: handlers and hooks get principal, scopes, client and claims; the token is in no value, span, or log of theirs.
#[test]
fn the_token_goes_no_further_than_the_guard() {
    let seen: Arc<Mutex<Vec<String>>> = Arc::default();
    let noted = Arc::clone(&seen);
    let mut token = String::new();
    let log = logged(async {
        let hook = move |call: CallInfo, next: Next| {
            noted.lock().expect("a lock").push(format!("{call:?} {:?}", call.access));
            async move { next.run().await }
        };
        let tool = Tool::new("inside", async |caller: Caller| {
            let claims = caller.claims().expect("claims");
            let (subject, client) = (claims.subject.clone(), claims.client_id.clone());
            format!("{subject:?} {client:?} {:?} {} {caller:?}", caller.scopes(), claims.all["tenant"])
        });
        let desk = Desk::open(Server::new("desk", "1").around(hook).tool(tool)).await;
        token = desk.issuer.token("alice").scopes(["a"]).client_id("agent").claim("tenant", "blue").sign();
        let told = text(&desk.call(&token, "inside", json!({})).await);
        let expected = r#"Some("alice") Some("agent") Some(ScopeSet({"a"})) "blue" "#;
        assert!(told.starts_with(expected), "{told}");
        assert!(!told.contains(&token));
    });
    assert!(!log.contains(&token) && !log.contains("blue"), "{log}");
    let seen = seen.lock().expect("a lock");
    assert!(seen.len() == 1 && !seen[0].contains(&token), "{seen:?}");
}

/// O29: with the keys at hand, a call is answered at its first poll: nothing is waited for and nothing spawned.
#[tokio::test]
async fn a_known_token_is_checked_at_once() {
    let issuer = issuer();
    let mut http = guarded(server(), Authorize::testing(RESOURCE, &issuer));
    let call = message(1, "tools/call", json!({ "name": "whoami", "arguments": {} }));
    let request = |token: &str| {
        let mut request = Request::post("/mcp").header("authorization", format!("Bearer {token}"));
        for (name, value) in headers(&call) {
            request = request.header(name, value);
        }
        request.body(call.to_string()).expect("a request")
    };
    let first = http.call(request(&issuer.token("alice").sign())).await.expect("an answer");
    assert_eq!(first.status(), 200);
    // Another token: it was never seen, and its key was.
    let mut second = http.call(request(&issuer.token("bob").sign()));
    let polled = second.as_mut().poll(&mut Context::from_waker(Waker::noop()));
    assert!(matches!(polled, Poll::Ready(Ok(answer)) if answer.status() == 200));
}

/// O35, O37: the principal is issuer and subject, whatever else the token says; an author can derive another.
#[tokio::test]
async fn the_principal_is_issuer_and_subject() {
    let desk = Desk::open(server()).await;
    let who = async |token: String| text(&desk.call(&token, "whoami", json!({})).await);
    let alice = who(desk.token("alice", "a")).await;
    assert_eq!(alice, format!("sub:{}:{ISSUER}alice", ISSUER.len()));
    let other = desk.issuer.token("alice").client_id("other").claim("jti", "2").scopes(["b"]).sign();
    assert_eq!(who(other).await, alice);
    let machine = desk.issuer.token("alice").without("sub").client_id("alice").sign();
    assert_ne!(who(machine).await, alice);
    let by_tenant = Desk::guarded(server(), |guard| {
        guard.principal(|claims| claims.all.get("tenant")?.as_str().map(Principal::new))
    })
    .await;
    let token = by_tenant.issuer.token("alice").claim("tenant", "blue").sign();
    assert_eq!(text(&by_tenant.call(&token, "whoami", json!({})).await), "blue");
    assert_eq!(by_tenant.call(&by_tenant.token("alice", ""), "whoami", json!({})).await.status, 401);
    let broken = Desk::guarded(server(), |guard| guard.principal(|_| panic!("a bug"))).await;
    assert_eq!(broken.call(&broken.token("alice", ""), "whoami", json!({})).await.status, 500);
}

/// O1, O17, O36: a session is no authentication: each request needs its token, and the session of another is unknown, also with
/// an equal subject at another issuer.
#[cfg(feature = "legacy")]
#[tokio::test]
async fn a_session_belongs_to_the_principal_of_its_token() {
    let (stranger, issuer) = (issuer(), Issuer::bind(RESOURCE).await.expect("an issuer"));
    let guard = Authorize::at("http://localhost/mcp").issuer(issuer.name()).audience(RESOURCE);
    let web = Web::at(guarded(server(), guard));
    let with = |web: &Web, token: String| web.with("authorization", &format!("Bearer {token}"));
    let alice = with(&web, issuer.token("alice").sign()).session(V2025_11_25, &json!({})).await;
    let renewed = with(&alice, issuer.token("alice").scopes(["more"]).sign());
    assert_eq!(renewed.post(&tool(1, "whoami")).await.status, 200);
    let nobody = alice.with("authorization", "");
    assert_eq!(nobody.post(&tool(1, "whoami")).await.status, 401);
    assert_eq!((nobody.get().await.status, nobody.delete().await.status), (401, 401));
    let bob = with(&alice, issuer.token("bob").sign());
    assert_eq!(bob.post(&tool(1, "whoami")).await.status, 404);
    assert_eq!((bob.get().await.status, bob.delete().await.status), (404, 404));
    let forged = with(&alice, stranger.token("alice").sign());
    assert_eq!(forged.post(&tool(1, "whoami")).await.status, 401);
    assert_eq!(renewed.delete().await.status, 204);
}

/// O36: equal subjects of two issuers are two principals.
#[tokio::test]
async fn equal_subjects_of_two_issuers_are_two_principals() {
    let guard = Authorize::at(RESOURCE).issuer(ISSUER).issuer("https://b.example").verify(async |token| {
        let issuer = if token.expose() == "a" { ISSUER } else { "https://b.example" };
        Ok::<_, std::io::Error>(Some(Verified::new(issuer, "alice").audience(RESOURCE)))
    });
    let running = crate::support::Running::start_http(guarded(server(), guard)).await;
    let desk = Desk { running, issuer: issuer() };
    let (one, two) = (desk.call("a", "whoami", json!({})).await, desk.call("b", "whoami", json!({})).await);
    assert_ne!(text(&one), text(&two));
}

/// O38: on stdio nothing checks tokens: tools with scopes are called, and there is no principal.
#[tokio::test]
async fn a_pipe_needs_no_token() {
    let tool = Tool::new("write", async |caller: Caller| {
        caller.need_scopes(["files:write:inbox"])?;
        let none = caller.principal.is_none() && caller.claims().is_none() && caller.scopes().is_none();
        Ok::<_, roundtrip::ToolError>(format!("{none} {}", caller.has_scopes(["any"])))
    });
    let server = Server::new("desk", "1").tool(tool.scopes(["files:write"])).tool(whoami());
    let mut pipe = Pipe::open(server);
    let answer = pipe.call(&message(1, "tools/call", json!({ "name": "write", "arguments": {} }))).await;
    assert_eq!(answer["result"]["content"][0]["text"], "true true", "{answer}");
}
