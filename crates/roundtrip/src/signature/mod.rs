//! Signatures of tokens, by aws-lc-rs, which TLS uses too.
