//! `roundtrip client-metadata`: the document that describes this client to authorization servers.

use clap::Args;
use roundtrip::oauth::ClientMetadataUrl;

use crate::exit::Failure;
use crate::output;
use crate::server::address;
use crate::sign_in::NAME;

/// Redirect URI of sign-ins on the user's machine. Authorization servers ignore its port.
const REDIRECT_URI: &str = "http://127.0.0.1/callback";

/// Print the client metadata document to host at a URL, for `login --client-metadata`
#[derive(Args)]
#[command(
    after_help = "Example:\n  roundtrip client-metadata https://agent.example/client.json > client.json"
)]
pub(crate) struct ClientMetadata {
    /// URL that the document will be at: https, with a path
    url: String,
}

impl ClientMetadata {
    pub(crate) fn run(&self) -> Result<(), Failure> {
        address::check(&self.url).map_err(Failure::usage)?;
        let url = ClientMetadataUrl::parse(&self.url)
            .map_err(|why| Failure::usage(format!("`{}`: {why}", self.url)))?;
        output::json(&url.document(NAME, &[REDIRECT_URI]));
        Ok(())
    }
}
