use serde_json::json;

use super::schema;
use crate::form::Definition;

#[test]
fn a_digest_is_the_same_in_every_process() {
    let yes = Definition::new(schema(&json!({ "yes": { "type": "boolean" } }), &["yes"]));
    assert_eq!(
        yes.json().get(),
        r#"{"type":"object","properties":{"yes":{"type":"boolean"}},"required":["yes"]}"#
    );
    let digest: String = yes.digest().iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(digest, "980e22cdf547a3ecd041e7201de36536");
}

#[test]
fn any_difference_makes_another_digest() {
    let digest = |description: &str, required: &[&str]| {
        let property = json!({ "type": "boolean", "description": description });
        Definition::new(schema(&json!({ "yes": property }), required)).digest()
    };
    assert_eq!(digest("Sure?", &["yes"]), digest("Sure?", &["yes"]));
    assert_ne!(digest("Sure?", &["yes"]), digest("Sure?", &[]));
    assert_ne!(digest("Sure?", &["yes"]), digest("Quite sure?", &["yes"]));
}
