//! Tests of the holder of tokens.
