use roundtrip::form::{Asks, fill_message};
use roundtrip_macros::Form;
use serde_json::json;

#[derive(Form)]
#[form(key = "party", message = "How many people at {restaurant}? {{1 to 12}}")]
#[expect(dead_code, reason = "only how it is asked for is looked at")]
struct Party {
    people: u8,
}

#[test]
fn a_form_knows_how_it_is_asked_for() {
    fn question<T: Asks>() -> (&'static str, &'static str) {
        (T::KEY, T::MESSAGE)
    }
    let (key, message) = question::<Party>();
    assert_eq!(key, "party");
    let arguments = json!({ "restaurant": "Nopa" });
    let filled = fill_message(message, arguments.as_object().unwrap());
    assert_eq!(filled, "How many people at Nopa? {1 to 12}");
}
