//! Numbers without a fraction, written as integers: a peer that wrote `50` reads `50` again, not `50.0`.

use serde::ser::Serializer;

/// The greatest double below which every whole number is exact.
const EXACT: f64 = 9_007_199_254_740_992.0;

/// Returns a number as an integer if it has no fraction and is exact.
pub(crate) fn whole(number: f64) -> Option<i64> {
    (number.fract() == 0.0 && number.abs() <= EXACT).then_some(number as i64)
}

pub(crate) fn plain<S: Serializer>(number: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    match whole(*number) {
        Some(whole) => serializer.serialize_i64(whole),
        None => serializer.serialize_f64(*number),
    }
}

pub(crate) fn option<S: Serializer>(number: &Option<f64>, serializer: S) -> Result<S::Ok, S::Error> {
    match number {
        Some(number) => plain(number, serializer),
        None => serializer.serialize_none(),
    }
}
