//! Spelling help: the known name that a misspelt one is closest to.

use strsim::levenshtein;

/// The candidate that differs from `name` in the fewest letters, if those are few.
pub(crate) fn closest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // Names longer than any known one are not misspelt ones, and would cost time.
    if name.len() > 40 {
        return None;
    }
    // Names of one letter, with the sign of a value or without, are all alike.
    let letters = name.trim_start_matches('%').len();
    let limit = (letters / 3).max(1).min(letters.saturating_sub(1));
    let distances = candidates.into_iter().map(|candidate| (levenshtein(name, candidate), candidate));
    distances
        .filter(|(distance, _)| *distance <= limit)
        .min_by_key(|(distance, _)| *distance)
        .map(|best| best.1)
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
}
