//! Sizes as people write them: `64KiB`, `64k`, `1M`, a plain number of bytes. A `k` is 1024 bytes.

use parse_size::Config;

/// The sizes that are accepted: what is kept of a job's output is one row of a database.
pub const LEAST: usize = 1 << 10;
pub const MOST: usize = 1 << 20;

/// Why a text is not a size.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SizeError {
    /// The text is not a size.
    #[error("is not a size: write for example 64k, 1M, or a plain number of bytes")]
    Unreadable,
    /// The size is too small or too large.
    #[error("must be from 1k to 1M, as 64k")]
    OutOfRange,
}

/// Reads a size in bytes.
///
/// # Errors
/// Says what is wrong with the text and what is accepted.
pub fn parse(text: &str) -> Result<usize, SizeError> {
    let bytes = Config::new().with_binary().parse_size(text);
    let bytes = bytes.map_err(|_| SizeError::Unreadable)?;
    let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
    match (LEAST..=MOST).contains(&bytes) {
        true => Ok(bytes),
        false => Err(SizeError::OutOfRange),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::mutated::mutated_text;

    #[test]
    fn sizes_have_units_of_1024_bytes() {
        for text in ["64k", "64K", "64KiB", "64 KiB", "64kb", "65536", "65536B"] {
            assert_eq!(parse(text), Ok(65_536), "{text}");
        }
        for text in ["1M", "1m", "1MiB", "1048576", "1024k"] {
            assert_eq!(parse(text), Ok(MOST), "{text}");
        }
        assert_eq!(parse("1k"), Ok(LEAST));
    }

    #[test]
    fn other_texts_are_refused() {
        for text in ["", "k", "much", "64x", "-1", "64k64k", "1M 1"] {
            assert_eq!(parse(text), Err(SizeError::Unreadable), "{text}");
        }
        for text in ["0", "1", "1023", "1048577", "2M", "1G", "1e18"] {
            assert_eq!(parse(text), Err(SizeError::OutOfRange), "{text}");
        }
    }

    proptest! {
        #[test]
        fn no_text_panics(text in mutated_text(&["64KiB", "1048576", "0.5 M"]), any in ".{0,20}") {
            for text in [text, any] {
                if let Ok(size) = parse(&text) {
                    prop_assert!((LEAST..=MOST).contains(&size), "{text}: {size}");
                }
            }
        }
    }
}
