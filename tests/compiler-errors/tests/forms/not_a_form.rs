use roundtrip::form::{Asks, Form};

struct Plain {
    people: u8,
}

#[derive(roundtrip::Form)]
struct Silent {
    people: u8,
}

fn ask<T: Form>() {}

fn asked<T: Asks>() {}

fn main() {
    ask::<Plain>();
    asked::<Silent>();
}
