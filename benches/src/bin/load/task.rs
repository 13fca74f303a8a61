//! Tasks: requests that begin one and ask about it, and their answers.

use std::sync::{Mutex, PoisonError};

use memchr::memmem;

use crate::request::{Ask, TASK, head_of, meta};

/// Ids of the tasks that a server has created.
#[derive(Debug, Default)]
pub(crate) struct Created(Mutex<Vec<String>>);

impl Created {
    pub(crate) fn push(&self, id: String) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(id);
    }

    /// Returns one of them: numbers that follow each other lead to ids that lie apart.
    pub(crate) fn pick(&self, number: usize) -> Option<String> {
        let ids = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        ids.get(number.wrapping_mul(7_919) % ids.len().max(1)).cloned()
    }

    pub(crate) fn len(&self) -> usize {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).len()
    }
}

/// Returns a request about a task.
pub(crate) fn about(method: &str, id: &str, more: &str, host: &str) -> String {
    request(method, id, &format!(r#""taskId":"{id}"{more}"#), Ask::Get(""), host)
}

/// Returns a request about a task in the dialect that shows no result.
pub(crate) fn about_bare(method: &str, id: &str, host: &str) -> String {
    request(method, id, &format!(r#""taskId":"{id}""#), Ask::GetBare, host)
}

/// Returns a call that becomes a task.
pub(crate) fn call(tool: &str, arguments: &str, host: &str) -> String {
    let parameters = format!(r#""name":"{tool}","arguments":{arguments},{TASK}"#);
    request("tools/call", tool, &parameters, Ask::WaitingTask, host)
}

fn request(method: &str, name: &str, parameters: &str, ask: Ask, host: &str) -> String {
    let meta = meta(ask);
    let body =
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{{{parameters},"_meta":{meta}}}}}"#);
    format!("{}{}\r\n\r\n{body}", head_of(method, Some(name), host), body.len())
}

/// Returns the id of the task that an answer says was created.
pub(crate) fn created(answer: &str) -> Option<&str> {
    contains(answer, r#""resultType":"task""#).then(|| string(answer, "taskId")).flatten()
}

/// Returns whether an answer is about this task, in this status, and has what the status brings along.
pub(crate) fn has(answer: &str, id: &str, status: &str) -> bool {
    let brings = match status {
        "input_required" => r#""inputRequests":{""#,
        "completed" => r#""result":{""#,
        _ => "",
    };
    string(answer, "taskId") == Some(id) && is(answer, status) && contains(answer, brings)
}

/// Returns whether a task has this status.
pub(crate) fn is(answer: &str, status: &str) -> bool {
    string(answer, "status") == Some(status)
}

/// Returns the string of a member. No value here has an escape in it.
pub(crate) fn string<'a>(answer: &'a str, name: &str) -> Option<&'a str> {
    let member = format!(r#""{name}":""#);
    let rest = &answer[memmem::find(answer.as_bytes(), member.as_bytes())? + member.len()..];
    Some(&rest[..rest.find('"')?])
}

fn contains(answer: &str, text: &str) -> bool {
    memmem::find(answer.as_bytes(), text.as_bytes()).is_some()
}
