//! Authorization of a server's callers by access tokens (feature `authorize`).
