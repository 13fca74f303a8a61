use roundtrip::Form;

#[derive(Form)]
struct Tuple(u8, u8);

#[derive(Form)]
struct Unit;

#[derive(Form)]
enum Either {
    This,
    That,
}

#[derive(Form)]
union Bits {
    whole: u8,
}

#[derive(Form)]
struct Generic<T> {
    value: T,
}

#[derive(Form)]
struct Borrowed<'a> {
    text: &'a str,
}

fn main() {}
