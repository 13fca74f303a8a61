//! Authorization against the requirements: hostile documents, headers, callbacks and tokens, and every step of a sign-in.

#[cfg(test)]
mod addresses;
#[cfg(test)]
mod by_name;
#[cfg(test)]
mod callbacks;
#[cfg(test)]
mod challenges;
#[cfg(test)]
mod claims;
#[cfg(test)]
mod clients;
#[cfg(test)]
mod discovery;
#[cfg(test)]
mod documents;
#[cfg(test)]
mod dpop;
#[cfg(test)]
#[path = "../common/listed.rs"]
mod listed;
#[cfg(test)]
mod machines;
#[cfg(test)]
mod properties;
#[cfg(test)]
mod scopes;
#[cfg(test)]
mod sign_in;
#[cfg(test)]
mod support;
#[cfg(test)]
mod tokens;
