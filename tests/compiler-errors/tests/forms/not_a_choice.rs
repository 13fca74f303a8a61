use roundtrip::Form;

struct Address {
    street: String,
}

enum Seat {
    Window,
}

#[derive(Form)]
struct Person {
    address: Address,
}

#[derive(Form)]
struct Table {
    #[form(default = "window")]
    seat: Seat,
}

#[derive(Form)]
struct Tables {
    seats: Vec<Seat>,
}

type Count = u8;

#[derive(Form)]
struct Aliased {
    count: Count,
}

fn main() {}
