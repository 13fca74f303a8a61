//! Numbers without a fraction, written as integers: a peer that wrote `50` reads `50` again, not `50.0`.

use serde::ser::Serializer;

/// The greatest double below which every whole number is exact.
const EXACT: f64 = 9_007_199_254_740_992.0;

pub(crate) fn plain<S: Serializer>(number: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    if number.fract() == 0.0 && number.abs() <= EXACT {
        serializer.serialize_i64(*number as i64)
    } else {
        serializer.serialize_f64(*number)
    }
}

pub(crate) fn option<S: Serializer>(number: &Option<f64>, serializer: S) -> Result<S::Ok, S::Error> {
    match number {
        Some(number) => plain(number, serializer),
        None => serializer.serialize_none(),
    }
}
