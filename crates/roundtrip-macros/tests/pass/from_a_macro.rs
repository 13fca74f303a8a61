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
    let party = <Party as roundtrip::form::Form>::from_content(&Default::default());
    let party = party.map(|Party { people, note }| (people, note));
    assert_eq!(party.ok(), Some((2, String::new())));
}
