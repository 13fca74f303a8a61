//! `roundtrip list`: what a server offers.

use anstyle::Style;
use clap::{Args, ValueEnum};
use roundtrip::Client;
use roundtrip::wire::{Prompt, Resource, ResourceTemplate, Tool};
use serde::Serialize;

use crate::exit::Failure;
use crate::output::{self, out};
use crate::printable::printable;
use crate::progress::Progress;
use crate::rows::Screen;
use crate::server::{Connect, Connection, Endpoint, address};

/// List what a server offers
#[derive(Args)]
#[command(
    override_usage = "roundtrip list [OPTIONS] <SERVER>\n       roundtrip list [OPTIONS] -- <COMMAND>..",
    after_help = "Examples:\n  roundtrip list https://tools.example/mcp\n  roundtrip list --only tools --json -- npx my-server"
)]
pub(crate) struct List {
    /// The server, unless a command stands behind `--`
    #[arg(value_name = "SERVER", num_args = 0..)]
    words: Vec<String>,
    /// List these alone
    #[arg(long, value_name = "WHAT")]
    only: Option<Only>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Command that starts the server
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
    #[command(flatten)]
    connect: Connect,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Only {
    Tools,
    Prompts,
    Resources,
    Templates,
}

/// Lists of a server; those it does not have are absent.
#[derive(Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct Lists {
    #[serde(skip_serializing_if = "Option::is_none")]
    tools: Option<Vec<Tool>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    prompts: Option<Vec<Prompt>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    resources: Option<Vec<Resource>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    resource_templates: Option<Vec<ResourceTemplate>>,
}

impl List {
    pub(crate) fn is_json(&self) -> bool {
        self.json
    }

    pub(crate) async fn run(mut self) -> Result<(), Failure> {
        let endpoint = Endpoint::take(&mut self.words, &self.command, self.connect.config.as_ref())?;
        if let Some(word) = self.words.first() {
            let word = address::without_user_info(word);
            return Err(Failure::usage(format!("`{word}` is one word too many")));
        }
        let progress = Progress::new(self.json);
        let connection = Connection::open(endpoint, &self.connect, None, &progress).await?;
        let work = async {
            let lists = fetch(&connection.client, self.only).await?;
            progress.clear();
            if self.json {
                output::json(&lists);
            } else {
                show(&lists);
            }
            Ok(())
        };
        connection.run(work).await
    }
}

async fn fetch(client: &Client, only: Option<Only>) -> Result<Lists, Failure> {
    let has = client.discover().await?.capabilities;
    let wanted = |what: Only, is_offered: bool| only.map_or(is_offered, |only| only == what);
    let mut lists = Lists::default();
    if wanted(Only::Tools, has.tools.is_some()) {
        lists.tools = Some(client.list_tools().await?);
    }
    if wanted(Only::Prompts, has.prompts.is_some()) {
        lists.prompts = Some(client.list_prompts().await?);
    }
    if wanted(Only::Resources, has.resources.is_some()) {
        lists.resources = Some(client.list_resources().await?);
    }
    if wanted(Only::Templates, has.resources.is_some()) {
        lists.resource_templates = Some(client.list_resource_templates().await?);
    }
    Ok(lists)
}

fn show(lists: &Lists) {
    section("Tools", lists.tools.as_deref(), |tool| {
        let schema = tool.input_schema.to_value();
        let names = schema["properties"].as_object().into_iter().flatten().map(|(name, _)| name.as_str());
        (signature(&tool.name, names), tool.description.as_deref())
    });
    section("Prompts", lists.prompts.as_deref(), |prompt| {
        let names = prompt.arguments.iter().map(|argument| argument.name.as_str());
        (signature(&prompt.name, names), prompt.description.as_deref())
    });
    section("Resources", lists.resources.as_deref(), |resource| {
        (printable(&resource.uri), resource.description.as_deref().or(Some(&resource.name)))
    });
    section("Templates", lists.resource_templates.as_deref(), |template| {
        (printable(&template.uri_template), template.description.as_deref().or(Some(&template.name)))
    });
}

fn signature<'a>(name: &str, arguments: impl Iterator<Item = &'a str>) -> String {
    let arguments: Vec<String> = arguments.map(printable).collect();
    format!("{}({})", printable(name), arguments.join(", "))
}

fn section<T>(title: &str, items: Option<&[T]>, show: impl Fn(&T) -> (String, Option<&str>)) {
    let Some(items) = items.filter(|items| !items.is_empty()) else { return };
    let (bold, dim) = (Style::new().bold(), Style::new().dimmed());
    out!("{bold}{title}{bold:#}");
    for item in items {
        let (name, description) = show(item);
        out!("{}", Screen::Out.rows("  ", &name));
        // The first line says what it is; the rest is for models.
        if let Some(line) = description.and_then(|text| text.lines().find(|line| !line.trim().is_empty())) {
            let line = format!("{dim}{}{dim:#}", printable(line.trim()));
            out!("{}", Screen::Out.rows("    ", &line));
        }
    }
}
