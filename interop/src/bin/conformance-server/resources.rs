//! Resources: text, bytes, a template, and one to watch.

use std::time::Duration;

use roundtrip::server::Listed;
use roundtrip::wire::{BlobResourceContents, ResourceContents};
use roundtrip::{Args, Cache, Json, Resource, ResourceTemplate, Server};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::PNG;

pub(crate) fn offer(server: Server) -> Server {
    let minute = Duration::from_secs(60);
    server
        .resource(
            Resource::new(
                "test://static-text",
                "static-text",
                async || "This is the content of the static text resource.",
            )
            .description("A text that never changes")
            .mime_type("text/plain")
            .cache(Cache::public(minute)),
        )
        .resource(
            Resource::new("test://static-binary", "static-binary", picture)
                .description("A picture that never changes")
                .mime_type("image/png"),
        )
        .resource(
            Resource::new("test://watched-resource", "watched-resource", async || "Watched.")
                .description("A resource to subscribe to")
                .mime_type("text/plain"),
        )
        .template(
            ResourceTemplate::new("test://template/{id}/data", "template", templated)
                .description("Data by its id")
                .mime_type("application/json"),
        )
        .cache(Listed::Resources, Cache::public(minute))
        .cache(Listed::Templates, Cache::public(minute))
}

async fn picture() -> ResourceContents {
    let contents = BlobResourceContents::new("test://static-binary", PNG);
    ResourceContents::Blob(BlobResourceContents { mime_type: Some("image/png".into()), ..contents })
}

#[derive(Deserialize, JsonSchema)]
struct Templated {
    id: String,
}

async fn templated(Args(Templated { id }): Args<Templated>) -> Json<Value> {
    Json(json!({ "id": id, "templateTest": true, "data": format!("Data for ID: {id}") }))
}
