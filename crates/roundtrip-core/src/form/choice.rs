//! Types that stand for one of several values.

/// A fieldless enum whose variants are the values a user may choose from. Derived with `#[derive(Choice)]`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a field of a form",
    label = "not something a form can ask for",
    note = "elicitation forms are flat: a field is a `String`, a `bool`, an integer of up to 64 bits, an `f32` or \
            `f64`, an enum with `#[derive(Choice)]`, a `Vec` of such an enum, or an `Option` of one of these",
    note = "the derive macro sees a type's name only, so write these types by their own names, not by an alias"
)]
pub trait Choice: Sized + Send + 'static {
    /// The values to choose from, in the order people shall see them.
    const ALTERNATIVES: &'static [Alternative];

    /// Returns the value on the wire.
    fn value(&self) -> &'static str;

    /// Returns the variant with that value.
    fn from_value(value: &str) -> Option<Self>;
}

/// One value to choose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Alternative {
    /// The value on the wire.
    pub value: &'static str,
    /// The title people see; the value where absent.
    pub title: Option<&'static str>,
}
