//! Fields of types of other crates, behind cargo features of these crates' names.

use std::fmt::Display;

use super::format::describe;
use super::{Field, Shape};

macro_rules! fields {
    ($($feature:tt: $type:ty, $format:tt, $parse:expr;)*) => {
        $(#[cfg(feature = $feature)]
        impl Field for $type {
            const SHAPE: Shape = Shape::text($format);

            fn from_text(text: &str) -> Result<Self, String> {
                $parse(text).map_err(|error| must_be(describe($format), &error))
            }
        })*
    };
}

fields! {
    "jiff": jiff::civil::Date, "date", str::parse::<Self>;
    "jiff": jiff::Timestamp, "date-time", str::parse::<Self>;
    "chrono": chrono::NaiveDate, "date", str::parse::<Self>;
    "chrono": chrono::DateTime<chrono::FixedOffset>, "date-time", Self::parse_from_rfc3339;
    "chrono": chrono::DateTime<chrono::Utc>, "date-time", in_utc;
    "time": time::Date, "date", calendar_date;
    "time": time::OffsetDateTime, "date-time", moment_with_offset;
    "url": url::Url, "uri", Self::parse;
}

#[cfg(feature = "chrono")]
fn in_utc(text: &str) -> chrono::ParseResult<chrono::DateTime<chrono::Utc>> {
    chrono::DateTime::parse_from_rfc3339(text).map(|moment| moment.to_utc())
}

#[cfg(feature = "time")]
fn calendar_date(text: &str) -> Result<time::Date, time::error::Parse> {
    time::Date::parse(text, &time::format_description::well_known::Iso8601::DATE)
}

#[cfg(feature = "time")]
fn moment_with_offset(text: &str) -> Result<time::OffsetDateTime, time::error::Parse> {
    time::OffsetDateTime::parse(text, &time::format_description::well_known::Rfc3339)
}

/// Without a format: MCP's four do not include `uuid`.
#[cfg(feature = "uuid")]
impl Field for uuid::Uuid {
    const SHAPE: Shape = Shape::TEXT;

    fn from_text(text: &str) -> Result<Self, String> {
        let parsed = text.parse::<Self>();
        parsed.map_err(|error| must_be("a UUID such as 67e55044-10b1-426f-9247-bb680e5fe0c8", &error))
    }
}

fn must_be(wanted: &str, error: &dyn Display) -> String {
    format!("must be {wanted}: {error}")
}
