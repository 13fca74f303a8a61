//! Closing and dropping a client of an old server, while everything hangs.

use std::sync::Arc;

use roundtrip::{Error, FormAnswer, FormRequest};
use tokio::sync::{Notify, mpsc};

use super::server::{Old, Seen, form, slow_json};
use crate::closing::in_time;

/// L6: closing does not wait for an old server that hangs, be it over the question about its era, over the handshake, or
/// over a call.
#[tokio::test]
async fn closing_does_not_wait_for_a_server_that_hangs() {
    for mute in ["server/discover", "initialize", "notifications/initialized", "tools/call"] {
        let hangs = move |seen: &Seen| seen.method() == mute;
        let (client, old) =
            Old::start(move |_, seen| hangs(seen).then(|| slow_json(std::future::pending()))).await;
        let (first, second) = (client.clone(), client.clone());
        let calls = [first, second].map(|client| tokio::spawn(client.call_tool("x", ()).into_future()));
        old.wait(hangs).await;
        in_time(client.close()).await;
        for call in calls {
            let error = in_time(call).await.expect("no panic").expect_err("closed");
            assert!(matches!(error, Error::Closed), "{mute}: {error:?}");
        }
        if mute == "tools/call" {
            old.wait(|seen| seen.http == http::Method::DELETE).await;
            old.wait(|seen| seen.method() == "notifications/cancelled").await;
        }
    }
}

/// L7: a question outside of any call that nobody answers does not keep a dropped client's session, nor its handlers.
#[tokio::test]
async fn dropping_ends_the_handlers_of_questions_outside_of_any_call() {
    struct Gone(mpsc::UnboundedSender<()>);
    impl Drop for Gone {
        fn drop(&mut self) {
            let _ = self.0.send(());
        }
    }
    let (client, old) = Old::start(|_, _| None).await;
    let (thinking, (gone, mut ended)) = (Arc::new(Notify::new()), mpsc::unbounded_channel());
    let begun = Arc::clone(&thinking);
    let client = client.on_form(move |_: FormRequest| {
        begun.notify_one();
        let gone = Gone(gone.clone());
        async move {
            let _gone = gone;
            std::future::pending::<FormAnswer>().await
        }
    });
    client.list_tools().await.expect("tools");
    let general = old.general.lock().expect("general").clone().expect("a stream");
    general.message(&form(1, "Who?"));
    in_time(thinking.notified()).await;
    drop(client);
    in_time(ended.recv()).await.expect("the handler is dropped");
    old.wait(|seen| seen.http == http::Method::DELETE).await;
    in_time(general.0.closed()).await;
}
