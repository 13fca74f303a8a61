//! The seal against the requirements.

#[cfg(test)]
mod arguments;
