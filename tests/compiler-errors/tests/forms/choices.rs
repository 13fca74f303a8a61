use roundtrip::{Choice, Form};

#[derive(Choice)]
struct Struct {
    field: u8,
}

#[derive(Choice)]
enum Nothing {}

#[derive(Choice)]
enum Fields {
    Window(u8),
    Garden { tables: u8 },
}

#[derive(Choice)]
enum Generic<T> {
    Window,
    Other(T),
}

#[derive(Choice)]
enum Twice {
    Window,
    #[choice(rename = "window")]
    Other,
}

#[derive(Choice)]
#[choice(rename = "x")]
enum Unknown {
    #[choice(value = "window")]
    Window,
    #[choice(title = "")]
    Garden,
}

// What is wrong with the enum is said there, and not again here.
#[derive(Form)]
struct User {
    #[form(default = "window")]
    fields: Fields,
}

fn main() {}
