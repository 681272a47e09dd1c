//! Trace and span ids derived from the log alone, so that sending a turn twice produces the same spans.

use std::fmt;

use sha2::{Digest, Sha256};

/// The id of a trace. One turn is one trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TraceId(pub [u8; 16]);

/// The id of a span.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SpanId(pub [u8; 8]);

impl TraceId {
    /// Returns the trace id for `seed`.
    pub fn of(seed: &str) -> Self {
        Self(hash(&["turn", seed]))
    }

    /// Parses the output of [`Display`](fmt::Display).
    pub fn parse(hex: &str) -> Option<Self> {
        const_hex::decode_to_array(hex).ok().map(Self)
    }

    /// Returns the id of the span with the key `parts` within the trace.
    pub fn span(self, parts: &[&str]) -> SpanId {
        let own = self.to_string();
        let mut all = vec![&*own];
        all.extend(parts);
        SpanId(hash(&all))
    }
}

impl SpanId {
    /// Parses the output of [`Display`](fmt::Display).
    pub fn parse(hex: &str) -> Option<Self> {
        const_hex::decode_to_array(hex).ok().map(Self)
    }
}

/// Returns the first bytes of a hash over the parts. Lengths are included: `ab`, `c` differs from `a`, `bc`.
pub(crate) fn hash<const N: usize>(parts: &[&str]) -> [u8; N] {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part);
    }
    let digest = hash.finalize();
    let mut bytes = [0; N];
    bytes.copy_from_slice(&digest[..N]);
    bytes
}

impl fmt::Display for TraceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&const_hex::encode(self.0))
    }
}

impl fmt::Display for SpanId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&const_hex::encode(self.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_depend_on_all_parts_and_round_trip() {
        let trace = TraceId::of("msg_1");
        assert_eq!(trace.to_string().len(), 32);
        assert_eq!(TraceId::parse(&trace.to_string()), Some(trace));
        let span = trace.span(&["reply", "msg_1"]);
        assert_eq!(SpanId::parse(&span.to_string()), Some(span));
        assert_ne!(span, trace.span(&["reply", "msg_2"]));
        assert_ne!(trace.span(&["ab", "c"]), trace.span(&["a", "bc"]));
        assert_ne!(span, TraceId::of("msg_2").span(&["reply", "msg_1"]));
        assert_eq!(TraceId::parse("12"), None);
        assert_eq!(SpanId::parse("zzzzzzzzzzzzzzzz"), None);
    }

    /// Ids are stored in receivers' databases: they must not change between releases.
    #[test]
    fn ids_are_stable_between_releases() {
        let trace = TraceId::of("msg_1");
        assert_eq!(trace.to_string(), "b77f99265a431c3bcb435eeda63b22b4");
        assert_eq!(trace.span(&["turn"]).to_string(), "cb566cc921538901");
    }
}
