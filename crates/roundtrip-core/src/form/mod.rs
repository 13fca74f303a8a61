//! Forms: the check of answers against a form's schema, and the traits of Rust types that are forms (client,
//! "Elicitation", "Form Mode Elicitation Requests").
//!
//! The schema itself is [`wire::ElicitSchema`](crate::wire::ElicitSchema); this module adds the rules. The server
//! checks the answers it gets with them, the client those it is about to send. `#[derive(Form)]` and
//! `#[derive(Choice)]` write the implementations of the traits here.

mod check;
mod choice;
mod definition;
#[doc(hidden)]
pub mod derive;
mod field;
#[cfg(any(feature = "chrono", feature = "jiff", feature = "time", feature = "url", feature = "uuid"))]
mod foreign;
mod format;
mod message;
mod packed;
mod problem;
#[cfg(test)]
mod tests;

pub use check::{check, fill_defaults};
pub use choice::{Alternative, Choice};
pub use definition::Definition;
pub use field::{Field, Shape};
pub use message::{fill_message, placeholders};
pub use problem::{Problem, Problems};

use crate::wire::JsonObject;

/// A type that is a form: it has a schema and reads answers. Derived with `#[derive(Form)]`.
///
/// Implement it by hand for a schema that no type can express; keep the definition in a static so that it is
/// serialised once:
///
/// ```
/// # use std::sync::LazyLock;
/// # use roundtrip_core::form::{Definition, Form, Problems, check};
/// # use roundtrip_core::wire::{BooleanSchema, ElicitSchema, JsonObject, PrimitiveSchemaDefinition};
/// struct Consent(bool);
///
/// impl Form for Consent {
///     fn definition() -> &'static Definition {
///         static DEFINITION: LazyLock<Definition> = LazyLock::new(|| {
///             let agree = PrimitiveSchemaDefinition::Boolean(BooleanSchema::default());
///             Definition::new(ElicitSchema {
///                 properties: vec![("agree".to_owned(), agree)],
///                 ..ElicitSchema::default()
///             })
///         });
///         &DEFINITION
///     }
///
///     fn from_content(content: &JsonObject) -> Result<Self, Problems> {
///         let content = check(Self::definition().schema(), content)?;
///         Ok(Self(content.get("agree").is_some_and(|agree| agree == true)))
///     }
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a form",
    label = "not a form",
    note = "a struct with named fields becomes one with `#[derive(Form)]`"
)]
pub trait Form: Sized + Send + 'static {
    /// Returns the definition, the same for every question of this type.
    fn definition() -> &'static Definition;

    /// Reads the content of an answer. Properties the form does not have are ignored; defaults replace fields that
    /// were left out.
    ///
    /// # Errors
    /// Fails if the content breaks the schema.
    fn from_content(content: &JsonObject) -> Result<Self, Problems>;

    /// Reads an answer that was checked before, as [`Definition::pack`] wrote it. A replay reads every earlier answer
    /// of the handler, so derived code is quick here and does not check again.
    ///
    /// # Errors
    /// Fails if it is not an answer to this form.
    fn recall(packed: &str) -> Result<Self, Problems> {
        Self::from_content(&Self::definition().unpack(packed))
    }
}

/// A form with its own key and message, so that a handler can take its answer as a parameter.
///
/// `#[derive(Form)]` implements it for a form with `#[form(key = "..", message = "..")]`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not say how it is asked for",
    label = "not a question",
    note = "a form becomes a question with `#[derive(Form)]` and `#[form(key = \"..\", message = \"..\")]`"
)]
pub trait Asks: Form {
    /// The key of the question, unique within a call.
    const KEY: &'static str;

    /// The message to the user, with `{name}` where an argument of the call goes ([`fill_message`]).
    const MESSAGE: &'static str;
}
