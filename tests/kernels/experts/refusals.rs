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

#[test]
fn what_a_chip_or_a_block_lacks_is_refused_when_it_is_compiled() {
    let compiled = |dtype: DType, target: Target, changes: &[(&'static str, i64)]| {
        let sizes = [("BLOCKS", 1), ("ROWS", 16), ("K", 256), ("EXPERTS", 1), ("N_BLOCKS", 1)];
        let tiles = [("BLOCK_N", 128), ("WAVE_R", 16), ("WAVE_N", 64)];
        let mut all: Vec<(&str, i64)> = sizes.into_iter().chain(tiles).collect();
        if dtype == F4E2M1 {
            all.extend([("N_GROUPS", 1), ("BLOCK_K", 256)]);
        }
        let options = all.iter().fold(Options::new(target), |options, &(name, size)| {
            let changed = changes.iter().find(|change| change.0 == name).map_or(size, |change| change.1);
            options.set(name, changed)
        });
        MixtureOfExperts::new(8, 2).inputs(dtype).gate_up_gathered()?.compile(&options)
    };
    for (dtype, target) in
        [(F8E4M3Fnuz, Target::GFX950), (F8E4M3Fn, Target::GFX942), (F8E4M3Fn, Target::GFX90A)]
    {
        let fault = compiled(dtype, target, &[]).expect_err("no such instruction").to_string();
        assert!(fault.contains(&format!("{target} has no matrix instruction")), "{fault}");
    }
    assert!(compiled(F8E4M3Fnuz, Target::GFX942, &[]).is_ok());
    let fault = compiled(F4E2M1, Target::GFX942, &[]).expect_err("no such instruction").to_string();
    assert!(fault.contains("gfx942 has no matrix instruction whose factors have scales"), "{fault}");
    // Scales that lie side by side are those of 256 of K.
    let fault = compiled(F4E2M1, Target::GFX950, &[("BLOCK_K", 96)]).expect_err("no whole group").to_string();
    assert!(fault.contains("does not hold whole blocks of 256"), "{fault}");
}
