//! A modern request, split into its parts and translated for a legacy server.

use bytes::Bytes;
use roundtrip_core::exchange::Params;
use roundtrip_core::wire::{
    CallTool, ClientCapabilities, GetPrompt, InputResponses, LoggingLevel, Message, Method as _,
    ProgressToken, Raw, ReadResource, RequestId, RequestMeta, TaskPayload, encode_request, json, meta,
};
use serde_json::json;

use crate::client::{ApiMisuse, Caller, Error, Outgoing};

/// Parameter that names a task.
pub(super) const TASK_ID: &str = "taskId";

/// A modern request, with its protocol fields apart from the other parameters.
#[derive(Clone)]
pub(super) struct Request {
    /// Id of the request.
    pub(super) id: RequestId,
    pub(super) method: &'static str,
    /// Parameters that both eras have.
    pub(super) params: Params,
    /// Entries of `_meta` that both eras have.
    meta: Params,
    pub(super) log_level: Option<LoggingLevel>,
    pub(super) state: Option<String>,
    pub(super) answers: InputResponses,
    pub(super) hello: Hello,
}

/// Identity and settings of a caller, which a session begins with.
#[derive(Clone)]
pub(super) struct Hello {
    pub(super) info: Raw,
    pub(super) capabilities: ClientCapabilities,
    pub(super) caller: Caller,
}

impl Request {
    pub(super) fn read(outgoing: &Outgoing) -> Result<Self, Error> {
        let Ok(Message::Request(message)) = Message::decode(&outgoing.message) else {
            return Err(ApiMisuse::Unserializable("this is not a request".to_owned()).into());
        };
        let misfit =
            |error: serde_json::Error| ApiMisuse::Unserializable(format!("this is not a request: {error}"));
        let params = message.params.map_or("{}", serde_json::value::RawValue::get);
        let mut params: Params = json::from_str(params).map_err(misfit)?;
        let fields = params.get("_meta").cloned().unwrap_or_else(|| json!({}).into());
        let fields: RequestMeta<'_> = json::from_str(fields.get()).map_err(misfit)?;
        let mut meta: Params =
            fields.extra.iter().map(|(name, value)| (name.to_string(), Raw::from(*value))).collect();
        if let Some(token) = &fields.progress_token {
            meta.set(meta::key::PROGRESS_TOKEN, Some(token_text(token)));
        }
        let hello = Hello {
            info: fields.client_info.map_or_else(|| json!({ "name": "", "version": "" }).into(), Raw::from),
            capabilities: without_extensions(*fields.client_capabilities),
            caller: outgoing.caller.clone(),
        };
        let state = params.get("requestState").and_then(|state| state.to().ok());
        let answers = params.get("inputResponses").and_then(|answers| answers.to().ok()).unwrap_or_default();
        // Whether a call is a task is decided in the session.
        for modern in ["_meta", "requestState", "inputResponses", "stream", "task"] {
            params.set(modern, None);
        }
        let (id, method) = (outgoing.id.clone(), outgoing.method);
        Ok(Self { id, method, params, meta, log_level: fields.log_level, state, answers, hello })
    }

    /// Returns the same request with one more parameter.
    pub(super) fn with(&self, name: &'static str, value: Raw) -> Self {
        let mut request = self.clone();
        request.params.set(name, Some(value));
        request
    }

    /// Returns a request for the result of a task, in the name of the same caller.
    pub(super) fn for_result_of(&self, task: &str) -> Self {
        let params = Params::from_iter([(TASK_ID, Raw::from(json!(task)))]);
        let (answers, meta) = (InputResponses::new(), Params::default());
        let (id, hello) = (self.id.clone(), self.hello.clone());
        Self { id, method: TaskPayload::NAME, params, meta, log_level: None, state: None, answers, hello }
    }

    /// Returns whether the request's call can be asked questions.
    pub(super) fn may_ask(&self) -> bool {
        [CallTool::NAME, GetPrompt::NAME, ReadResource::NAME, TaskPayload::NAME].contains(&self.method)
    }

    /// Returns the task whose questions the request's call is asked.
    pub(super) fn task(&self) -> Option<String> {
        let id = self.params.get(TASK_ID).filter(|_| self.method == TaskPayload::NAME);
        id.and_then(|id| id.to().ok())
    }

    /// Encodes the request for a legacy server.
    pub(super) fn legacy_message(&self) -> Result<Bytes, Error> {
        let mut params = self.params.clone();
        if !self.meta.is_empty() {
            params.set("_meta", Some(encoded(Raw::of(&self.meta))?));
        }
        encoded(encode_request(&self.id, self.method, &params)).map(Bytes::from)
    }
}

fn token_text(token: &ProgressToken) -> Raw {
    match token {
        RequestId::Number(number) => json!(number).into(),
        RequestId::String(text) => json!(text).into(),
    }
}

/// Removes extensions, which only the modern era has.
fn without_extensions(mut capabilities: ClientCapabilities) -> ClientCapabilities {
    capabilities.extensions.clear();
    capabilities
}

/// Maps an error of serialisation, which none of our messages should cause.
pub(super) fn encoded<T>(result: Result<T, serde_json::Error>) -> Result<T, Error> {
    result
        .map_err(|error| ApiMisuse::Unserializable(format!("the message does not serialise: {error}")).into())
}
