//! What derived forms ask for, and what they make of answers.

// Generated code finds its traits where users have them.
extern crate roundtrip_core as roundtrip;

#[cfg(test)]
mod answer;
#[cfg(test)]
mod choice;
#[cfg(test)]
mod question;
#[cfg(test)]
mod schema;

#[cfg(test)]
use {
    roundtrip::form::Form,
    roundtrip::wire::ElicitSchema,
    serde_json::{Value, json},
};

/// A form's schema must be this JSON, which must also be what others read from it.
#[cfg(test)]
#[track_caller]
fn asks_for<F: Form>(properties: &Value, required: &[&str]) {
    let mut expected = json!({ "type": "object", "properties": properties });
    if !required.is_empty() {
        expected["required"] = json!(required);
    }
    let text = F::definition().json().get();
    assert_eq!(serde_json::from_str::<Value>(text).unwrap(), expected);
    assert_eq!(&serde_json::from_str::<ElicitSchema>(text).unwrap(), F::definition().schema());
}

#[cfg(test)]
fn read<F: Form>(content: &Value) -> Result<F, String> {
    F::from_content(content.as_object().unwrap()).map_err(|problems| problems.to_string())
}

/// Reads an answer as a replay does, which has it from a journal.
#[cfg(test)]
fn recalled<F: Form>(content: &Value) -> F {
    F::recall(&F::definition().pack(content.as_object().unwrap())).unwrap()
}
