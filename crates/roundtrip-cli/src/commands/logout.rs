//! `roundtrip logout`: forgets a sign-in.

use clap::Args;

use crate::exit::Failure;
use crate::interrupt;
use crate::output::err;
use crate::printable::printable;
use crate::server::NamedServer;
use crate::sign_in;

/// Forget the tokens of a server
#[derive(Args)]
#[command(
    after_help = "The tokens are deleted on this machine; those that were copied are good until they end.\n\n\
                  Example:\n  roundtrip logout https://tools.example/mcp"
)]
pub(crate) struct Logout {
    #[command(flatten)]
    server: NamedServer,
}

impl Logout {
    pub(crate) async fn run(self) -> Result<(), Failure> {
        let endpoint = self.server.endpoint()?;
        let forget = async {
            let url = endpoint.url().await?;
            Ok((sign_in::forget(&url).await?, url))
        };
        let (was_there, url) = interrupt::until(None, forget).await?;
        let what = if was_there { "signed out of" } else { "not signed in to" };
        err!("{what} {}", printable(&url));
        Ok(())
    }
}
