//! The macros of Roundtrip. Use them through the `roundtrip` crate, which re-exports them beside the traits they
//! implement or check.
//!
//! | file | content |
//! |---|---|
//! | `form`, `field`, `kind`, `bounds` | `#[derive(Form)]`: the struct, a field, the kind of its type, its bounds |
//! | `choice` | `#[derive(Choice)]` |
//! | `debug_handler` | `#[debug_handler]` |
//! | `derive`, `errors` | the preamble of both derive macros, the errors they collect |
//! | `setting`, `doc`, `case`, `template` | reading attributes, doc comments, names, messages |

mod bounds;
mod case;
mod choice;
mod debug_handler;
mod derive;
mod doc;
mod errors;
mod field;
mod form;
mod kind;
mod setting;
mod template;

use proc_macro::TokenStream;
use syn::{DeriveInput, parse_macro_input};

/// Makes a struct with named fields a form that a user can be asked to fill in.
///
/// Forms are flat, so a field is a `String`, a `bool`, an integer of up to 64 bits, an `f32` or `f64`, an enum
/// with [`#[derive(Choice)]`](macro@Choice), a `Vec` of such an enum, or a type that implements `form::Field`, as
/// those of `jiff`, `chrono`, `time`, `url` and `uuid` do with the features of these names. Anything else does not
/// compile. A field must be filled in unless it is an `Option` or has a default. Its doc comment is the description users see.
///
/// ```
/// # extern crate roundtrip_core as roundtrip;
/// # use roundtrip_macros::{Choice, Form};
/// #[derive(Choice)]
/// enum Seating { Window, Garden }
///
/// #[derive(Form)]
/// #[form(key = "party", message = "A table at {restaurant}: for whom?")]
/// struct Party {
///     /// How many people?
///     #[form(min = 1, max = 12)]
///     people: u8,
///     #[form(title = "Where to confirm", format = "email")]
///     email: Option<String>,
///     #[form(default = "window")]
///     seating: Seating,
/// }
/// # use roundtrip::form::Form as _;
/// # let content = serde_json::json!({ "people": 2 });
/// # assert_eq!(Party::from_content(content.as_object().unwrap()).unwrap().people, 2);
/// ```
///
/// # Settings of a field
///
/// | setting | goes with | meaning |
/// |---|---|---|
/// | `title = ".."` | all | the label users see |
/// | `rename = ".."` | all | the name on the wire; the field's own by default |
/// | `default = ..` | all but `Option` | the value to begin with, and if the field is left out; a choice's is the value as text, a list's is `[".."]` |
/// | `min = ..`, `max = ..` | numbers | the bounds; those of its type by default |
/// | `min_length = ..`, `max_length = ..` | `String` | the number of characters |
/// | `format = ".."` | `String` | `"email"`, `"uri"`, `"date"` or `"date-time"` |
/// | `min_items = ..`, `max_items = ..` | `Vec` | the number of choices |
///
/// # Settings of the form
///
/// | setting | meaning |
/// |---|---|
/// | `rename_all = ".."` | the spelling of all names: `"camelCase"`, `"kebab-case"` and so on |
/// | `key = ".."`, `message = ".."` | the key and message of the question, so that a handler can take the form as a parameter; `{name}` in the message stands for an argument of the call, `{{` and `}}` for braces |
/// | `crate = ".."` | the path of the `form` module, where it is not `::roundtrip::form` |
#[proc_macro_derive(Form, attributes(form))]
pub fn derive_form(input: TokenStream) -> TokenStream {
    form::DERIVE.expand(&parse_macro_input!(input as DeriveInput)).into()
}

/// Makes an enum without fields a choice: a field of a form that takes one of several values, or, as a `Vec`,
/// some of them.
///
/// A variant's value on the wire is its name in snake case. Its title, which is what users see, is
/// `#[choice(title = "..")]`, or else the first paragraph of its doc comment without the full stop. When no
/// variant has a title, users see the values.
///
/// ```
/// # extern crate roundtrip_core as roundtrip;
/// # use roundtrip_macros::Choice;
/// #[derive(Choice)]
/// enum Seating {
///     /// By the window
///     Window,
///     #[choice(rename = "outside", title = "In the garden")]
///     Garden,
/// }
/// # use roundtrip::form::Choice as _;
/// # assert_eq!(Seating::ALTERNATIVES[0].title, Some("By the window"));
/// # assert_eq!(Seating::Garden.value(), "outside");
/// # assert!(matches!(Seating::from_value("window"), Some(Seating::Window)));
/// ```
///
/// `#[choice(rename_all = "..")]` on the enum sets the spelling of all values, and `#[choice(crate = "..")]` the
/// path of the `form` module, where it is not `::roundtrip::form`.
#[proc_macro_derive(Choice, attributes(choice))]
pub fn derive_choice(input: TokenStream) -> TokenStream {
    choice::DERIVE.expand(&parse_macro_input!(input as DeriveInput)).into()
}

/// Checks a handler where it is written, and changes nothing about it.
///
/// The compiler reports a function that cannot be a handler where it is given to a tool, prompt or resource. With this
/// attribute it reports, at the function, each parameter that no call can provide, a return type that cannot be answered
/// with, the ninth parameter, and the value that keeps the future from being `Send`.
///
/// It checks the handler of a tool; `#[debug_handler(prompt)]`, `#[debug_handler(resource)]` and `#[debug_handler(completer)]`
/// check those of a prompt, of a resource or template, and of a completion. It cannot check generic functions and closures.
#[proc_macro_attribute]
pub fn debug_handler(offer: TokenStream, function: TokenStream) -> TokenStream {
    debug_handler::expand(offer.into(), &function.into()).into()
}
