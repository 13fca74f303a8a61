//! The tools, and the answers to `tools/call` and `tools/list`.

use std::{collections::HashMap, error::Error};

use serde::Deserialize;
use serde_json::json;

use crate::{
    flow::Flows,
    message::{Message, Params, Refusal, Text, write_string},
    parts,
};

#[derive(Clone, Copy)]
enum Tool {
    Echo,
    Deploy,
    Parts,
}

pub(crate) const SERVER_INFO: &str = concat!(
    r#""_meta":{"io.modelcontextprotocol/serverInfo":{"name":"limit","version":""#,
    env!("CARGO_PKG_VERSION"),
    r#""}}"#
);

/// Registered tools, and their list as it goes over the wire.
pub(crate) struct Tools {
    by_name: HashMap<String, Tool>,
    listed: String,
    flows: Flows,
}

impl Tools {
    /// Registers `echo`, `deploy`, `parts` and this many unused tools.
    pub(crate) fn new(fillers: usize) -> Result<Self, Box<dyn Error>> {
        let text = json!({
            "type": "object",
            "properties": { "text": { "type": "string", "description": "What to say back." } },
            "required": ["text"],
        });
        let deployment = json!({
            "type": "object",
            "properties": {
                "service": { "type": "string" },
                "env": { "type": "string" },
                "rounds": { "type": "integer", "minimum": 0, "default": 1 },
            },
            "required": ["service", "env"],
        });
        let tools = [
            ("echo".to_owned(), "Says back what it is told", &text, Tool::Echo),
            ("deploy".to_owned(), "Deploys a service, once it is confirmed", &deployment, Tool::Deploy),
            ("parts".to_owned(), "Writes a long log", &json!({ "type": "object" }), Tool::Parts),
        ];
        let fillers = (0..fillers)
            .map(|n| (format!("filler_{n:05}"), "A tool that is never called", &text, Tool::Echo));
        let mut by_name = HashMap::new();
        let mut listed = Vec::new();
        for (name, description, schema, tool) in tools.into_iter().chain(fillers) {
            listed.push(json!({ "name": name, "description": description, "inputSchema": schema }));
            by_name.insert(name, tool);
        }
        let listed = serde_json::to_string(&listed)?;
        let listed = format!(
            r#","result":{{"resultType":"complete","tools":{listed},"ttlMs":0,"cacheScope":"public",{SERVER_INFO}}}}}"#
        );
        Ok(Self { by_name, listed, flows: Flows::new()? })
    }

    /// Returns whether the request, whose metadata has been checked, is to be answered in parts.
    pub(crate) fn answers_in_parts(&self, message: &Message<'_>) -> bool {
        let params = message.params.as_ref().filter(|params| params.stream.is_some());
        params.is_some_and(|params| {
            let tool = params.name.as_ref().and_then(|name| self.by_name.get(&*name.0));
            matches!(tool, Some(Tool::Parts)) && message.method.0 == "tools/call" && parts::wanted(params)
        })
    }

    /// Answers a request whose metadata has been checked.
    pub(crate) fn answer(&self, out: &mut Vec<u8>, message: &Message<'_>, id: &str) -> Result<(), Refusal> {
        match &*message.method.0 {
            "tools/call" => self.call(out, message, id),
            "tools/list" => {
                out.reserve(self.listed.len() + id.len() + 32);
                write_head(out, id);
                out.extend_from_slice(self.listed.as_bytes());
                Ok(())
            }
            _ => Err(Refusal::new(404, -32601, "method not found")),
        }
    }

    fn call(&self, out: &mut Vec<u8>, message: &Message<'_>, id: &str) -> Result<(), Refusal> {
        let params = message.params.as_ref().ok_or(Refusal::new(200, -32602, "no such tool"))?;
        let tool = params.name.as_ref().and_then(|name| self.by_name.get(&*name.0));
        let tool = tool.ok_or(Refusal::new(200, -32602, "no such tool"))?;
        out.reserve(256 + params.arguments.map_or(0, |raw| raw.get().len()));
        write_head(out, id);
        match tool {
            Tool::Echo => echo(out, params)?,
            Tool::Deploy => self.flows.deploy(out, params)?,
            Tool::Parts => parts::write_whole(out),
        }
        out.push(b'}');
        Ok(())
    }
}

pub(crate) fn write_head(out: &mut Vec<u8>, id: &str) {
    out.extend_from_slice(br#"{"jsonrpc":"2.0","id":"#);
    out.extend_from_slice(id.as_bytes());
}

/// Writes the final result of a call.
pub(crate) fn write_text(out: &mut Vec<u8>, text: &str, is_error: bool) {
    out.extend_from_slice(br#","result":{"resultType":"complete","content":[{"type":"text","text":"#);
    write_string(out, text);
    out.extend_from_slice(b"}],");
    if is_error {
        out.extend_from_slice(br#""isError":true,"#);
    }
    out.extend_from_slice(SERVER_INFO.as_bytes());
    out.push(b'}');
}

fn echo(out: &mut Vec<u8>, params: &Params<'_>) -> Result<(), Refusal> {
    #[derive(Deserialize)]
    struct Arguments<'a> {
        #[serde(borrow)]
        text: Text<'a>,
    }
    let arguments = params.arguments.and_then(|raw| serde_json::from_str::<Arguments<'_>>(raw.get()).ok());
    let arguments = arguments.ok_or(Refusal::new(200, -32602, "echo needs a text"))?;
    write_text(out, &arguments.text.0, false);
    Ok(())
}
