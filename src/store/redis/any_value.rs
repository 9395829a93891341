//! Whatever a server may send, for the parsers of its answers.

use proptest::collection::vec;
use proptest::prelude::*;
use redis::Value;

/// An answer: words that the scripts use and others, numbers, and arrays of them.
pub(super) fn values() -> impl Strategy<Value = Value> {
    let known = ["done", "conflict", "evicts", "replica", "mixed", ""];
    let words = prop_oneof![
        "[a-z0-9.{}:-]{0,12}".prop_map(|text| Value::BulkString(text.into_bytes())),
        vec(any::<u8>(), 0..9).prop_map(Value::BulkString),
        proptest::sample::select(known.to_vec())
            .prop_map(|word| Value::BulkString(word.as_bytes().to_vec())),
        any::<i64>().prop_map(Value::Int),
        any::<f64>().prop_map(Value::Double),
        Just(Value::Nil),
        Just(Value::Okay),
    ];
    words.prop_recursive(3, 40, 10, |inner| vec(inner, 0..10).prop_map(Value::Array))
}
