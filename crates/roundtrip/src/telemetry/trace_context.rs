//! W3C Trace Context: `traceparent` and `tracestate` in `_meta`, and the bytes of it in a journal.

use opentelemetry::trace::{SpanContext, SpanId, TraceFlags, TraceId, TraceState};
use roundtrip_core::round::TraceContext;
use roundtrip_core::wire::{RequestMeta, json, meta};
use serde_json::value::RawValue;

/// Length of `traceparent` in the one version there is.
const LENGTH: usize = 55;
/// Most bytes of a value in `_meta` that are read. `tracestate` should be propagated up to 512 characters.
const MOST: usize = 1024;

/// Reads the caller's trace context; `None` if there is none, or it is malformed.
pub(super) fn read(meta: &RequestMeta<'_>) -> Option<SpanContext> {
    let text = |key| meta.get(key).filter(|raw| raw.get().len() <= MOST).and_then(text);
    let parent = text(meta::key::TRACEPARENT)?;
    let state = text(meta::key::TRACESTATE).and_then(|state| state.parse().ok());
    parse(&parent, state.unwrap_or_default())
}

fn text(raw: &RawValue) -> Option<String> {
    json::from_str(raw.get()).ok()
}

fn parse(parent: &str, state: TraceState) -> Option<SpanContext> {
    let lower = |part: &str| part.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    let mut parts = parent.splitn(5, '-');
    let mut part = |length| parts.next().filter(|part| part.len() == length && lower(part));
    let (version, trace, span, flags) = (part(2)?, part(32)?, part(16)?, part(2)?);
    // Later versions may add parts, and are read as far as they are known.
    if version == "ff" || (version == "00" && parent.len() != LENGTH) {
        return None;
    }
    let flags = TraceFlags::new(u8::from_str_radix(flags, 16).ok()?) & TraceFlags::SAMPLED;
    let (trace, span) = (TraceId::from_hex(trace).ok()?, SpanId::from_hex(span).ok()?);
    Some(SpanContext::new(trace, span, flags, true, state)).filter(SpanContext::is_valid)
}

/// Returns the `traceparent` of a span.
#[cfg(feature = "client")]
pub(super) fn traceparent(span: &SpanContext) -> String {
    format!("00-{}-{}-{:02x}", span.trace_id(), span.span_id(), span.trace_flags())
}

/// Returns the trace context of a span as a journal keeps it.
pub(super) fn to_bytes(span: &SpanContext) -> TraceContext {
    let mut bytes = [span.trace_flags().to_u8(); 25];
    bytes[..16].copy_from_slice(&span.trace_id().to_bytes());
    bytes[16..24].copy_from_slice(&span.span_id().to_bytes());
    bytes
}

/// Reads the trace context of an earlier round.
pub(super) fn from_bytes(bytes: &TraceContext) -> Option<SpanContext> {
    let (trace, rest) = bytes.split_first_chunk()?;
    let (span, flags) = rest.split_first_chunk()?;
    let flags = TraceFlags::new(*flags.first()?);
    let (trace, span) = (TraceId::from_bytes(*trace), SpanId::from_bytes(*span));
    Some(SpanContext::new(trace, span, flags, true, TraceState::NONE)).filter(SpanContext::is_valid)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01";

    fn parsed(parent: &str) -> Option<SpanContext> {
        parse(parent, TraceState::NONE)
    }

    /// N7: a trace context is read as W3C writes it, and anything else is none.
    #[test]
    fn a_parent_is_read_or_refused() {
        let span = parsed(PARENT).unwrap();
        assert!(span.is_sampled() && span.is_remote());
        assert_eq!(from_bytes(&to_bytes(&span)), Some(span));
        let later = format!("01{}-more", &PARENT[2..]);
        assert_eq!(parsed(&later), parsed(PARENT), "a later version is read as far as it is known");
        let zero =
            |from: usize, to: usize| format!("{}{}{}", &PARENT[..from], "0".repeat(to - from), &PARENT[to..]);
        for wrong in [
            "",
            "00",
            &PARENT[..54],
            &format!("{PARENT}-more"),
            &PARENT.to_uppercase(),
            &PARENT.replace("b7", "+7"),
            &format!("ff{}", &PARENT[2..]),
            &zero(3, 35),
            &zero(36, 52),
            "é",
        ] {
            assert_eq!(parsed(wrong), None, "{wrong}");
        }
        assert_eq!(from_bytes(&[0; 25]), None);
    }

    #[cfg(feature = "client")]
    #[test]
    fn a_parent_is_written_as_it_was_read() {
        assert_eq!(traceparent(&parsed(PARENT).unwrap()), PARENT);
    }
}
