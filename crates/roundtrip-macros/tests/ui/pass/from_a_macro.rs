//! Types may come out of another macro.

extern crate roundtrip_core as roundtrip;

macro_rules! form {
    ($name:ident { $($field:ident: $ty:ty = $default:literal),* }) => {
        #[derive(roundtrip_macros::Form)]
        struct $name {
            $(#[form(default = $default)] $field: $ty,)*
        }
    };
}

form!(Party { people: u8 = 2, note: String = "" });

fn main() {
    let Party { people, note } = roundtrip::form::Form::from_content(&Default::default()).unwrap();
    assert_eq!((people, note.as_str()), (2, ""));
}
