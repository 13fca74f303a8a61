//! Objects as lists of the values of their members, which serde would read by position.

use serde_json::Value;

/// Asserts that a value is read, and that it is not with any of its objects as a list. Where anything is taken, as in kept JSON,
/// the value has no object.
#[track_caller]
pub(crate) fn assert_read_by_name(value: &Value, read: impl Fn(&Value) -> bool) {
    assert!(read(value), "{value}");
    let mut places = Vec::new();
    find_objects(value, String::new(), &mut places);
    for place in places {
        let mut listed = value.clone();
        let object = listed.pointer_mut(&place).expect("a place");
        let members = object.as_object().expect("an object").values().cloned().collect();
        *object = Value::Array(members);
        assert!(!read(&listed), "a list was taken at `{place}`: {listed}");
    }
}

fn find_objects(value: &Value, place: String, places: &mut Vec<String>) {
    match value {
        Value::Object(members) => {
            for (name, member) in members {
                let name = name.replace('~', "~0").replace('/', "~1");
                find_objects(member, format!("{place}/{name}"), places);
            }
            places.push(place);
        }
        Value::Array(items) => {
            items
                .iter()
                .enumerate()
                .for_each(|(at, item)| find_objects(item, format!("{place}/{at}"), places));
        }
        _ => {}
    }
}
