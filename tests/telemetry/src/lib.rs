//! Tests of telemetry: the published exporters send to a receiver that reads the published protobuf.

#[cfg(all(doctest, feature = "otlp"))]
#[doc = include_str!("../../../docs/manual/telemetry.md")]
struct Chapter;
