//! The tools, and the answers to `tools/call` and `tools/list`.

use std::collections::HashMap;

use serde::Deserialize;
use serde_json::{json, value::RawValue};

use crate::message::{Message, Refusal, Text, write_string};

type Tool = fn(&mut Vec<u8>, Option<&RawValue>) -> Result<(), Refusal>;

const SERVER_INFO: &str = concat!(
    r#""_meta":{"io.modelcontextprotocol/serverInfo":{"name":"limit","version":""#,
    env!("CARGO_PKG_VERSION"),
    r#""}}"#
);

/// The registered tools, and their list as it goes over the wire.
pub(crate) struct Tools {
    by_name: HashMap<String, Tool>,
    listed: String,
}

impl Tools {
    /// `echo` and as many tools that nobody calls.
    pub(crate) fn new(fillers: usize) -> serde_json::Result<Self> {
        let mut by_name: HashMap<String, Tool> = HashMap::new();
        let mut listed = Vec::new();
        let fillers = (0..fillers).map(|n| (format!("filler_{n:05}"), "A tool that is never called"));
        for (name, description) in
            [("echo".to_owned(), "Says back what it is told")].into_iter().chain(fillers)
        {
            listed.push(json!({
                "name": name,
                "description": description,
                "inputSchema": {
                    "type": "object",
                    "properties": { "text": { "type": "string", "description": "What to say back." } },
                    "required": ["text"],
                },
            }));
            by_name.insert(name, echo);
        }
        let listed = serde_json::to_string(&listed)?;
        let listed = format!(
            r#","result":{{"resultType":"complete","tools":{listed},"ttlMs":0,"cacheScope":"public",{SERVER_INFO}}}}}"#
        );
        Ok(Self { by_name, listed })
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
        let params = message.params.as_ref();
        let name = params.and_then(|params| params.name.as_ref());
        let tool = name.and_then(|name| self.by_name.get(&*name.0));
        let tool = tool.ok_or(Refusal::new(200, -32602, "no such tool"))?;
        let arguments = params.and_then(|params| params.arguments);
        out.reserve(256 + arguments.map_or(0, |raw| raw.get().len()));
        write_head(out, id);
        out.extend_from_slice(br#","result":{"resultType":"complete","content":["#);
        tool(out, arguments)?;
        out.extend_from_slice(b"],");
        out.extend_from_slice(SERVER_INFO.as_bytes());
        out.extend_from_slice(b"}}");
        Ok(())
    }
}

fn write_head(out: &mut Vec<u8>, id: &str) {
    out.extend_from_slice(br#"{"jsonrpc":"2.0","id":"#);
    out.extend_from_slice(id.as_bytes());
}

fn echo(out: &mut Vec<u8>, arguments: Option<&RawValue>) -> Result<(), Refusal> {
    #[derive(Deserialize)]
    struct Arguments<'a> {
        #[serde(borrow)]
        text: Text<'a>,
    }
    let arguments = arguments.and_then(|raw| serde_json::from_str::<Arguments<'_>>(raw.get()).ok());
    let arguments = arguments.ok_or(Refusal::new(200, -32602, "echo needs a text"))?;
    out.extend_from_slice(br#"{"type":"text","text":"#);
    write_string(out, &arguments.text.0);
    out.push(b'}');
    Ok(())
}
