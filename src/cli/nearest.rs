//! The word that was probably meant.

/// The word that differs from this one by the fewest edits, if those are few for its length.
pub(crate) fn nearest<'w>(word: &str, words: impl Iterator<Item = &'w str>) -> Option<&'w str> {
    let edits = |other: &&str| strsim::damerau_levenshtein(word, other);
    let near = words.min_by_key(edits)?;
    (edits(&near) <= (word.len() / 3).max(1)).then_some(near)
}
