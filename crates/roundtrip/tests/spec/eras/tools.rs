//! Tools that ask, and what they leave behind.

use std::sync::{Arc, Mutex};

use roundtrip::legacy::ResumableStream;
use roundtrip::wire::{CreateMessageRequestParams, ResourceLink};
use roundtrip::{
    Args, Ask, AskError, Choice, Form, Json, Log, Prompt, Question, Reply, Resource, ResourceTemplate, Round,
    Server, State, Tool, ToolError,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::try_join;

/// What happened, in order.
#[derive(Debug, Clone, Default)]
pub(crate) struct Diary(Arc<Mutex<Vec<String>>>);

impl Diary {
    pub(crate) fn note(&self, what: impl Into<String>) {
        self.0.lock().expect("no panic").push(what.into());
    }

    pub(crate) fn read(&self) -> Vec<String> {
        self.0.lock().expect("no panic").clone()
    }
}

/// Notes when it is dropped.
struct Noted(Diary, &'static str);

impl Drop for Noted {
    fn drop(&mut self) {
        self.0.note(self.1);
    }
}

#[derive(Form)]
struct Party {
    /// How many people?
    #[form(min = 1, max = 12)]
    people: u8,
}

#[derive(Form)]
struct Day {
    day: String,
}

#[derive(Choice)]
enum Colour {
    #[choice(title = "Deep red")]
    Red,
    Blue,
}

#[derive(Form)]
struct Paint {
    colour: Colour,
}

#[derive(Form)]
struct Several {
    colours: Vec<Colour>,
}

async fn several(ask: Ask) -> Result<String, ToolError> {
    let Several { colours } = ask.form("several", "Which colours?").await?;
    Ok(format!("{} colours", colours.len()))
}

#[derive(Serialize, Deserialize, JsonSchema)]
struct Total {
    total: u32,
}

/// One question after the other; the work before them is done once.
async fn book(State(diary): State<Diary>, ask: Ask) -> Result<String, ToolError> {
    diary.note("run");
    let _noted = Noted(diary, "dropped");
    let Party { people } = ask.form("party", "How many people?").await?;
    let Day { day } = ask.form("day", "Which day?").await?;
    Ok(format!("{people} on {day}, round {}", ask.round()))
}

/// Three kinds of question at once.
async fn together(ask: Ask) -> Result<String, ToolError> {
    let (Party { people }, said, roots) = try_join!(
        ask.form("party", "How many people?"),
        ask.sample("model", CreateMessageRequestParams::text("Say hello", 10)),
        ask.roots("roots"),
    )?;
    Ok(format!("{people}, {}, {} roots", said.text(), roots.len()))
}

async fn by_hand(State(diary): State<Diary>, round: Round) -> Result<Reply, ToolError> {
    diary.note("run");
    let (Some(Party { people }), Some(Day { day })) = (round.answer("party")?, round.answer("day")?) else {
        return Ok(round.ask([
            Question::form::<Party>("party", "How many people?"),
            Question::form::<Day>("day", "Which day?"),
        ]));
    };
    Ok(Reply::text(format!("{people} on {day}")))
}

/// Hands its work over twice before it is done.
async fn handing_off(State(diary): State<Diary>, round: Round) -> Result<Reply, ToolError> {
    let done = round.state::<u32>()?.unwrap_or(0);
    diary.note(format!("done {done}"));
    if done < 2 {
        return Ok(round.hand_off(&(done + 1)));
    }
    Ok(Reply::text("handed off twice"))
}

async fn paint(ask: Ask) -> Result<String, ToolError> {
    let Paint { colour } = ask.form("paint", "Which colour?").await?;
    Ok(match colour {
        Colour::Red => "red".to_owned(),
        Colour::Blue => "blue".to_owned(),
    })
}

async fn page(ask: Ask) -> Result<&'static str, ToolError> {
    ask.url("page", "Please sign in", "https://example.com/sign-in").await?;
    Ok("signed in")
}

/// Gives up on a question when the other one is answered.
async fn either(ask: Ask) -> Result<String, ToolError> {
    tokio::select! {
        party = ask.form::<Party>("party", "How many people?") => Ok(format!("{} people", party?.people)),
        day = ask.form::<Day>("day", "Which day?") => Ok(format!("on {}", day?.day)),
    }
}

/// A step, a question, a place to hand over, and something to wait for.
async fn patient(State(diary): State<Diary>, ask: Ask) -> Result<String, ToolError> {
    ask.once("step", |_| async {
        diary.note("step");
        Ok::<_, ToolError>(1)
    })
    .await?;
    let Day { day } = ask.form("day", "Which day?").await?;
    ask.checkpoint("place").await?;
    let looks = ask
        .until("looks", async || {
            diary.note("look");
            let looks = diary.read().iter().filter(|what| *what == "look").count();
            Ok::<_, ToolError>((looks == 3).then_some(looks))
        })
        .await?;
    Ok(format!("{day}, after {looks} looks"))
}

async fn chatty(log: Log) -> &'static str {
    log.send(roundtrip::wire::LoggingLevel::Debug, "debug");
    log.info("info");
    log.error("error");
    "said"
}

async fn slow(connection: ResumableStream, ask: Ask) -> Result<String, ToolError> {
    connection.let_go();
    let Day { day } = ask.form("day", "Which day?").await?;
    Ok(day)
}

#[derive(Deserialize, JsonSchema)]
struct Topic {
    topic: String,
}

pub(crate) fn server(diary: &Diary) -> Server {
    Server::new("eras", "1")
        .state(diary.clone())
        .tool(Tool::new("book", book))
        .tool(Tool::new("together", together))
        .tool(Tool::new("by_hand", by_hand))
        .tool(Tool::new("handing_off", handing_off))
        .tool(Tool::new("paint", paint))
        .tool(Tool::new("page", page))
        .tool(Tool::new("either", either))
        .tool(Tool::new("chatty", chatty))
        .tool(Tool::new("slow", slow))
        .tool(Tool::new("patient", patient))
        .tool(Tool::new("several", several))
        .tool(Tool::new("number", async || Json(42)))
        .tool(Tool::new("total", async || Json(Total { total: 42 })))
        .tool(Tool::new("link", async || ResourceLink {
            name: "notes".into(),
            uri: "test://notes".into(),
            ..ResourceLink::default()
        }))
        .prompt(Prompt::new("asking", async |ask: Ask| {
            let Day { day } = ask.form("day", "Which day?").await?;
            Ok::<_, AskError>(format!("what happens on {day}"))
        }))
        .resource(Resource::new("test://notes", "notes", async || "notes"))
        .template(ResourceTemplate::new(
            "test://asking/{topic}",
            "asking",
            async |Args(Topic { topic }): Args<Topic>, ask: Ask| {
                let Day { day } = ask.form("day", "Which day?").await?;
                Ok::<_, AskError>(format!("{topic} on {day}"))
            },
        ))
}
