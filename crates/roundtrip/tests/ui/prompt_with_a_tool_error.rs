//! A tool's error in a prompt.

use roundtrip::{Prompt, ToolError};

async fn review() -> Result<String, ToolError> {
    Err(ToolError::new("no"))
}

fn main() {
    let _ = Prompt::new("review", review);
}
