//! Instances of a service: whose state opens where.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use roundtrip::seal::{BoxFuture, Codec, CodecError, Sealer};
use roundtrip::{Ask, AskError, Prompt, Resource, Server, Tool};
use serde_json::json;

use crate::seal::{
    DONE, Secret, assert_refused, instance, named, remember, remember_all, ring, secret, sure,
};
use crate::support::Call;

/// A codec that takes its time, and can be out of order.
#[derive(Debug)]
pub(crate) struct Slow(pub(crate) Arc<AtomicBool>);

impl Slow {
    async fn pass(&self, bytes: &[u8]) -> Result<Vec<u8>, CodecError> {
        tokio::task::yield_now().await;
        if self.0.load(Ordering::SeqCst) {
            Err("out of order".into())
        } else {
            Ok(bytes.iter().rev().copied().collect())
        }
    }
}

impl Codec for Slow {
    fn seal<'a>(&'a self, plain: &'a [u8], _: &'a [u8]) -> BoxFuture<'a, Result<Vec<u8>, CodecError>> {
        Box::pin(self.pass(plain))
    }

    fn open<'a>(&'a self, sealed: &'a [u8], _: &'a [u8]) -> BoxFuture<'a, Result<Vec<u8>, CodecError>> {
        Box::pin(self.pass(sealed))
    }
}

/// S11: a server with the same key and another name, or another audience, refuses the state.
#[tokio::test]
async fn a_state_of_another_service_is_refused() {
    let vault = named("vault", ring(&[1]));
    let call = Call::tool("remember");
    let first = call.begin(&vault).await;
    assert_refused(&call.answer(&named("other", ring(&[1])), &first, secret()).await, "another name");
    let with_audience = |audience: &str| {
        let server = Server::new("other", "2").seal(ring(&[1])).audience(audience);
        server.tool(Tool::new("remember", remember)).build().expect("a server")
    };
    assert_refused(&call.answer(&with_audience("vaults"), &first, secret()).await, "another audience");
    let second = call.answer(&with_audience("vault"), &first, secret()).await;
    assert_eq!(second.keys(), ["sure"], "the audience is what counts, not the name");
}

/// S12: instances that share a ring finish each other's flows; with other keys they refuse them.
#[tokio::test]
async fn instances_with_one_ring_finish_each_others_flows() {
    let (one, other, stranger) = (instance(&[1]), instance(&[1]), instance(&[2]));
    let call = Call::tool("remember").by("alice");
    let first = call.begin(&one).await;
    assert_refused(&call.answer(&stranger, &first, secret()).await, "another ring");
    let second = call.answer(&other, &first, secret()).await;
    assert_refused(&call.answer(&stranger, &second, sure()).await, "another ring");
    assert_eq!(call.answer(&one, &second, sure()).await.text(), DONE);
}

/// S2: keys are changed in three deployments while flows are under way, on instances that change one after another,
/// and no flow is lost.
#[tokio::test]
async fn keys_change_in_three_steps_and_no_flow_is_lost() {
    let phases: [&[u8]; 4] = [&[1], &[1, 2], &[2, 1], &[2]];
    let call = Call::tool("remember");
    for (step, pair) in phases.windows(2).enumerate() {
        let (old, new) = (instance(pair[0]), instance(pair[1]));
        // Each round lands on either, and the last phase begins once flows of the phase before the last are over.
        for (a, b, c) in [(&old, &new, &old), (&new, &old, &new), (&old, &new, &new), (&new, &new, &old)] {
            let first = call.begin(a).await;
            let second = call.answer(b, &first, secret()).await;
            assert_eq!(call.answer(c, &second, sure()).await.text(), DONE, "step {step}");
        }
    }
    let first = call.begin(&instance(phases[0])).await;
    assert_refused(&call.answer(&instance(phases[3]), &first, secret()).await, "the old key is gone");
}

/// S9: with a codec that has to be waited for, tools, prompts and resources run their rounds all the same, bound as
/// ever; and one that fails, fails closed.
#[tokio::test]
async fn a_codec_may_take_its_time() {
    async fn other(ask: Ask) -> Result<String, AskError> {
        let secret: Secret = ask.form("secret", "Which word?").await?;
        let sure = ask.confirm("sure", "Sure?").await?;
        Ok(format!("{} a remembered value {sure}", secret.word))
    }
    let broken = Arc::new(AtomicBool::new(false));
    let endpoint = Server::new("vault", "1")
        .seal(Sealer::with_codec(Slow(Arc::clone(&broken))))
        .tool(Tool::new("remember", remember_all))
        .prompt(Prompt::new("other", other))
        .resource(Resource::new("app://other", "other", other))
        .around(async |_, next| next.run().await)
        .build()
        .expect("a server");
    let calls = [
        Call::tool("remember").with(json!({ "a": [1, { "b": null }] })).by("alice"),
        Call::prompt("other").with(json!({ "a": "1" })).by("alice"),
        Call::resource("app://other").by("alice"),
    ];
    for call in calls {
        let first = call.begin(&endpoint).await;
        let second = call.answer(&endpoint, &first, secret()).await;
        assert_refused(&call.clone().by("bob").answer(&endpoint, &second, sure()).await, "another principal");
        assert_eq!(call.answer(&endpoint, &second, json!([])).await.error().0, -32602);
        assert_eq!(call.answer(&endpoint, &second, sure()).await.text(), DONE);
        broken.store(true, Ordering::SeqCst);
        assert_refused(&call.answer(&endpoint, &second, sure()).await, "out of order");
        assert_eq!(call.begin(&endpoint).await.error(), (-32603, "internal error"));
        broken.store(false, Ordering::SeqCst);
    }
}
