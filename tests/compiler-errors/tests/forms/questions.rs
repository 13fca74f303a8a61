use roundtrip::Form;

#[derive(Form)]
#[form(key = "party")]
struct NoMessage {
    people: u8,
}

#[derive(Form)]
#[form(message = "How many?")]
struct NoKey {
    people: u8,
}

#[derive(Form)]
#[form(key = "", message = "How many?")]
struct EmptyKey {
    people: u8,
}

#[derive(Form)]
#[form(key = "a", message = "How many at {restaurant?")]
struct Open {
    people: u8,
}

#[derive(Form)]
#[form(key = "b", message = "How many at restaurant}?")]
struct Closed {
    people: u8,
}

#[derive(Form)]
#[form(key = "c", message = "How many at {}?")]
struct Nameless {
    people: u8,
}

fn main() {}
