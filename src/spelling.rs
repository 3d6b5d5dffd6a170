//! Spelling help: the known name that a misspelt one is closest to.
//!
//! The crate strsim has an edit distance too; one function is not worth a crate that every user builds.

/// The candidate that differs from `name` in the fewest letters, if those are few.
pub(crate) fn closest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // Names longer than any known one are not misspelt ones, and would cost time.
    if name.len() > 40 {
        return None;
    }
    // Names of one letter, with the sign of a value or without, are all alike.
    let letters = name.trim_start_matches('%').len();
    let limit = (letters / 3).max(1).min(letters.saturating_sub(1));
    let distances = candidates.into_iter().map(|candidate| (distance(name, candidate), candidate));
    distances
        .filter(|(distance, _)| *distance <= limit)
        .min_by_key(|(distance, _)| *distance)
        .map(|best| best.1)
}

/// Letters to insert, remove or replace to turn one into the other.
pub(crate) fn distance(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.bytes().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.bytes().enumerate() {
            let replaced = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_closest_name_wins_and_far_ones_do_not() {
        assert_eq!(closest("ad", ["sub", "add", "mul"]), Some("add"));
        assert_eq!(closest("recirpocal", ["sqrt", "reciprocal"]), Some("reciprocal"));
        assert_eq!(closest("convolve", ["sqrt", "reciprocal"]), None);
        assert_eq!((closest("a", ["b"]), closest("%a", ["%b"])), (None, None));
        assert_eq!(closest("%alpha", ["b", "alpha"]), Some("alpha"));
    }

    #[test]
    fn distance_counts_edits() {
        assert_eq!(distance("kitten", "sitting"), 3);
        assert_eq!(distance("", "abc"), 3);
    }
}
