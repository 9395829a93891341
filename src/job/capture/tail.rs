//! The end of a stream, in bounded memory.

use std::collections::VecDeque;

/// What was caught of a job's output.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Captured {
    /// How many bytes the job printed.
    pub printed: u64,
    /// The last of them.
    pub last: Vec<u8>,
}

/// The last bytes of a stream, and how many there were.
#[derive(Debug)]
pub(super) struct Tail {
    size: usize,
    last: VecDeque<u8>,
    printed: u64,
}

impl Tail {
    /// Keeps this many bytes.
    pub(super) const fn new(size: usize) -> Self {
        Self {
            size,
            last: VecDeque::new(),
            printed: 0,
        }
    }

    /// How many bytes there were.
    pub(super) const fn printed(&self) -> u64 {
        self.printed
    }

    pub(super) fn push(&mut self, bytes: &[u8]) {
        let count = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        self.printed = self.printed.saturating_add(count);
        let skipped = bytes.len().saturating_sub(self.size);
        let bytes = bytes.get(skipped..).unwrap_or_default();
        // First, so that the memory never grows beyond the size.
        let excess = (self.last.len() + bytes.len()).saturating_sub(self.size);
        self.last.drain(..excess);
        self.last.extend(bytes);
    }
}

impl From<Tail> for Captured {
    fn from(tail: Tail) -> Self {
        Self {
            printed: tail.printed,
            last: tail.last.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_last_bytes_are_kept_however_they_come(
            size in 1_usize..64,
            parts in vec(vec(any::<u8>(), 0..100), 0..20),
        ) {
            let mut tail = Tail::new(size);
            for part in &parts {
                tail.push(part);
                prop_assert!(tail.last.capacity() <= 2 * size.max(8));
            }
            let all = parts.concat();
            let captured = Captured::from(tail);
            prop_assert_eq!(captured.printed, all.len() as u64);
            prop_assert_eq!(captured.last, &all[all.len().saturating_sub(size)..]);
        }
    }
}
