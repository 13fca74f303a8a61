use roundtrip::{Choice, Form};

#[derive(Choice)]
enum Seat {
    Window,
}

#[derive(Form)]
struct Empty {
    #[form(min = 3, max = 2)]
    whole: u8,
    #[form(min = 0.5, max = 0.25)]
    number: f64,
    #[form(min_length = 3, max_length = 2)]
    text: String,
    #[form(min_items = 3, max_items = 2)]
    seats: Vec<Seat>,
}

#[derive(Form)]
struct OutOfReach {
    #[form(max = 300)]
    byte: u8,
    #[form(min = -1)]
    unsigned: u64,
    #[form(min = 0.5)]
    whole: i32,
    #[form(max = 9_007_199_254_740_993)]
    exact: i64,
    #[form(max = 1e999)]
    number: f64,
    #[form(max = 1e300)]
    short: f32,
}

#[derive(Form)]
struct Defaults {
    #[form(min = 1, default = 0)]
    less: u8,
    #[form(max = 12, default = 13)]
    more: u8,
    #[form(default = 256)]
    byte: u8,
    #[form(max = 1, default = 1.5)]
    number: f32,
    #[form(min_length = 2, default = "a")]
    short: String,
    #[form(max_length = 2, default = "grün")]
    long: String,
    #[form(min_items = 1, default = [])]
    none: Vec<Seat>,
    #[form(max_items = 1, default = ["window", "window"])]
    many: Vec<Seat>,
}

#[derive(Form)]
struct WrongDefaults {
    #[form(default = "1")]
    whole: u8,
    #[form(default = true)]
    number: f64,
    #[form(default = 1)]
    text: String,
    #[form(default = "true")]
    flag: bool,
    #[form(default = ["window"])]
    seat: Seat,
    #[form(default = "window")]
    seats: Vec<Seat>,
    #[form(default = 1)]
    optional: Option<u8>,
}

fn main() {}
