use serde_json::{Value, json};

use super::{object, problem, schema};
use crate::form::{check, fill_defaults};

#[track_caller]
fn fit(property: &Value, values: &[Value]) {
    for value in values {
        assert_eq!(problem(property, value), "", "{value}");
    }
}

#[track_caller]
fn wrong(property: &Value, values: &[Value], message: &str) {
    for value in values {
        assert_eq!(problem(property, value), format!("x: {message}"), "{value}");
    }
}

/// M12: Text is text, and its length counts characters, not bytes.
#[test]
fn text() {
    let property = json!({ "type": "string", "minLength": 1, "maxLength": 3 });
    fit(&property, &[json!("a"), json!("grü"), json!("日本語"), json!("👋🏽a")]);
    wrong(&property, &[json!("")], "must have at least 1 character");
    wrong(&property, &[json!("日本語x")], "must have at most 3 characters");
    wrong(&property, &[json!(1), json!(true), json!(["a"]), json!({})], "must be text");
}

/// M12: A whole number is one by value; text that looks like one is not.
#[test]
fn whole_numbers() {
    let property = json!({ "type": "integer", "minimum": 1, "maximum": 12 });
    fit(&property, &[json!(1), json!(12), json!(1.0), json!(1.2e1)]);
    wrong(
        &property,
        &[json!("1"), json!("42"), json!(1.5), json!(true), json!([1])],
        "must be a whole number",
    );
    wrong(&property, &[json!(0), json!(-1), json!(-1e300)], "must be at least 1");
    wrong(&property, &[json!(13), json!(u64::MAX), json!(1e300)], "must be at most 12");
}

/// M12: A number may have a fraction, and its bounds are part of it.
#[test]
fn numbers() {
    let property = json!({ "type": "number", "minimum": -0.5, "maximum": 2.5 });
    fit(&property, &[json!(-0.5), json!(0), json!(2), json!(2.5)]);
    wrong(&property, &[json!("1"), json!(false)], "must be a number");
    wrong(&property, &[json!(-1), json!(-0.51)], "must be at least -0.5");
    wrong(&property, &[json!(3), json!(2.51)], "must be at most 2.5");
}

#[test]
fn bounds_are_exact_where_doubles_are_not() {
    let property = json!({ "type": "integer", "maximum": 9_007_199_254_740_992_u64 });
    fit(&property, &[json!(9_007_199_254_740_992_u64)]);
    wrong(&property, &[json!(9_007_199_254_740_993_u64)], "must be at most 9007199254740992");
}

/// M12: Yes or no is true or false, not a word or a number for it.
#[test]
fn yes_or_no() {
    let property = json!({ "type": "boolean" });
    fit(&property, &[json!(true), json!(false)]);
    wrong(&property, &[json!("true"), json!(1), json!("yes")], "must be true or false");
}

/// M12: A choice is one of the values, however the schema writes them, and not a title.
#[test]
fn choices() {
    let values = json!(["a", "b"]);
    let titled = json!([{ "const": "a", "title": "A" }, { "const": "b", "title": "B" }]);
    let untitled_choice = json!({ "type": "string", "enum": values });
    let titled_choice = json!({ "type": "string", "oneOf": titled });
    let named_choice = json!({ "type": "string", "enum": values, "enumNames": ["A", "B"] });
    for property in [untitled_choice, titled_choice, named_choice] {
        fit(&property, &[json!("a"), json!("b")]);
        wrong(&property, &[json!("A"), json!(""), json!(0), json!(["a"])], r#"must be one of "a", "b""#);
    }
    let untitled_choices = json!({ "type": "array", "items": { "type": "string", "enum": values } });
    let titled_choices = json!({ "type": "array", "items": { "anyOf": titled } });
    for mut property in [untitled_choices, titled_choices] {
        property["minItems"] = json!(1);
        property["maxItems"] = json!(2);
        fit(&property, &[json!(["a"]), json!(["b", "a"]), json!(["a", "a"])]);
        wrong(&property, &[json!("a"), json!({})], "must be a list");
        wrong(&property, &[json!([])], "must have at least 1 choice");
        wrong(&property, &[json!(["a", "b", "a"])], "must have at most 2 choices");
        wrong(
            &property,
            &[json!(["c"]), json!(["a", 1]), json!([null])],
            r#"each choice must be one of "a", "b""#,
        );
    }
}

#[test]
fn a_long_list_of_choices_is_cut_short() {
    let values: Vec<String> = (0..13).map(|number| number.to_string()).collect();
    let said = problem(&json!({ "type": "string", "enum": values }), &json!("x"));
    assert!(said.ends_with(r#""8", "9" and 3 more"#), "{said}");
}

/// M12: A field that must be filled is missed, also when it is null; one that need not be is not.
#[test]
fn required_fields() {
    let property = json!({ "type": "boolean" });
    let schema = schema(&json!({ "a": property, "b": property }), &["a", "elsewhere"]);
    for content in [json!({}), json!({ "a": null }), json!({ "b": true })] {
        assert_eq!(check(&schema, &object(&content)).unwrap_err().to_string(), "a: is required");
    }
    for content in [json!({ "a": true }), json!({ "a": true, "b": null })] {
        assert_eq!(check(&schema, &object(&content)).unwrap(), object(&json!({ "a": true })));
    }
}

/// C11: Nothing is sent that the form did not ask for.
#[test]
fn extra_properties_are_dropped() {
    let schema = schema(&json!({ "a": { "type": "integer" } }), &[]);
    let content = object(&json!({ "a": 1, "password": "x", "nested": {} }));
    assert_eq!(check(&schema, &content).unwrap(), object(&json!({ "a": 1 })));
}

/// M12: Everything that is wrong is said at once, in the order of the form.
#[test]
fn problems_are_collected() {
    // As text: a `json!` may put the fields in the order of the alphabet.
    let schema = r#"{
        "type": "object",
        "properties": {
            "people": { "type": "integer", "maximum": 12 },
            "email": { "type": "string", "format": "email", "minLength": 9 },
            "name": { "type": "string" }
        },
        "required": ["name", "people"]
    }"#;
    let schema = serde_json::from_str(schema).unwrap();
    let problems = check(&schema, &object(&json!({ "people": 13, "email": "ada" }))).unwrap_err();
    assert_eq!(
        problems.to_string(),
        "people: must be at most 12; email: must have at least 9 characters; \
         email: must be an e-mail address such as ada@example.com; name: is required"
    );
    let fields: Vec<&str> = problems.iter().map(|problem| problem.field.as_str()).collect();
    assert_eq!(fields, ["people", "email", "email", "name"]);
}

#[test]
fn ten_problems_are_enough() {
    let names: Vec<String> = (10..23).map(|number| format!("f{number}")).collect();
    let properties: Value = names.iter().map(|name| (name.clone(), json!({ "type": "string" }))).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let problems = check(&schema(&properties, &names), &object(&json!({}))).unwrap_err();
    assert_eq!(problems.iter().count(), 10);
    assert!(problems.to_string().ends_with("f19: is required; and 3 more"), "{problems}");
}

/// C11: Defaults are filled in where nothing was, for every kind of field.
#[test]
fn defaults() {
    let choices = json!([{ "const": "a", "title": "A" }]);
    let properties = json!({
        "text": { "type": "string", "default": "" },
        "number": { "type": "number", "default": 1.5 },
        "integer": { "type": "integer", "default": 3 },
        "boolean": { "type": "boolean", "default": false },
        "enum": { "type": "string", "enum": ["a"], "default": "a" },
        "names": { "type": "string", "enum": ["a"], "enumNames": ["A"], "default": "a" },
        "one_of": { "type": "string", "oneOf": choices, "default": "a" },
        "items": { "type": "array", "items": { "type": "string", "enum": ["a"] }, "default": ["a"] },
        "any_of": { "type": "array", "items": { "anyOf": choices }, "default": [] },
        "none": { "type": "string" },
    });
    let schema = schema(&properties, &[]);
    let mut content = object(&json!({ "integer": 7, "boolean": null, "extra": 1 }));
    fill_defaults(&schema, &mut content);
    let filled = json!({
        "text": "", "number": 1.5, "integer": 7, "boolean": false, "enum": "a", "names": "a", "one_of": "a",
        "items": ["a"], "any_of": [], "extra": 1,
    });
    assert_eq!(Value::Object(content), filled);
}
