//! `roundtrip resume`: goes on with a call that `--save` has kept.

use std::path::PathBuf;

use clap::Args;
use roundtrip::wire::{CallTool, GetPrompt, Method as _, ReadResource};

use super::call;
use crate::exit::Failure;
use crate::output;
use crate::printable::printable;
use crate::saved;
use crate::session::{Session, SessionOptions};

/// Go on with a call that was kept by `--save`
#[derive(Args)]
#[command(after_help = "Example:\n  roundtrip resume flow.json --answers answers.json")]
pub(crate) struct Resume {
    /// File with the call
    file: PathBuf,
    #[command(flatten)]
    options: SessionOptions,
}

impl Resume {
    pub(crate) fn is_json(&self) -> bool {
        self.options.json
    }

    pub(crate) async fn run(self) -> Result<(), Failure> {
        let saved = saved::read(&self.file)?;
        let session = Session::open(saved.server.clone(), &self.options).await?;
        session
            .run(async |session| match saved.method() {
                CallTool::NAME => {
                    let result = session.resume::<CallTool>(saved.pending(&self.file)?).await?;
                    call::conclude(session, &result)
                }
                GetPrompt::NAME => {
                    let result = session.resume::<GetPrompt>(saved.pending(&self.file)?).await?;
                    if session.json {
                        output::json(&result);
                    } else {
                        output::prompt(&result);
                    }
                    session.concluded(Ok(()))
                }
                ReadResource::NAME => {
                    let result = session.resume::<ReadResource>(saved.pending(&self.file)?).await?;
                    if session.json {
                        output::json(&result);
                    } else {
                        output::resource(&result);
                    }
                    session.concluded(Ok(()))
                }
                other => {
                    let why =
                        format!("{}: calls of `{}` are not resumed", self.file.display(), printable(other));
                    Err(Failure::usage(why))
                }
            })
            .await
    }
}
