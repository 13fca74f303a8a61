//! `roundtrip read`: the contents of a resource.

use clap::Args;

use crate::exit::Failure;
use crate::output;
use crate::server::Endpoint;
use crate::session::{Session, SessionOptions};

/// Read a resource
#[derive(Args)]
#[command(
    override_usage = "roundtrip read [OPTIONS] <SERVER> <URI>\n       roundtrip read [OPTIONS] <URI> -- <COMMAND>..",
    after_help = "Example:\n  roundtrip read http://127.0.0.1:8000/mcp app://settings"
)]
pub(crate) struct Read {
    /// The server, unless a command stands behind `--`; then the URI of the resource
    #[arg(value_name = "SERVER URI", num_args = 0..)]
    words: Vec<String>,
    /// Command that starts the server
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
    #[command(flatten)]
    options: SessionOptions,
}

impl Read {
    pub(crate) fn is_json(&self) -> bool {
        self.options.json
    }

    pub(crate) async fn run(mut self) -> Result<(), Failure> {
        let endpoint = Endpoint::take(&mut self.words, &self.command, self.options.connect.config.as_ref())?;
        let [uri] = self.words.as_slice() else {
            return Err(Failure::usage(format!("give one URI, not {} words", self.words.len())));
        };
        let session = Session::open(endpoint, &self.options).await?;
        let read = async |session: &mut Session| {
            let call = session.client.read_resource(uri).one_round();
            let result = session.drive(call, &format!("resources/read {uri}")).await?;
            if session.json {
                output::json(&result);
            } else {
                output::resource(&result);
            }
            session.concluded(Ok(()))
        };
        session.run(read).await
    }
}
