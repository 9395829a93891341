//! Bytes that are almost right, for the parsers of what comes from elsewhere.

use proptest::collection::vec;
use proptest::prelude::*;

/// These bytes after a few changes: bytes are replaced, put in, taken out, doubled, or the end is cut off.
pub(crate) fn mutated(valid: &[u8]) -> impl Strategy<Value = Vec<u8>> + use<> {
    let valid = valid.to_vec();
    let change = (0..5_u8, any::<proptest::sample::Index>(), any::<u8>());
    vec(change, 1..6).prop_map(move |changes| {
        let mut bytes = valid.clone();
        for (kind, at, byte) in changes {
            if bytes.is_empty() {
                break;
            }
            let at = at.index(bytes.len());
            match kind {
                0 => bytes[at] = byte,
                1 => bytes.insert(at, byte),
                2 => drop(bytes.remove(at)),
                3 => bytes.extend_from_within(at..),
                _ => bytes.truncate(at),
            }
        }
        bytes
    })
}

/// One of these texts after a few changes.
pub(crate) fn mutated_text(valid: &[&'static str]) -> impl Strategy<Value = String> + use<> {
    let valid = valid.to_vec();
    let bytes = proptest::sample::select(valid).prop_flat_map(|text| mutated(text.as_bytes()));
    bytes.prop_map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
}
