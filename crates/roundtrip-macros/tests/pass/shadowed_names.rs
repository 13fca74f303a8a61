//! Generated code does not depend on what names mean around it.
#![no_implicit_prelude]
#![deny(warnings)]
#![deny(missing_docs, unused_qualifications)]
#![expect(missing_debug_implementations, reason = "derived code would find the names that are shadowed here")]

extern crate roundtrip_core as roundtrip;

use ::roundtrip_macros::{Choice, Form};

/// Shadows.
pub mod core {}
/// Shadows.
pub mod std {}
/// Shadows.
#[expect(non_camel_case_types, reason = "the name of a primitive type")]
pub struct str;

/// A choice.
#[derive(Choice)]
pub enum Seat {
    /// By the window
    Window,
    /// Called like a variant of the prelude
    None,
}

/// A form.
#[derive(Form)]
#[form(key = "table", message = "Where?")]
pub struct Table {
    /// A seat.
    #[form(default = "none")]
    pub seat: Seat,
    /// Seats.
    #[form(default = ["window"])]
    pub seats: ::std::vec::Vec<Seat>,
    /// Text.
    #[form(format = "date", default = "2026-07-28")]
    pub date: ::std::string::String,
    /// A number.
    pub people: ::std::option::Option<u8>,
    /// Called like a variable of the generated code.
    pub answer: bool,
    /// Called like another.
    pub content: bool,
}

fn main() {}
