//! A value that cannot go to another thread, held across an await.

use std::rc::Rc;

use roundtrip::{Ask, AskError, Tool};

async fn count(ask: Ask) -> Result<String, AskError> {
    let seen = Rc::new(1);
    let more = ask.confirm("more", "One more?").await?;
    Ok(format!("{} and {more}", seen))
}

fn main() {
    let _ = Tool::new("count", count);
}
