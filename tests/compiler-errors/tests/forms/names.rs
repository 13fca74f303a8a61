use roundtrip::Form;

#[derive(Form)]
struct Twice {
    name: String,
    #[form(rename = "name")]
    other: String,
}

#[derive(Form)]
#[form(rename_all = "lowercase")]
struct Folded {
    first_name: String,
    firstname: String,
}

#[derive(Form)]
#[form(rename_all = "camel")]
struct Cases {
    #[form(rename = "")]
    a: String,
}

fn main() {}
