//! Answers to a server's questions: from the terminal, from a file, or by a rule of the command line.

mod answers;
pub(crate) mod form;
mod hint;
mod model;
pub(crate) mod page;
mod review;
mod sampler;
pub(crate) mod terminal;

use std::path::{Path, PathBuf};

use anstyle::Style;
use clap::Args;
use roundtrip::Pending;
use roundtrip::client::{Answer, Kind, PendingQuestion};
use roundtrip::form::fill_defaults;
use roundtrip::wire::{
    ClientCapabilities, ElicitSchema, InputRequest, Method, PrimitiveSchemaDefinition as Field, Root,
    RootsCapability, SamplingCapability,
};
use serde_json::{Map, Value, json};

use crate::exit::{Exit, Failure};
use crate::output::err;
use crate::printable::{printable, printable_lines};
use crate::rows::{MARK, Screen, clipped};
use answers::{Answers, Given};
use model::Model;
use page::Consent;
use review::Reviewed;
use sampler::{Program, Sampler};

/// Greatest width of the name of a server or a tool, in columns.
const MAX_NAME: usize = 40;

/// Options that say how questions are answered.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Questions")]
pub(crate) struct AskOptions {
    /// File with answers by key: `{"<key>": {content} | "accept" | "decline" | "cancel"}`, or a list of these for a
    /// question that is asked again
    #[arg(long, value_name = "FILE", conflicts_with_all = ["yes", "decline_all"])]
    answers: Option<PathBuf>,
    /// Accept every form with its defaults, and say yes where a yes or no is wanted; web pages are not consented to
    #[arg(long, conflicts_with = "decline_all")]
    yes: bool,
    /// Decline every form and web page
    #[arg(long)]
    decline_all: bool,
    /// Answer prompts for a language model by a command: the request comes as JSON on its standard input, and what it
    /// prints is the message
    #[arg(long, value_name = "COMMAND")]
    sampler: Option<String>,
    /// Answer prompts for a language model by this model of an OpenAI-compatible endpoint (OPENAI_BASE_URL,
    /// OPENAI_API_KEY)
    #[arg(long, value_name = "NAME", conflicts_with = "sampler")]
    model: Option<String>,
    /// Folder or `file://` URI that servers are told of as a root
    #[arg(long = "root", value_name = "FOLDER")]
    roots: Vec<String>,
}

/// Source of the answers to forms and pages.
enum Policy {
    Terminal,
    Answers(Answers),
    Yes,
    DeclineAll,
    Nobody,
}

/// Author of the questions of a round.
pub(crate) enum By {
    /// The server, which has just sent them.
    Server,
    /// A file, which somebody else than this user may have written.
    File(String),
}

/// Answers the questions of one command.
pub(crate) struct Asker {
    policy: Policy,
    sampler: Option<Sampler>,
    roots: Vec<Root>,
    /// Address or command by which the server was reached.
    label: String,
    /// True once the user has said no.
    declined: bool,
}

impl Asker {
    /// Reads the options. Without any of them, the terminal is asked if there is one.
    pub(crate) fn new(options: &AskOptions, label: String) -> Result<Self, Failure> {
        let policy = match &options.answers {
            Some(file) => Policy::Answers(Answers::read(file)?),
            None if options.yes => Policy::Yes,
            None if options.decline_all => Policy::DeclineAll,
            None if terminal::is_there() => Policy::Terminal,
            None => Policy::Nobody,
        };
        let roots = options.roots.iter().map(|root| as_root(root)).collect::<Result<_, _>>()?;
        let command = options.sampler.clone().map(|command| Sampler::Command(Program(command)));
        let model = || options.model.clone().map(|name| Sampler::Model(Model::from_env(name)));
        let sampler = command.or_else(model);
        Ok(Self { policy, sampler, roots, label, declined: false })
    }

    /// Returns the capabilities to declare, besides forms and web pages, which calls by hand declare.
    pub(crate) fn capabilities(&self) -> ClientCapabilities {
        let by_file = matches!(self.policy, Policy::Answers(_));
        ClientCapabilities {
            roots: (by_file || !self.roots.is_empty()).then(RootsCapability::default),
            sampling: (by_file || self.sampler.is_some()).then(SamplingCapability::default),
            ..ClientCapabilities::default()
        }
    }

    /// Returns whether a question was declined or cancelled.
    pub(crate) fn has_declined(&self) -> bool {
        self.declined
    }

    /// Fails if a file had answers to questions that were not asked.
    pub(crate) fn all_used(&self) -> Result<(), Failure> {
        match &self.policy {
            Policy::Answers(answers) => answers.all_used(),
            _ => Ok(()),
        }
    }

    /// Answers all open questions of a round.
    pub(crate) async fn answer<M: Method>(
        &mut self,
        mut pending: Pending<M>,
        by: By,
    ) -> Result<Pending<M>, Failure> {
        let keys: Vec<String> = pending.open().map(|question| question.key().to_owned()).collect();
        if matches!(self.policy, Policy::Terminal) && !keys.is_empty() {
            self.introduce(&pending, &by);
        }
        for key in keys {
            let question = pending.open().find(|question| question.key() == key);
            let Some(question) = question else { continue };
            let given = self.given(&question, &pending).await?;
            self.declined |= given.is_refusal();
            pending = given.put(pending, &key)?;
        }
        Ok(pending)
    }

    async fn given<M: Method>(
        &mut self,
        question: &PendingQuestion<'_>,
        pending: &Pending<M>,
    ) -> Result<Given, Failure> {
        let says_yes = matches!(self.policy, Policy::Yes);
        let unanswered = || if says_yes { not_by_yes(pending) } else { unanswered(pending) };
        let is_for_user = matches!(question.kind(), Kind::Form | Kind::Url);
        if let Policy::Answers(answers) = &mut self.policy
            && (is_for_user || answers.have(question.key()))
        {
            return answers.take(question.key(), pending);
        }
        match question.request() {
            InputRequest::CreateMessage(params) => match &self.sampler {
                Some(sampler) => sampler.message(params).await.map(Given::Answer),
                None => Err(unanswered()),
            },
            InputRequest::ListRoots(_) if !self.roots.is_empty() => {
                let roots =
                    Answer::roots(self.roots.clone()).map_err(|misfit| Failure::usage(misfit.to_string()))?;
                Ok(Given::Answer(roots))
            }
            InputRequest::ListRoots(_) => Err(unanswered()),
            InputRequest::Elicit(_) => match &self.policy {
                Policy::DeclineAll => Ok(Given::Answer(Answer::decline())),
                Policy::Yes => question.schema().and_then(agreed).map(Given::Answer).ok_or_else(unanswered),
                Policy::Terminal => typed(question).await.map(Given::Answer),
                _ => Err(unanswered()),
            },
        }
    }

    /// Says which server asks: by its own account, and how it was reached, which no server can make up. A file asks in the name of a
    /// server that has perhaps never seen the question.
    fn introduce<M: Method>(&self, pending: &Pending<M>, by: &By) {
        let bold = Style::new().bold();
        let label = printable(&self.label);
        let target = clipped(&printable(&pending.target().unwrap_or_default()), MAX_NAME);
        let name = pending.server().map_or_else(String::new, |server| {
            format!("{bold}{}{bold:#} ", clipped(&printable(&server.name), MAX_NAME))
        });
        let server = format!("{name}at {bold}{label}{bold:#}");
        let (lead, text) = match by {
            By::Server => ("The server ", format!("{server} asks, for {target}:")),
            By::File(file) => {
                let file = printable(file);
                ("The file ", format!("{file} asks, in the name of the server {server}, for {target}:"))
            }
        };
        err!("{}", Screen::Err.rows(lead, &text));
    }
}

/// Asks in the terminal.
async fn typed(question: &PendingQuestion<'_>) -> Result<Answer, Failure> {
    // Each row is marked, so that no text of a server looks like ours.
    if let Some(message) = question.message().filter(|message| !message.is_empty()) {
        err!("{}", Screen::Err.rows(MARK, &printable_lines(message)));
    }
    if let Some(url) = question.url().map(str::to_owned) {
        let page = url.clone();
        return Ok(match terminal::prompted(move || page::ask(&page)).await? {
            Consent::Open => {
                page::open(url).await;
                Answer::consent()
            }
            Consent::Elsewhere => Answer::consent(),
            Consent::Decline => Answer::decline(),
            Consent::Cancel => Answer::cancel(),
        });
    }
    let schema =
        question.schema().cloned().ok_or_else(|| Failure::new(Exit::Asked, "there is no way to ask this"))?;
    let asked = schema.clone();
    match terminal::prompted(move || review::ask(&asked)).await? {
        Reviewed::Accept(content) => {
            Answer::fill(&schema, content).map_err(|misfit| Failure::usage(misfit.to_string()))
        }
        Reviewed::Decline => Ok(Answer::decline()),
        Reviewed::Cancel => Ok(Answer::cancel()),
    }
}

/// Returns the answer that agrees to a form: its defaults, and yes to the rest; `None` if more is wanted.
fn agreed(schema: &roundtrip::wire::RequestedSchema) -> Option<Answer> {
    let mut content = Map::new();
    fill_defaults(schema, &mut content);
    for (name, _) in open_booleans(schema) {
        content.entry(name.clone()).or_insert(Value::Bool(true));
    }
    Answer::fill(schema, content).ok()
}

fn open_booleans(schema: &ElicitSchema) -> impl Iterator<Item = &(String, Field)> {
    schema.properties.iter().filter(|(name, field)| {
        matches!(field, Field::Boolean(_)) && schema.required.iter().any(|wanted| wanted == name)
    })
}

/// Creates the error of a call that stops at its questions, which it lists.
pub(crate) fn stopped<M: Method>(why: impl Into<String>, pending: &Pending<M>) -> Failure {
    let asked = pending.open().map(|question| describe(&question));
    let failure = Failure::new(Exit::Asked, why).with("questions", asked.collect::<Vec<Value>>());
    pending.open().fold(failure, |failure, question| {
        let text: Vec<&str> = question.message().into_iter().chain(question.url()).collect();
        failure.quote(format!("{} ({}): {}", question.key(), question.kind(), text.join(" ")))
    })
}

/// Creates the error of a call that nobody is there to answer.
pub(crate) fn unanswered<M: Method>(pending: &Pending<M>) -> Failure {
    stopped("the server asks, and nobody is there to answer", pending)
        .note("answer in a terminal, by `--answers FILE`, or keep the call by `--save FILE`")
}

/// Creates the error of a call with a question to which there is no yes.
fn not_by_yes<M: Method>(pending: &Pending<M>) -> Failure {
    stopped("the server asks for more than `--yes` can answer", pending)
        .note("answer in a terminal without `--yes`, or by `--answers FILE`")
}

/// Describes a question for programs.
fn describe(question: &PendingQuestion<'_>) -> Value {
    let mut shown = json!({ "key": question.key(), "kind": question.kind().to_string() });
    match question.kind() {
        Kind::Form => {
            shown["message"] = question.message().into();
            shown["schema"] = question.schema().map_or(Value::Null, |schema| schema.raw().to_value());
        }
        Kind::Url => {
            shown["message"] = question.message().into();
            shown["url"] = question.url().into();
        }
        _ => {}
    }
    shown
}

fn as_root(text: &str) -> Result<Root, Failure> {
    let uri = if text.starts_with("file://") {
        text.to_owned()
    } else {
        let folder = std::path::absolute(Path::new(text)).ok();
        let url = folder.and_then(|folder| reqwest::Url::from_file_path(folder).ok());
        url.ok_or_else(|| Failure::usage(format!("`--root {text}` is no folder")))?.to_string()
    };
    Ok(Root { uri, ..Root::default() })
}
