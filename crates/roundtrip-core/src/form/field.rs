//! Types of fields beyond text, numbers and booleans.

use super::{Alternative, Choice};

/// A type that can be a field of a form: a [`Choice`], or a type that is written as text, such as a date.
///
/// Types of `jiff`, `chrono`, `time`, `url` and `uuid` are fields with the cargo features of these names. A type of your own
/// that is written as text becomes one by implementing the trait:
///
/// ```
/// use roundtrip_core::form::{Field, Shape};
///
/// struct Plate(String);
///
/// impl Field for Plate {
///     const SHAPE: Shape = Shape::TEXT;
///
///     fn from_text(text: &str) -> Result<Self, String> {
///         let fits = text.split_once('-').is_some_and(|(town, rest)| town.len() <= 3 && rest.len() <= 6);
///         if fits { Ok(Self(text.to_uppercase())) } else { Err("must be a number plate such as B-MX 42".into()) }
///     }
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a field of a form",
    label = "not something a form can ask for",
    note = "elicitation forms are flat: a field is a `String`, a `bool`, an integer of up to 64 bits, an `f32` or \
            `f64`, an enum with `#[derive(Choice)]`, a `Vec` of such an enum, an `Option` of one of these, or a type \
            that implements `form::Field`, such as the dates of `jiff` with the feature of that name",
    note = "the derive macro sees a type's name only, so write these types by their own names, not by an alias"
)]
pub trait Field: Sized + Send + 'static {
    /// The part of its schema that the type decides.
    const SHAPE: Shape;

    /// Reads a text that fits the shape.
    ///
    /// # Errors
    /// Says what the text must be, as in `must be a date`: the question is asked again, with the reason.
    fn from_text(text: &str) -> Result<Self, String>;
}

impl<T: Choice> Field for T {
    const SHAPE: Shape = Shape::Choice(T::ALTERNATIVES);

    fn from_text(text: &str) -> Result<Self, String> {
        T::from_value(text).ok_or_else(|| "must be one of the choices".to_owned())
    }
}

/// Shape of a [`Field`] on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Shape {
    /// One of several values.
    Choice(&'static [Alternative]),
    /// Text, with its `format` if it has one.
    Text {
        /// `email`, `uri`, `date` or `date-time`: the formats that MCP allows.
        format: Option<&'static str>,
    },
}

impl Shape {
    /// Text without a format.
    pub const TEXT: Self = Self::Text { format: None };

    /// Returns the shape of text with a format: `email`, `uri`, `date` or `date-time`.
    pub const fn text(format: &'static str) -> Self {
        Self::Text { format: Some(format) }
    }
}
