//! Flows: requests that are answered with questions until the flow ends.

use memchr::{memchr2, memmem};
use serde_json::Value;

use crate::{
    Fail,
    request::{Ask, FIRST_NUMBER, NUMBERS, head, meta},
};

/// Builds the retries of one connection.
#[derive(Debug)]
pub(crate) struct Retries {
    /// Everything before the length of the body.
    head: String,
    meta: String,
}

impl Retries {
    pub(crate) fn new(ask: Ask, host: &str) -> Self {
        Self { head: head(ask, host), meta: meta(ask) }
    }

    /// Returns the request that answers the question of this round.
    pub(crate) fn answer(&self, number: usize, rounds: usize, round: usize, state: &str) -> String {
        let body = body(&shown(number), rounds, Some((round, state)), &self.meta);
        format!("{}{}\r\n\r\n{body}", self.head, body.len())
    }
}

/// Returns the body that begins a flow, or that answers the question of a round; each has an id of its own. The
/// `requestState` is a JSON string, and is sent back byte for byte.
pub(crate) fn body(number: &str, rounds: usize, answer: Option<(usize, &str)>, meta: &str) -> String {
    let round = answer.map_or(0, |(round, _)| round);
    let answer = answer.map_or(String::new(), |(round, state)| {
        let (key, reason) = (key(round), reason(number, round));
        format!(
            r#""inputResponses":{{"{key}":{{"action":"accept","content":{{"approve":true,"reason":"{reason}"}}}}}},"requestState":{state},"#
        )
    });
    format!(
        r#"{{"jsonrpc":"2.0","id":{number}{round:02},"method":"tools/call","params":{{"name":"deploy","arguments":{{"service":"service-{number}","env":"prod","rounds":{rounds}}},{answer}"_meta":{meta}}}}}"#
    )
}

/// Returns the `requestState` that comes with the right question: a JSON string, quotes and escapes included.
pub(crate) fn question(answer: &str, number: usize, round: usize) -> Option<&str> {
    let asked = [format!(r#""{}":"#, key(round)), format!(r#""{}""#, message(&shown(number)))];
    if !asked.iter().all(|asked| memmem::find(answer.as_bytes(), asked.as_bytes()).is_some()) {
        return None;
    }
    // Inside a string the quotes of this key would have backslashes before them.
    let name = r#""requestState":"#;
    let state = answer[memmem::find(answer.as_bytes(), name.as_bytes())? + name.len()..].trim_start();
    let mut end = state.starts_with('"').then_some(1)?;
    loop {
        end += memchr2(b'"', b'\\', state.as_bytes().get(end..)?)?;
        if state.as_bytes()[end] == b'"' {
            return Some(&state[..=end]);
        }
        end += 2;
    }
}

/// Returns whether the flow has ended, with the reason that was given last.
pub(crate) fn is_over(answer: &str, number: usize, rounds: usize) -> bool {
    memmem::find(answer.as_bytes(), format!(r#""{}""#, end(&shown(number), rounds)).as_bytes()).is_some()
}

/// Checks the answer to a round in full. After the last one the flow ends.
pub(crate) fn check(answer: &str, number: usize, round: usize, rounds: usize) -> Result<(), Fail> {
    let value: Value = serde_json::from_str(answer)?;
    let id = (FIRST_NUMBER + number % NUMBERS) * 100 + round;
    let number = shown(number);
    let result = &value["result"];
    let right = if round < rounds {
        let asked = &result["inputRequests"][key(round + 1)];
        let fields = &asked["params"]["requestedSchema"]["properties"];
        result["resultType"] == "input_required"
            && result["inputRequests"].as_object().is_some_and(|questions| questions.len() == 1)
            && asked["method"] == "elicitation/create"
            && asked["params"]["message"] == message(&number)
            && fields["approve"]["type"] == "boolean"
            && fields["reason"]["type"] == "string"
            && result["requestState"].as_str().is_some_and(|state| !state.is_empty())
    } else {
        result["resultType"] == "complete" && result["content"][0]["text"] == end(&number, rounds)
    };
    if right && value["jsonrpc"] == "2.0" && value["id"] == id {
        Ok(())
    } else {
        Err(format!("a wrong answer in round {round}: {answer}").into())
    }
}

/// Formats the number as in requests.
fn shown(number: usize) -> String {
    (FIRST_NUMBER + number % NUMBERS).to_string()
}

fn key(round: usize) -> String {
    if round == 1 { "confirm".to_owned() } else { format!("confirm-{round}") }
}

fn message(number: &str) -> String {
    format!("Deploy service-{number} to prod?")
}

fn reason(number: &str, round: usize) -> String {
    format!("approved {number}-{round:02}")
}

fn end(number: &str, rounds: usize) -> String {
    format!("deployed service-{number} to prod after {rounds} answers: {}", reason(number, rounds))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takes_the_state_as_it_was_spelled() {
        let answer = |state: &str| {
            format!(
                r#"{{"requestState": {state},"inputRequests":{{"confirm-2":{{"message":"Deploy service-1000007 to prod?"}}}}}}"#
            )
        };
        for state in [r#""abc""#, r#""a\"b\\""#, r#""\u0041\/""#, r#""""#] {
            assert_eq!(question(&answer(state), 7, 2), Some(state));
        }
        for broken in ["7", "null"] {
            assert_eq!(question(&answer(broken), 7, 2), None, "{broken}");
        }
        assert_eq!(question(&answer(r#""abc""#), 7, 1), None);
        assert_eq!(question(&answer(r#""abc""#), 8, 2), None);
    }
}
