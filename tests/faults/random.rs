//! The random numbers of a seed: the same faults in the same order, if not at the
//! same instants.

/// Sebastiano Vigna's SplitMix64: small, and good enough to choose by.
#[derive(Debug)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) const fn new(seed: u64) -> Self {
        Self(seed)
    }

    const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// From `least` up to, and without, `below`.
    pub(crate) fn range(&mut self, least: u64, below: u64) -> u64 {
        least + self.next() % (below - least).max(1)
    }

    /// Yes in so many of a hundred cases.
    pub(crate) fn percent(&mut self, share: u64) -> bool {
        self.range(0, 100) < share
    }

    /// One of them.
    pub(crate) fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[usize::try_from(self.range(0, from.len() as u64)).unwrap()]
    }

    /// From `least` up to `most`, short ones as often as long ones.
    pub(crate) fn spread(&mut self, least: u64, most: u64) -> u64 {
        let doublings = (most / least.max(1)).max(1).ilog2();
        let low = least << self.range(0, u64::from(doublings) + 1);
        self.range(low, (low * 2).min(most + 1))
    }
}
