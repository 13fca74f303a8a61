//! The wire types against the published examples and against vectors of our own.

#[cfg(test)]
mod buffered;
#[cfg(test)]
mod by_name;
#[cfg(test)]
mod examples;
#[cfg(test)]
mod headers;
#[cfg(test)]
mod leniency;
#[cfg(test)]
mod results;
#[cfg(test)]
mod tasks;
#[cfg(test)]
mod vectors;

/// Decodes a value and encodes it again.
#[cfg(test)]
fn again<T: serde::de::DeserializeOwned + serde::Serialize>(value: &serde_json::Value) -> serde_json::Value {
    let text = value.to_string();
    let decoded: T = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
    serde_json::to_value(decoded).unwrap()
}
