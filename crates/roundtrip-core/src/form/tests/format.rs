use serde_json::json;

use super::problem;

#[track_caller]
fn all_fit(format: &str, texts: &[&str]) {
    for text in texts {
        let property = json!({ "type": "string", "format": format });
        assert_eq!(problem(&property, &json!(text)), "", "{format} {text:?}");
    }
}

#[track_caller]
fn none_fits(format: &str, texts: &[&str]) {
    for text in texts {
        let property = json!({ "type": "string", "format": format });
        assert!(problem(&property, &json!(text)).starts_with("x: must be a"), "{format} {text:?}");
    }
}

/// E1: An e-mail address is a dotted name, an at sign and a domain.
#[test]
fn e_mail_addresses() {
    all_fit(
        "email",
        &[
            "a@b",
            "ada.lovelace+x@example.co.uk",
            "o'neil@xn--bcher-kva.example",
            "{}~@1.2",
            "!#$%&*-/=?^_`|@a-b",
        ],
    );
    none_fits(
        "email",
        &[
            "",
            "@",
            "a@",
            "@b",
            "ada",
            "a b@c.d",
            "a..b@c.d",
            ".a@b",
            "a.@b",
            "a@b@c",
            "\"a b\"@c.d",
            "a@[::1]",
        ],
    );
    none_fits(
        "email",
        &[
            "a@-b.c",
            "a@b-.c",
            "a@b..c",
            "a@.b",
            "a@b.",
            "ä@b.c",
            "a@ü.de",
            "a@b_c.d",
            "Ada <a@b.c>",
            "a@b.c\n",
        ],
    );
    none_fits(
        "email",
        &[
            &format!("{}@b.c", "a".repeat(65)),
            &format!("a@{}.c", "b".repeat(64)),
            &format!("a@{}", "b".repeat(64)),
        ],
    );
    none_fits("email", &[&format!("a@{}c", "b.".repeat(140))]);
}

/// E1: A URI has a scheme and no characters that would have to be escaped.
#[test]
fn uris() {
    all_fit("uri", &["https://example.com", "HTTP://u:p@example.com:8080/a%20b/?q=(1#f"]);
    all_fit(
        "uri",
        &[
            "mailto:ada@example.com",
            "urn:isbn:0451450523",
            "file:///etc/hosts",
            "a+b-c.d://x",
            "http://[::1]:80/",
        ],
    );
    all_fit("uri", &["http://a/?q#f?/", "http://a:", "http://[::ffff:1.2.3.4]", "data:,x"]);
    none_fits(
        "uri",
        &[
            "",
            "example.com",
            "/path",
            "//host/path",
            ":x",
            "1a:x",
            "a_b:x",
            "http:",
            "http:x",
            "http://",
            "https:///x",
        ],
    );
    none_fits(
        "uri",
        &[
            "http://a b",
            "http://a/ü",
            "http://a/%",
            "http://a/%4",
            "http://a/%zz",
            "http://a/<x>",
            "http://a/#a#b",
        ],
    );
    none_fits(
        "uri",
        &[
            "http://a:b",
            "http://[::1",
            "http://[zz::]",
            "http://[1]",
            "http://[::1]x",
            "http://a[b",
            "http://u@",
            "x://",
            "x:",
            "http://a\n",
        ],
    );
    none_fits("uri", &["http://a@b@c", "http://u p@c", "http://a/[b]"]);
}

/// E1: A date exists in the calendar.
#[test]
fn dates() {
    all_fit("date", &["2026-07-28", "2024-02-29", "2000-02-29", "0000-01-01", "9999-12-31", "2026-04-30"]);
    none_fits(
        "date",
        &["2026-02-29", "1900-02-29", "2026-04-31", "2026-13-01", "2026-00-01", "2026-01-00", "2026-01-32"],
    );
    none_fits(
        "date",
        &[
            "",
            "2026-7-28",
            "26-07-28",
            "20260728",
            "2026/07/28",
            "+2026-07-28",
            "2026-07-28 ",
            "2026-07-28T00:00:00Z",
            "２026-07-28",
            "28.07.2026",
        ],
    );
}

/// E1: A date with a time has an offset; a leap second comes at midnight UTC only.
#[test]
fn dates_with_a_time() {
    all_fit(
        "date-time",
        &["2026-07-28T17:30:00Z", "2026-07-28t17:30:00z", "2026-07-28T17:30:00.123456789012+02:00"],
    );
    all_fit(
        "date-time",
        &[
            "2026-07-28T00:00:00-23:59",
            "1998-12-31T23:59:60Z",
            "1998-12-31T15:59:60.1-08:00",
            "1999-01-01T00:59:60+01:00",
        ],
    );
    none_fits(
        "date-time",
        &[
            "2026-07-28",
            "2026-07-28T17:30:00",
            "2026-07-28 17:30:00Z",
            "2026-07-28T17:30Z",
            "2026-07-28T24:00:00Z",
        ],
    );
    none_fits(
        "date-time",
        &[
            "2026-07-28T17:60:00Z",
            "2026-07-28T17:30:60Z",
            "1998-12-31T23:59:61Z",
            "1998-12-31T23:59:60+01:00",
        ],
    );
    none_fits(
        "date-time",
        &[
            "2026-02-30T00:00:00Z",
            "2026-07-28T17:30:00.Z",
            "2026-07-28T17:30:00,1Z",
            "2026-07-28T17:30:00+2:00",
        ],
    );
    none_fits(
        "date-time",
        &[
            "2026-07-28T17:30:00+24:00",
            "2026-07-28T17:30:00+00:60",
            "2026-07-28T17:30:00ZZ",
            "2026-07-28Tüü:30:00Z",
            "ü",
            "",
        ],
    );
}

#[test]
fn other_formats_are_not_judged() {
    all_fit("postcode", &["anything"]);
}

#[test]
fn a_format_is_explained_by_an_example() {
    for (format, example) in [
        ("email", "ada@example.com"),
        ("uri", "https://example.com/page"),
        ("date", "2026-07-28"),
        ("date-time", "2026-07-28T17:30:00Z"),
    ] {
        let property = json!({ "type": "string", "format": format });
        assert!(problem(&property, &json!("?")).ends_with(example), "{format}");
        all_fit(format, &[example]);
    }
}
