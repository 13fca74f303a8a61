//! A server with one of everything: each way to ask, a task, a stream, a prompt and a template that ask.

use std::cmp::Ordering;
use std::time::Duration;

use roundtrip::wire::CreateMessageRequestParams;
use roundtrip::{
    Answered, Args, Ask, AskError, Choice, Form, MemoryTasks, Parts, Progress, Prompt, Reply,
    ResourceTemplate, Round, Server, Status, Tasks, Tool, ToolError, When,
};
use schemars::JsonSchema;
use serde::Deserialize;

#[derive(Form)]
struct Name {
    /// Name to greet you by
    #[form(min_length = 1, max_length = 40)]
    name: String,
}

#[derive(Deserialize, JsonSchema)]
struct Booking {
    /// Name of the restaurant
    restaurant: String,
}

#[derive(Form)]
struct Party {
    /// From 1 to 12
    #[form(min = 1, max = 12, default = 2)]
    people: u8,
}

#[derive(Form)]
struct Day {
    /// A day, such as 2026-12-24
    #[form(format = "date")]
    date: String,
}

#[derive(Choice, Clone, Copy, Debug)]
enum Size {
    Small,
    Large,
}

#[derive(Choice, Clone, Copy, Debug)]
enum Topping {
    Cheese,
    Olives,
    Basil,
}

#[derive(Form)]
struct Pizza {
    #[form(default = "small")]
    size: Size,
    #[form(max_items = 2)]
    toppings: Vec<Topping>,
}

#[derive(Form)]
struct Delivery {
    #[form(title = "Street")]
    street: String,
    #[form(title = "Where to confirm", format = "email")]
    email: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
struct Files {
    /// Files to delete
    #[serde(default)]
    paths: Vec<String>,
}

#[derive(Deserialize, JsonSchema)]
struct Note {
    topic: String,
}

#[derive(Form)]
struct Guess {
    /// From 1 to 10
    #[form(min = 1, max = 10, default = 5)]
    number: u8,
}

#[derive(Deserialize, JsonSchema)]
struct Counting {
    /// The last number; 5 if it is left out
    to: Option<u16>,
}

/// One question.
async fn greet(ask: Ask) -> Result<String, ToolError> {
    let Name { name } = ask.form("name", "What is your name?").await?;
    Ok(format!("Hello, {name}!"))
}

/// One question after another, with a step between that runs once.
async fn book_table(Args(Booking { restaurant }): Args<Booking>, ask: Ask) -> Result<String, ToolError> {
    let Party { people } = ask.form("party", "How many people?").await?;
    let deposit: u32 = ask.remember("deposit", async || 20 * u32::from(people)).await?;
    let Day { date } = ask.form("day", format!("Which day? The deposit is {deposit}.")).await?;
    Ok(format!("{restaurant} for {people} on {date}, deposit {deposit}"))
}

/// Two questions in one round.
async fn order_pizza(ask: Ask) -> Result<String, ToolError> {
    let (pizza, delivery): (Pizza, Delivery) =
        tokio::try_join!(ask.form("pizza", "Which pizza?"), ask.form("delivery", "Where to?"),)?;
    let mail = delivery.email.as_deref().unwrap_or("nobody");
    Ok(format!("{:?} with {:?} to {}, confirmed to {mail}", pizza.size, pizza.toppings, delivery.street))
}

/// A question whose refusal is an answer.
async fn delete_files(Args(Files { paths }): Args<Files>, ask: Ask) -> Result<String, ToolError> {
    let sure = ask.confirm("sure", format!("Delete {} files?", paths.len())).answered().await?;
    Ok(match sure {
        Answered::Accepted(true) => format!("{} files would be gone now", paths.len()),
        Answered::Accepted(false) | Answered::Declined => "nothing was deleted".to_owned(),
        Answered::Cancelled => "nothing was deleted; ask me later".to_owned(),
    })
}

/// A web page to visit.
async fn connect_account(ask: Ask) -> Result<&'static str, ToolError> {
    ask.url("connect", "Connect your account", "https://accounts.example/connect?app=roundtrip-demo").await?;
    Ok("thank you for visiting")
}

/// A question for the client's model.
async fn poem(ask: Ask) -> Result<String, ToolError> {
    let message =
        ask.sample("poem", CreateMessageRequestParams::text("A poem about rounds, in one line", 60)).await?;
    Ok(message.text())
}

/// A question for the client's roots.
async fn folders(ask: Ask) -> Result<String, ToolError> {
    let roots = ask.roots("roots").await?;
    Ok(roots.iter().map(|root| root.uri.as_str()).collect::<Vec<_>>().join("\n"))
}

/// Rounds without a question: any instance carries on.
async fn relay(round: Round) -> Result<Reply, ToolError> {
    let handed: u32 = round.state()?.unwrap_or(0);
    if handed < 3 {
        return Ok(round.hand_off(&(handed + 1)));
    }
    Ok(Reply::text(format!("handed on {handed} times")))
}

/// A task that asks.
async fn report(ask: Ask, status: Status) -> Result<String, ToolError> {
    status.set("reading the archive");
    let rows: u32 = ask.remember("rows", async || 42).await?;
    status.set(format!("{rows} rows read"));
    if ask.confirm("publish", format!("Publish {rows} rows?")).await? {
        Ok(format!("{rows} rows published"))
    } else {
        Ok("kept back".to_owned())
    }
}

/// A result in parts, with a question between them.
async fn story(ask: Ask, mut out: Parts) -> Result<Parts, ToolError> {
    for piece in ["A crate ", "was lost ", "at sea. "] {
        out.text(piece).await;
    }
    let end = if ask.confirm("happy", "Shall it end well?").await? {
        "It was found."
    } else {
        "Nobody knows where."
    };
    out.text(end).await;
    Ok(out)
}

/// Rounds until the answer is right, or the client has had enough.
async fn guess(ask: Ask) -> Result<String, ToolError> {
    let mut message = "Which number do I have in mind?".to_owned();
    for attempt in 1_u32.. {
        let Guess { number } = ask.form(format!("guess-{attempt}"), message).await?;
        message = match number.cmp(&7) {
            Ordering::Less => format!("More than {number}."),
            Ordering::Greater => format!("Less than {number}."),
            Ordering::Equal => return Ok(format!("7 it is, after {attempt} guesses")),
        };
    }
    Err(ToolError::new("nobody guesses that often"))
}

/// Progress.
async fn count(Args(Counting { to }): Args<Counting>, progress: Progress) -> String {
    let to = to.unwrap_or(5);
    for number in 1..=to {
        progress.report((number, to, format!("counting {number}")));
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    format!("counted to {to}")
}

/// A tool that fails.
async fn fail() -> Result<String, ToolError> {
    Err(ToolError::new("this tool fails, as its name says"))
}

/// A prompt that asks.
async fn letter(ask: Ask) -> Result<String, AskError> {
    let Name { name } = ask.form("name", "Whom is the letter to?").await?;
    Ok(format!("Write a short letter to {name}."))
}

/// A template that asks.
async fn note(Args(Note { topic }): Args<Note>, ask: Ask) -> Result<String, AskError> {
    let full = ask.confirm("full", "The full note?").await?;
    Ok(if full { format!("All that is known about {topic}.") } else { format!("{topic}, in short.") })
}

/// Builds the server.
pub(crate) fn server() -> Server {
    Server::new("roundtrip-demo", env!("CARGO_PKG_VERSION"))
        .tool(Tool::new("greet", greet).description("Ask one question"))
        .tool(Tool::new("book_table", book_table).description("Ask one question after another"))
        .tool(Tool::new("order_pizza", order_pizza).description("Ask two questions in one round"))
        .tool(Tool::new("guess", guess).description("Ask until the answer is right"))
        .tool(Tool::new("delete_files", delete_files).description("Ask, and take no for an answer"))
        .tool(Tool::new("connect_account", connect_account).description("Ask for a visit to a web page"))
        .tool(Tool::new("poem", poem).description("Ask the client's model"))
        .tool(Tool::new("folders", folders).description("Ask for the client's roots"))
        .tool(Tool::new("relay", relay).description("Hand the call on, three times"))
        .tool(Tool::new("report", report).description("Become a task, and ask").task(When::Offered))
        .tool(Tool::new("story", story).description("Tell a story in parts, and ask how it ends"))
        .tool(Tool::new("count", count).description("Count, and report progress"))
        .tool(Tool::new("fail", fail).description("Fail"))
        .prompt(Prompt::new("letter", letter).description("Ask whom a letter is to"))
        .template(
            ResourceTemplate::new("notes://{topic}", "notes", note).description("Ask how long a note may be"),
        )
        .tasks(Tasks::new(MemoryTasks::new()))
}
