use roundtrip_macros::{Choice, Form};
use serde_json::{Value, json};

use crate::{read, recalled};

#[derive(Choice, Debug, PartialEq)]
enum Seat {
    Window,
    Garden,
}

#[derive(Form, Debug, PartialEq)]
struct Party {
    #[form(min = 1, max = 12)]
    people: u8,
    #[form(format = "date")]
    date: String,
    outside: bool,
    budget: f64,
    seat: Seat,
    #[form(max_items = 2)]
    seats: Vec<Seat>,
    note: Option<String>,
    second: Option<Seat>,
    others: Option<Vec<Seat>>,
}

fn valid() -> Value {
    json!({
        "people": 2, "date": "2026-07-28", "outside": true, "budget": 100, "seat": "garden",
        "seats": ["window", "garden"], "note": "", "second": "window", "others": []
    })
}

/// What is said about a valid answer with one field changed.
#[track_caller]
fn says(field: &str, value: Value, message: &str) {
    let mut content = valid();
    content[field] = value;
    assert_eq!(read::<Party>(&content), Err(format!("{field}: {message}")));
}

/// M12: An answer that fits its form is read into its type.
#[test]
fn a_valid_answer_is_read() {
    let party = Party {
        people: 2,
        date: "2026-07-28".to_owned(),
        outside: true,
        budget: 100.0,
        seat: Seat::Garden,
        seats: vec![Seat::Window, Seat::Garden],
        note: Some(String::new()),
        second: Some(Seat::Window),
        others: Some(vec![]),
    };
    assert_eq!(recalled::<Party>(&valid()), party);
    assert_eq!(read::<Party>(&valid()), Ok(party));
}

/// M12: What is not of the field's type is refused, also where it looks like it.
#[test]
fn wrong_types_are_refused() {
    says("people", json!("2"), "must be a whole number");
    says("people", json!(2.5), "must be a whole number");
    says("date", json!(20260728), "must be text");
    says("outside", json!("true"), "must be true or false");
    says("budget", json!("100"), "must be a number");
    says("seat", json!("Garden"), r#"must be one of "window", "garden""#);
    says("seats", json!("window"), "must be a list");
    says("seats", json!(["roof"]), r#"each choice must be one of "window", "garden""#);
    says("note", json!(false), "must be text");
}

/// M12: What is out of bounds is refused with the bound.
#[test]
fn values_out_of_range_are_refused() {
    says("people", json!(0), "must be at least 1");
    says("people", json!(13), "must be at most 12");
    says("date", json!("tomorrow"), "must be a date such as 2026-07-28");
    says("seats", json!(["window", "window", "window"]), "must have at most 2 choices");
}

/// M12: A field that is no `Option` must be there; one that is need not.
#[test]
fn required_is_what_is_no_option() {
    let problems = "people: is required; date: is required; outside: is required; budget: is required; \
                    seat: is required; seats: is required";
    assert_eq!(read::<Party>(&json!({})), Err(problems.to_owned()));
    let mut content = valid();
    for field in ["note", "second", "others"] {
        content[field] = json!(null);
    }
    let party = read::<Party>(&content).unwrap();
    assert_eq!((party.note, party.second, party.others), (None, None, None));
    says("people", json!(null), "is required");
}

#[test]
fn fields_nobody_asked_for_are_left_aside() {
    let mut content = valid();
    content["extra"] = json!({ "nested": true });
    assert_eq!(read::<Party>(&content), read(&valid()));
}

/// C11: A field with a default need not be sent, and has its default then, also for null.
#[test]
fn defaults_stand_in_for_what_was_left_out() {
    #[derive(Form, Debug, PartialEq)]
    struct Defaults {
        #[form(default = "Ada")]
        text: String,
        #[form(default = true)]
        flag: bool,
        #[form(default = -3)]
        whole: i64,
        #[form(default = 1.5)]
        number: f32,
        #[form(default = "garden")]
        seat: Seat,
        #[form(default = ["garden", "window"])]
        seats: Vec<Seat>,
    }
    let defaults = Defaults {
        text: "Ada".to_owned(),
        flag: true,
        whole: -3,
        number: 1.5,
        seat: Seat::Garden,
        seats: vec![Seat::Garden, Seat::Window],
    };
    let nulls =
        json!({ "text": null, "flag": null, "whole": null, "number": null, "seat": null, "seats": null });
    assert_eq!(read::<Defaults>(&json!({})).as_ref(), Ok(&defaults));
    assert_eq!(recalled::<Defaults>(&json!({})), defaults);
    assert_eq!(read::<Defaults>(&nulls).as_ref(), Ok(&defaults));
    let content =
        json!({ "text": "", "flag": false, "whole": 4, "number": 2, "seat": "window", "seats": [] });
    let answered = Defaults {
        text: String::new(),
        flag: false,
        whole: 4,
        number: 2.0,
        seat: Seat::Window,
        seats: vec![],
    };
    assert_eq!(read(&content), Ok(answered));
}

/// M12: Whole numbers of 64 bits are read exactly, and no further.
#[test]
fn large_whole_numbers_are_exact() {
    #[derive(Form, Debug, PartialEq)]
    struct Large {
        signed: i64,
        unsigned: u64,
    }
    let content = json!({ "signed": i64::MIN, "unsigned": u64::MAX });
    assert_eq!(read(&content), Ok(Large { signed: i64::MIN, unsigned: u64::MAX }));
    let content = json!({ "signed": 1e3, "unsigned": 2.0 });
    assert_eq!(read(&content), Ok(Large { signed: 1000, unsigned: 2 }));
    for (content, field) in [
        (json!({ "signed": u64::MAX, "unsigned": 0 }), "signed"),
        (json!({ "signed": 0, "unsigned": 1e20 }), "unsigned"),
    ] {
        let problem = format!("{field}: must be a whole number closer to zero");
        assert_eq!(read::<Large>(&content), Err(problem));
    }
    let problem = "unsigned: must be at least 0".to_owned();
    assert_eq!(read::<Large>(&json!({ "signed": 0, "unsigned": -1 })), Err(problem));
}

#[test]
fn a_single_precision_number_is_finite() {
    #[derive(Form, Debug, PartialEq)]
    struct Short {
        number: f32,
    }
    assert_eq!(read(&json!({ "number": 0.5 })), Ok(Short { number: 0.5 }));
    let problem = "number: must be a number closer to zero".to_owned();
    assert_eq!(read::<Short>(&json!({ "number": 1e300 })), Err(problem));
}

#[test]
fn renamed_fields_are_read_under_their_names() {
    #[derive(Form, Debug, PartialEq)]
    #[form(rename_all = "kebab-case")]
    struct Renamed {
        first_name: String,
        #[form(rename = "surname")]
        last_name: Option<String>,
    }
    let renamed = Renamed { first_name: "Ada".to_owned(), last_name: Some("Lovelace".to_owned()) };
    assert_eq!(read(&json!({ "first-name": "Ada", "surname": "Lovelace" })), Ok(renamed));
    let problem = "first-name: is required".to_owned();
    assert_eq!(read::<Renamed>(&json!({ "first_name": "Ada" })), Err(problem));
}
