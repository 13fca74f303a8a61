//! Bounds, and the defaults that have to lie within them.

use proc_macro2::Span;
use syn::Error;

use crate::kind::Integer;
use crate::setting::{Literal, Number, Settings};

/// The greatest whole number up to which all are exact in a double, which is what JSON's numbers are for many
/// clients.
pub(crate) const EXACT: i128 = 9_007_199_254_740_992;

/// The bounds of a number and its default.
pub(crate) struct Range<T> {
    pub(crate) least: Option<T>,
    pub(crate) most: Option<T>,
    pub(crate) default: Option<T>,
}

impl<T: PartialOrd> Range<T> {
    /// Takes the bounds and the default from the settings. `wanted` is the error for a default that is not a number.
    pub(crate) fn take(
        settings: &mut Settings,
        default: Option<Literal>,
        read: impl Fn(&Number) -> Result<T, Error>,
        wanted: &str,
    ) -> Result<Self, Error> {
        let least = settings.number("min")?.map(|number| read(&number)).transpose()?;
        let limit = settings.number("max")?;
        let most = limit.as_ref().map(&read).transpose()?;
        ordered(least.as_ref(), most.as_ref(), limit.as_ref(), ["min", "max"])?;
        let default = match default {
            None => None,
            Some(Literal::Number(number)) => {
                let default = read(&number)?;
                if least.as_ref().is_some_and(|least| default < *least) {
                    return Err(number.error("the default is less than `min`"));
                }
                if most.as_ref().is_some_and(|most| default > *most) {
                    return Err(number.error("the default is more than `max`"));
                }
                Some(default)
            }
            Some(other) => return Err(other.error(wanted)),
        };
        Ok(Self { least, most, default })
    }
}

/// Bounds on a length or count.
pub(crate) struct Counts {
    pub(crate) least: Option<u64>,
    pub(crate) most: Option<u64>,
    names: [&'static str; 2],
}

impl Counts {
    pub(crate) fn take(settings: &mut Settings, names: [&'static str; 2]) -> Result<Self, Error> {
        let least = settings.count(names[0])?.map(|(count, _)| count);
        let (most, limit) = settings.count(names[1])?.unzip();
        ordered(least.as_ref(), most.as_ref(), limit.as_ref(), names)?;
        Ok(Self { least, most, names })
    }

    /// Checks that the size of a default is within the bounds.
    pub(crate) fn check(&self, count: usize, of: &str, span: Span) -> Result<(), Error> {
        let [min, max] = self.names;
        let count = count as u64;
        if self.least.is_some_and(|least| count < least) {
            return Err(Error::new(span, format!("the default has fewer {of} than `{min}`")));
        }
        if self.most.is_some_and(|most| count > most) {
            return Err(Error::new(span, format!("the default has more {of} than `{max}`")));
        }
        Ok(())
    }
}

fn ordered<T: PartialOrd>(
    least: Option<&T>,
    most: Option<&T>,
    limit: Option<&Number>,
    [min, max]: [&str; 2],
) -> Result<(), Error> {
    match (least, most, limit) {
        (Some(least), Some(most), Some(limit)) if least > most => {
            Err(limit.error(format!("`{max}` is less than `{min}`: nothing would fit")))
        }
        _ => Ok(()),
    }
}

/// Reads a whole number and checks the range of its type.
pub(crate) fn within(number: &Number, Integer { name, least, most }: Integer) -> Result<i128, Error> {
    let whole = number.whole()?;
    if whole < least || most < whole {
        return Err(
            number.error(format!("{whole} does not fit a `{name}`, which goes from {least} to {most}"))
        );
    }
    if whole.abs() > EXACT {
        return Err(number.error(format!("in JSON, whole numbers are exact up to {EXACT} only")));
    }
    Ok(whole)
}
