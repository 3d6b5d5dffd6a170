//! What cannot be made is a diagnostic with the way out, at the line that asked for it.

use groundswell::kernels::MixtureOfExperts;
use groundswell::prelude::*;

use crate::refused::refused;

#[test]
fn choices_groups_and_dtypes_that_cannot_be_are_refused() {
    for [experts, top_k] in [[8, 0], [4, 5], [64, 33], [0, 1]] {
        let text = format!("each token has {top_k} of {experts} experts");
        refused(MixtureOfExperts::new(experts, top_k).route(), &text, "from 1 to 32");
        refused(MixtureOfExperts::new(experts, top_k).combine(), &text, "from 1 to 32");
    }
    for [groups, kept] in [[0, 0], [3, 1], [4, 0], [4, 5]] {
        let text = format!("{kept} of {groups} groups of 16 experts");
        refused(MixtureOfExperts::new(16, 2).groups(groups, kept).route(), &text, "divides that of experts");
    }
    let few = MixtureOfExperts::new(16, 6).groups(4, 1).route();
    refused(few, "1 groups of 4 experts have no 6 experts", "keep more groups");
    refused(MixtureOfExperts::new(8, 2).inputs(F32).gate_up(), "experts of f32", "bf16 or f16");
    refused(MixtureOfExperts::new(8, 2).inputs(I8).down_atomic(), "experts of i8", "bf16 or f16");
}

#[test]
fn blocks_are_enough_for_every_choice() {
    for (experts, top_k, tokens, rows, enough) in
        [(8, 2, 16, 16, 9), (8, 2, 1, 16, 2), (256, 8, 1, 64, 8), (1, 1, 100, 32, 4), (4, 1, 0, 16, 0)]
    {
        assert_eq!(MixtureOfExperts::new(experts, top_k).blocks(tokens, rows), enough);
    }
}
