use roundtrip::form::Form as _;
use roundtrip_macros::{Choice, Form};
use serde_json::{Value, json};

use crate::asks_for;

/// E1: Text has a length and one of four formats.
#[test]
fn text() {
    #[derive(Form)]
    #[expect(dead_code, reason = "only its schema is looked at")]
    struct Texts {
        plain: String,
        /// What people call you.
        #[form(title = "Name", min_length = 1, max_length = 50, default = "Ada")]
        name: String,
        #[form(format = "email")]
        email: Option<String>,
        #[form(format = "uri", default = "https://example.com")]
        uri: String,
        #[form(format = "date")]
        date: String,
        #[form(format = "date-time")]
        date_time: Option<String>,
    }
    let properties = json!({
        "plain": { "type": "string" },
        "name": {
            "type": "string",
            "title": "Name",
            "description": "What people call you.",
            "minLength": 1,
            "maxLength": 50,
            "default": "Ada",
        },
        "email": { "type": "string", "format": "email" },
        "uri": { "type": "string", "format": "uri", "default": "https://example.com" },
        "date": { "type": "string", "format": "date" },
        "date_time": { "type": "string", "format": "date-time" },
    });
    asks_for::<Texts>(&properties, &["plain", "date"]);
}

/// E1: Whole numbers have the bounds of their type, where a double can say them, unless tighter ones are set.
#[test]
fn whole_numbers() {
    #[derive(Form)]
    #[expect(dead_code, reason = "only its schema is looked at")]
    struct Integers {
        a: i8,
        b: i16,
        c: i32,
        d: i64,
        e: u8,
        f: u16,
        g: u32,
        h: u64,
        /// How many?
        #[form(title = "People", min = 1, max = 12, default = 2)]
        tight: u8,
        #[form(min = -5)]
        half: Option<i64>,
        #[form(min = -9_007_199_254_740_992, max = 0x20_0000_0000_0000)]
        wide: i64,
    }
    let integer = |minimum: Value, maximum: Value| {
        let mut schema = json!({ "type": "integer", "minimum": minimum, "maximum": maximum });
        schema.as_object_mut().unwrap().retain(|_, value| !value.is_null());
        schema
    };
    let exact = 9_007_199_254_740_992_i64;
    let properties = json!({
        "a": integer(json!(-128), json!(127)),
        "b": integer(json!(-32768), json!(32767)),
        "c": integer(json!(i32::MIN), json!(i32::MAX)),
        "d": integer(json!(null), json!(null)),
        "e": integer(json!(0), json!(255)),
        "f": integer(json!(0), json!(65535)),
        "g": integer(json!(0), json!(u32::MAX)),
        "h": integer(json!(0), json!(null)),
        "tight": {
            "type": "integer", "title": "People", "description": "How many?", "minimum": 1, "maximum": 12, "default": 2
        },
        "half": integer(json!(-5), json!(null)),
        "wide": integer(json!(-exact), json!(exact)),
    });
    asks_for::<Integers>(&properties, &["a", "b", "c", "d", "e", "f", "g", "h", "wide"]);
}

/// E1: Numbers have bounds and a default.
#[test]
fn numbers() {
    #[derive(Form)]
    #[expect(dead_code, reason = "only its schema is looked at")]
    struct Numbers {
        plain: f32,
        #[form(min = -0.5, max = 100, default = 2.25)]
        bounded: f64,
        optional: Option<f64>,
    }
    let properties = json!({
        "plain": { "type": "number" },
        "bounded": { "type": "number", "minimum": -0.5, "maximum": 100, "default": 2.25 },
        "optional": { "type": "number" },
    });
    asks_for::<Numbers>(&properties, &["plain"]);
}

/// E1: Yes or no.
#[test]
fn yes_or_no() {
    #[derive(Form)]
    #[expect(dead_code, reason = "only its schema is looked at")]
    struct Flags {
        plain: bool,
        #[form(title = "Sure?", default = false)]
        sure: bool,
        optional: Option<bool>,
    }
    let properties = json!({
        "plain": { "type": "boolean" },
        "sure": { "type": "boolean", "title": "Sure?", "default": false },
        "optional": { "type": "boolean" },
    });
    asks_for::<Flags>(&properties, &["plain"]);
}

/// E1: One choice or several, with titles or without.
#[test]
fn choices() {
    #[derive(Choice)]
    enum Size {
        Small,
        ExtraLarge,
    }
    #[derive(Choice)]
    enum Colour {
        #[choice(rename = "#f00", title = "Red")]
        Red,
        /// Green.
        Green,
        Blue,
    }
    #[derive(Form)]
    #[expect(dead_code, reason = "only its schema is looked at")]
    struct Choices {
        /// Which?
        #[form(title = "Size", default = "extra_large")]
        size: Size,
        colour: Option<Colour>,
        #[form(title = "Sizes", min_items = 1, max_items = 2, default = ["small"])]
        sizes: Vec<Size>,
        /// Which ones?
        #[form(min_items = 1)]
        colours: Vec<Colour>,
        more: Option<Vec<Size>>,
    }
    let sizes = json!(["small", "extra_large"]);
    let colours = json!([
        { "const": "#f00", "title": "Red" },
        { "const": "green", "title": "Green" },
        { "const": "blue", "title": "blue" },
    ]);
    let properties = json!({
        "size": {
            "type": "string", "title": "Size", "description": "Which?", "enum": sizes, "default": "extra_large"
        },
        "colour": { "type": "string", "oneOf": colours },
        "sizes": {
            "type": "array",
            "title": "Sizes",
            "minItems": 1,
            "maxItems": 2,
            "items": { "type": "string", "enum": sizes },
            "default": ["small"],
        },
        "colours": {
            "type": "array", "description": "Which ones?", "minItems": 1, "items": { "anyOf": colours }
        },
        "more": { "type": "array", "items": { "type": "string", "enum": sizes } },
    });
    asks_for::<Choices>(&properties, &["colours"]);
}

/// E1: Fields are asked for in the order they are written in, under the names they are given.
#[test]
fn names_and_order() {
    #[derive(Form)]
    #[form(rename_all = "camelCase")]
    #[expect(dead_code, reason = "only its schema is looked at")]
    struct Names {
        last_name: bool,
        r#type: bool,
        #[form(rename = "a name")]
        first: bool,
    }
    let expected = concat!(
        r#"{"type":"object","properties":{"lastName":{"type":"boolean"},"type":{"type":"boolean"},"#,
        r#""a name":{"type":"boolean"}},"required":["lastName","type","a name"]}"#,
    );
    assert_eq!(Names::definition().json().get(), expected);
}

#[test]
fn a_description_keeps_its_paragraphs_and_loses_its_line_breaks() {
    #[derive(Form)]
    #[expect(dead_code, reason = "only its schema is looked at")]
    struct Described {
        /// One sentence
        /// on two lines.
        ///
        /// Another "paragraph".
        a: bool,
        /**
         * A block
         * of text.
         *
         * Two of them.
         */
        b: bool,
        /// * 3 * 4
        c: bool,
    }
    let properties = json!({
        "c": { "type": "boolean", "description": "* 3 * 4" },
        "a": { "type": "boolean", "description": "One sentence on two lines.\n\nAnother \"paragraph\"." },
        "b": { "type": "boolean", "description": "A block of text.\n\nTwo of them." },
    });
    asks_for::<Described>(&properties, &["a", "b", "c"]);
}

#[test]
fn a_form_may_ask_for_nothing_but_consent() {
    #[derive(Form)]
    struct Consent {}
    asks_for::<Consent>(&json!({}), &[]);
    let Consent {} = crate::read(&json!({ "extra": 1 })).unwrap();
}

#[test]
fn a_definition_is_made_once() {
    #[derive(Form)]
    #[expect(dead_code, reason = "only its schema is looked at")]
    struct One {
        a: bool,
    }
    assert!(std::ptr::eq(One::definition(), One::definition()));
    assert_eq!(One::definition().digest().len(), 16);
}
