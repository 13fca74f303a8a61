//! What a client declares, and what becomes of questions it did not offer to answer.

use std::time::Duration;

use roundtrip::client::{ApiMisuse, PeerMisbehaved, RootsRequest, ServerRejection};
use roundtrip::wire::{ClientCapabilities, ElicitationCapability, RootsCapability, SamplingCapability};
use roundtrip::{Client, Error, FormRequest, SampleRequest, UrlRequest};
use serde_json::{Value, json};

use super::script::{Answer, asks, done, page, party, replies, roots, sampling, scripted};

async fn declared(dress: impl FnOnce(Client) -> Client) -> Value {
    let (client, log) = replies([done()]);
    dress(client).without_tasks().call_tool("book", ()).await.expect("a result");
    log.declared(0)
}

fn forms(client: Client) -> Client {
    client.on_form(async |form: FormRequest| form.cancel())
}

fn pages(client: Client) -> Client {
    client.on_url(async |url: UrlRequest| url.cancel())
}

fn models(client: Client) -> Client {
    client.on_sample(async |_: SampleRequest| Err("no model"))
}

/// C7: a client declares what it has handlers for. E3: with forms alone it says so.
#[tokio::test]
async fn capabilities_come_from_the_handlers() {
    assert_eq!(declared(|client| client).await, json!({}));
    assert_eq!(declared(forms).await, json!({ "elicitation": { "form": {} } }));
    assert_eq!(declared(pages).await, json!({ "elicitation": { "url": {} } }));
    let both = json!({ "elicitation": { "form": {}, "url": {} } });
    assert_eq!(declared(|client| pages(forms(client))).await, both);
    assert_eq!(declared(models).await, json!({ "sampling": {} }));
    let tools = json!({ "sampling": { "tools": {} } });
    assert_eq!(declared(|client| models(client).sampling_tools()).await, tools);
    assert_eq!(declared(|client| client.roots(["file:///a"])).await, json!({ "roots": {} }));
    let found_out = |client: Client| client.on_roots(async |_: RootsRequest| Vec::new());
    assert_eq!(declared(found_out).await, json!({ "roots": {} }));
}

/// C7: what the author declares is kept beside what the handlers say. E3: an empty `elicitation` means forms, which a
/// handler for pages does not take back.
#[tokio::test]
async fn what_the_author_declares_is_kept() {
    let elicitation = Some(ElicitationCapability::default());
    let explicit = ClientCapabilities { elicitation, roots: Some(RootsCapability {}), ..Default::default() };
    let both = json!({ "roots": {}, "elicitation": { "form": {}, "url": {} } });
    assert_eq!(declared(|client| pages(client).capabilities(explicit.clone())).await, both);
    let alone = json!({ "roots": {}, "elicitation": {} });
    assert_eq!(declared(|client| client.capabilities(explicit)).await, alone);
    let context = SamplingCapability { context: Some(Default::default()), tools: None };
    let explicit = ClientCapabilities { sampling: Some(context), ..Default::default() };
    let merged = json!({ "sampling": { "context": {}, "tools": {} } });
    assert_eq!(declared(|client| models(client).sampling_tools().capabilities(explicit)).await, merged);
}

/// C7: a question nobody offered to answer is the server's fault, and named with its key and kind. Nobody is asked
/// anything, and nothing is sent.
#[tokio::test]
async fn a_kind_nobody_handles_is_named() {
    for (question, kind) in [(page(), "url"), (sampling(), "sampling"), (roots(), "roots")] {
        let (client, log) = replies([asks([("first", party()), ("second", question)], Some("s"))]);
        let client =
            client.on_form(async |_: FormRequest| -> roundtrip::FormAnswer { panic!("asked in vain") });
        let error = client.call_tool("book", ()).await.expect_err("nobody");
        let Error::PeerMisbehaved(why) = &error else { panic!("misbehaved, not {error:?}") };
        let why = why.to_string();
        assert!(why.contains(&format!("`second` ({kind})")), "{why}");
        assert_eq!(log.len(), 1);
    }
    let (client, _log) = replies([asks([("only", party())], None)]);
    let error = pages(client).call_tool("book", ()).await.expect_err("nobody");
    assert!(
        matches!(&error, Error::PeerMisbehaved(PeerMisbehaved::NotOffered(why)) if why.contains("`only` (form)")),
        "{error:?}"
    );
}

/// C7: what was declared without a handler is the author's fault.
#[tokio::test]
async fn what_was_declared_without_a_handler_is_misuse() {
    let (client, _log) = replies([asks([("only", party())], None)]);
    let elicitation = Some(ElicitationCapability::default());
    let client = client.capabilities(ClientCapabilities { elicitation, ..Default::default() });
    let error = client.call_tool("book", ()).await.expect_err("nobody");
    assert!(
        matches!(&error, Error::ApiMisuse(ApiMisuse::NoHandler(why)) if why.contains("`only` (form)") && why.contains("on_form"))
    );
}

/// C7: tools for the model are for those who offered to pass them on.
#[tokio::test]
async fn tools_for_the_model_need_to_be_offered() {
    let mut with_tools = sampling();
    with_tools["params"]["tools"] = json!([{ "name": "t", "inputSchema": { "type": "object" } }]);
    let (client, _log) = replies([asks([("q", with_tools)], None)]);
    let error = models(client).call_tool("book", ()).await.expect_err("not offered");
    assert!(
        matches!(&error, Error::PeerMisbehaved(PeerMisbehaved::NotOffered(why)) if why.contains("`q` (sampling)")),
        "{error:?}"
    );
}

/// C7: an error for a missing capability names what to give the client, which a program can tell by its variant.
#[tokio::test]
async fn a_missing_capability_names_the_handler_to_add() {
    for (required, add) in [
        (json!({ "elicitation": { "form": {} } }), ": add `Client::on_form(..)`"),
        (json!({ "elicitation": {} }), ": add `Client::on_form(..)`"),
        (json!({ "elicitation": { "url": {} } }), ": add `Client::on_url(..)`"),
        (json!({ "sampling": {} }), ": add `Client::on_sample(..)`"),
        (json!({ "sampling": { "tools": {} } }), ": add `Client::on_sample(..).sampling_tools()`"),
        (json!({ "roots": {} }), ": add `Client::roots(..)`"),
        (json!({ "extensions": { "a": {}, "b": {} } }), ": add `Client::capabilities(..)`"),
        (json!({ "roots": {}, "sampling": {} }), ": add `Client::roots(..)` and `Client::on_sample(..)`"),
        (json!({}), "no (-32021)"),
    ] {
        let error = json!({ "code": -32021, "message": "no", "data": { "requiredCapabilities": required } });
        let (client, _log) = scripted(move |_, _| Answer::LateError(Duration::ZERO, error.clone()));
        let error = client.call_tool("book", ()).await.expect_err("refused");
        assert!(matches!(&error, Error::Rejected(ServerRejection::MissingCapability(_))), "{error}");
        assert!(error.to_string().ends_with(add), "{error}");
    }
    let (client, _log) = scripted(|_, _| {
        Answer::LateError(
            Duration::ZERO,
            json!({ "code": -32021, "message": "no", "data": { "requiredCapabilities": 7 } }),
        )
    });
    let error = client.call_tool("book", ()).await.expect_err("refused");
    assert!(matches!(&error, Error::Rejected(ServerRejection::Other(_))), "{error}");
}
