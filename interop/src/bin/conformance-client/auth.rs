//! Scenarios of authorization. The browser is one GET that follows the redirect into the listener of the client.

use std::io;

use roundtrip::Client;
use roundtrip::oauth::{HttpUrl, Idp, OAuth};
use serde::Deserialize;
use serde_json::json;

use crate::Outcome;

/// Client metadata that the suite knows. No server hosts it.
const METADATA: &str = "https://conformance-test.local/client-metadata.json";

/// Credentials that some scenarios give.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Context {
    client_id: String,
    client_secret: String,
    private_key_pem: String,
    idp_client_id: String,
    idp_id_token: String,
    idp_token_endpoint: String,
    valid_jwt: String,
}

/// Lists the tools and calls one, signed in as the scenario wants it.
pub(crate) async fn run(scenario: &str, client: Client) -> Outcome {
    let client = client.oauth(sign_in(scenario)?);
    client.list_tools().await?;
    client.call_tool("test-tool", json!({})).await?;
    client.close().await;
    Ok(())
}

fn sign_in(scenario: &str) -> Result<OAuth, Box<dyn std::error::Error>> {
    let context: Context = match std::env::var("MCP_CONFORMANCE_CONTEXT") {
        Ok(context) => serde_json::from_str(&context)?,
        Err(_) => Context::default(),
    };
    // The suite gives credentials without the issuer that they are for.
    Ok(match scenario {
        "auth/pre-registration" => {
            OAuth::registered(context.client_id).secret(context.client_secret).any_issuer().browser(visit)
        }
        "auth/client-credentials-jwt" => {
            OAuth::machine(context.client_id).key(context.private_key_pem)?.any_issuer()
        }
        "auth/client-credentials-basic" => {
            OAuth::machine(context.client_id).secret(context.client_secret).any_issuer()
        }
        "auth/enterprise-managed-authorization" => {
            OAuth::enterprise(Idp::at(context.idp_token_endpoint).client(context.idp_client_id))
                .identity(context.idp_id_token)
                .client(context.client_id)
                .secret(context.client_secret)
                .any_issuer()
        }
        "auth/wif-jwt-bearer" => {
            let jwt = context.valid_jwt;
            OAuth::workload(context.client_id, move |_| {
                let jwt = jwt.clone();
                async move { Ok::<_, io::Error>(jwt) }
            })
            .any_issuer()
        }
        "auth/dpop" | "auth/dpop-nonce" => person().dpop(),
        scenario if scenario.starts_with("auth/2025-03-26") => person().legacy_endpoints(),
        _ => person(),
    })
}

/// Returns a sign-in by a browser. Issuers of the suite take client metadata and promise no `iss`.
fn person() -> OAuth {
    OAuth::new("roundtrip-conformance").client_metadata(METADATA).any_issuer().browser(visit)
}

/// Opens a page as a browser would whose person agrees.
async fn visit(url: HttpUrl) -> Result<(), reqwest::Error> {
    reqwest::get(url.as_str()).await.map(drop)
}
