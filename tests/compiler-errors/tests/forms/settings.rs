use roundtrip::{Choice, Form};

#[derive(Choice)]
enum Seat {
    Window,
}

#[derive(Form)]
struct Misplaced {
    #[form(min = 1)]
    flag: bool,
    #[form(format = "date", max_length = 3)]
    number: u8,
    #[form(max = 3)]
    text: String,
    #[form(min_items = 1)]
    one: Seat,
    #[form(min = 1)]
    some: Vec<Seat>,
}

#[derive(Form)]
#[form(title = "A form")]
struct Unknown {
    #[form(minimum = 1)]
    number: u8,
}

#[derive(Form)]
struct Malformed {
    #[form(title = 5)]
    a: u8,
    #[form(min)]
    b: u8,
    #[form(min = 1, min = 2)]
    c: u8,
    #[form(min = "1")]
    d: u8,
    #[form]
    e: u8,
    #[form(format = "time")]
    f: String,
    #[form(min_length = -1)]
    g: String,
    #[form(default = 'x')]
    h: String,
    #[form(default = Seat::Window)]
    i: Seat,
}

fn main() {}
