//! A language model behind an OpenAI-compatible endpoint.

use std::time::Duration;

use reqwest::header::{AUTHORIZATION, CONTENT_TYPE};
use reqwest::redirect::Policy;
use roundtrip::wire::{
    CreateMessageRequestParams, CreateMessageResult, Role, SamplingMessageContentBlock as Block, json,
};
use serde_json::{Value, json};

use crate::server::address;

/// Longest time to connect.
const CONNECT: Duration = Duration::from_secs(10);
/// Greatest size of a response, in bytes.
const MAX_RESPONSE: usize = 1024 * 1024;
/// Endpoint where the environment names none.
const DEFAULT_BASE: &str = "https://api.openai.com/v1";

/// A model, and the way to it.
pub(super) struct Model {
    name: String,
    url: String,
    key: Option<String>,
}

impl Model {
    /// Takes endpoint and key from the environment: `OPENAI_BASE_URL`, `OPENAI_API_KEY`.
    pub(super) fn from_env(name: String) -> Self {
        let base = std::env::var("OPENAI_BASE_URL").unwrap_or_else(|_| DEFAULT_BASE.to_owned());
        let url = format!("{}/chat/completions", base.trim_end_matches('/'));
        Self { name, url, key: std::env::var("OPENAI_API_KEY").ok() }
    }

    /// Asks the model.
    pub(super) async fn message(
        &self,
        params: &CreateMessageRequestParams,
    ) -> Result<CreateMessageResult, String> {
        let body = request(&self.name, params)?.to_string();
        let text = |error: reqwest::Error| error.without_url().to_string();
        let client = client(&self.url).map_err(text)?;
        let mut request = client.post(&self.url).header(CONTENT_TYPE, "application/json").body(body);
        if let Some(key) = &self.key {
            request = request.header(AUTHORIZATION, format!("Bearer {key}"));
        }
        let mut response = request.send().await.map_err(text)?;
        let status = response.status();
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(text)? {
            if body.len() + chunk.len() > MAX_RESPONSE {
                return Err(format!("it answered more than {MAX_RESPONSE} bytes"));
            }
            body.extend_from_slice(&chunk);
        }
        if !status.is_success() {
            return Err(format!("it answered HTTP {status}"));
        }
        let response: Value = json::from_slice(&body).map_err(|error| error.to_string())?;
        result(&response, &self.name)
    }
}

/// Builds the client. Key and messages go to the endpoint that the environment names, and nowhere else: a model on this machine is not
/// asked through a proxy.
fn client(url: &str) -> Result<reqwest::Client, reqwest::Error> {
    let client = reqwest::Client::builder().redirect(Policy::none()).connect_timeout(CONNECT);
    let url = reqwest::Url::parse(url).ok();
    let is_here = url.as_ref().and_then(reqwest::Url::host_str).is_some_and(address::is_loopback);
    if is_here { client.no_proxy() } else { client }.build()
}

fn request(model: &str, params: &CreateMessageRequestParams) -> Result<Value, String> {
    let system = params.system_prompt.iter().map(|text| Ok(json!({ "role": "system", "content": text })));
    let messages = params.messages.iter().map(|message| {
        let role = if message.role == Role::Assistant { "assistant" } else { "user" };
        let texts = message.content.blocks().iter().map(|block| match block {
            Block::Text(text) => Ok(text.text.as_str()),
            _ => Err("only text can be sent to it".to_owned()),
        });
        Ok(json!({ "role": role, "content": texts.collect::<Result<String, String>>()? }))
    });
    let messages = system.chain(messages).collect::<Result<Vec<Value>, String>>()?;
    let mut request = json!({ "model": model, "messages": messages, "max_tokens": params.max_tokens });
    if let Some(temperature) = params.temperature {
        request["temperature"] = temperature.into();
    }
    if !params.stop_sequences.is_empty() {
        request["stop"] = params.stop_sequences.clone().into();
    }
    Ok(request)
}

fn result(response: &Value, model: &str) -> Result<CreateMessageResult, String> {
    let choice = &response["choices"][0];
    let text = choice["message"]["content"].as_str().ok_or("its answer has no message")?;
    let mut result = CreateMessageResult::assistant(text, response["model"].as_str().unwrap_or(model));
    result.stop_reason = match choice["finish_reason"].as_str() {
        Some("stop") => Some("endTurn".to_owned()),
        Some("length") => Some("maxTokens".to_owned()),
        other => other.map(str::to_owned),
    };
    Ok(result)
}

#[cfg(test)]
mod tests {
    use roundtrip::wire::SamplingMessage;

    use super::*;

    #[test]
    fn a_prompt_is_written_as_the_endpoint_wants_it() {
        let params = CreateMessageRequestParams {
            system_prompt: Some("Be brief".into()),
            stop_sequences: vec!["END".into()],
            messages: vec![SamplingMessage::user("Hello")],
            max_tokens: 9,
            ..CreateMessageRequestParams::default()
        };
        let messages =
            json!([{ "role": "system", "content": "Be brief" }, { "role": "user", "content": "Hello" }]);
        let wanted = json!({ "model": "m", "messages": messages, "max_tokens": 9, "stop": ["END"] });
        assert_eq!(request("m", &params), Ok(wanted));
    }

    #[test]
    fn an_answer_is_a_message() {
        let choice = json!({ "message": { "content": "Hi" }, "finish_reason": "length" });
        let read = result(&json!({ "model": "m-1", "choices": [choice] }), "m").unwrap();
        assert_eq!((read.text().as_str(), read.model.as_str()), ("Hi", "m-1"));
        assert_eq!(read.stop_reason.as_deref(), Some("maxTokens"));
        assert!(result(&json!({}), "m").is_err());
    }
}
