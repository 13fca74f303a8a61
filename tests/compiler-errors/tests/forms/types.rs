use std::collections::HashMap;

use roundtrip::Form;

#[derive(Form)]
struct Types {
    list: Vec<String>,
    numbers: Option<Vec<u8>>,
    map: HashMap<String, String>,
    pair: (u8, u8),
    array: [u8; 4],
    huge: u128,
    size: usize,
    letter: char,
    borrowed: &'static str,
    boxed: Box<String>,
    twice: Option<Option<u8>>,
    lists: Vec<Vec<bool>>,
}

fn main() {}
