use roundtrip::{Choice, Form};

#[derive(Choice)]
enum Seat {
    Window,
}

#[derive(Form)]
struct Defaults {
    #[form(default = "Window")]
    seat: Seat,
    #[form(default = ["window", "garden"])]
    seats: Vec<Seat>,
    #[form(format = "date", default = "2026-02-30")]
    date: String,
}

fn main() {}
