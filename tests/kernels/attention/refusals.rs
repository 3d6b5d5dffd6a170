//! What cannot be made is said, with the way out.

use groundswell::kernels::{Attention, AttentionScales, AttentionTile, RopePairs};
use groundswell::prelude::*;

#[track_caller]
fn refused(attention: Attention, message: &str, help: &str) {
    let fault = attention.kernel().expect_err("no such kernel");
    assert_eq!(fault.message, message);
    assert!(fault.to_string().contains(help), "{fault}");
    assert!(fault.to_string().contains("refusals.rs"), "{fault}");
}

#[test]
fn heads_that_are_none_or_do_not_divide_or_are_too_large() {
    refused(Attention::new(0, 64), "attention has no heads", "at least one head");
    let shared = "use a number of heads of keys and values that divides that of queries";
    refused(
        Attention::new(6, 64).kv_heads(4),
        "6 heads of queries do not divide among 4 heads of keys",
        shared,
    );
    refused(
        Attention::new(6, 64).kv_heads(0),
        "6 heads of queries do not divide among 0 heads of keys",
        shared,
    );
    let small = "use heads of 1 to 256 elements";
    refused(Attention::new(6, 0), "a head of 0 elements is not kept in registers", small);
    refused(Attention::new(6, 320), "a head of 320 elements is not kept in registers", small);
    let values = Attention::new(6, 64).value_dim(512);
    refused(values, "a head of values of 512 elements is not kept in registers", small);
}

#[test]
fn numbers_that_the_dtypes_do_not_hold() {
    let help = "use 0 for the maximum itself";
    let message = "a threshold of 16 is not between 0 and 16.00, which f16 weights hold";
    refused(Attention::new(6, 64).inputs(F16).threshold(16.0), message, help);
    let message = "a threshold of -1 is not between 0 and 96.00, which bf16 weights hold";
    refused(Attention::new(6, 64).threshold(-1.0), message, help);
    let scale = "a scale of 0 is no positive number";
    refused(Attention::new(6, 64).scale(0.0), scale, "negate the queries");
    refused(Attention::new(6, 64).inputs(F64), "attention multiplies no f64", "use f16, bf16, or");
}

#[test]
fn tiles_that_waves_do_not_divide() {
    let attention = Attention::new(6, 128).tile(AttentionTile::new(100, 32, 64));
    let help = "use multiples of 32, and whole waves";
    refused(attention, "100 queries by 64 keys, 32 queries a wave, are no tile", help);
}

#[test]
fn layouts_and_scales_that_do_not_go_together() {
    let packed = Attention::new(6, 128).packed();
    refused(packed.clone().strided(8), "packed sequences have no strides", "leave `strided` out");
    let strided = Attention::new(6, 128).strided(0);
    refused(strided, "strides are multiples of 0 elements", "use 1 for any strides");
    let blocks = Attention::new(6, 128).inputs(F8E4M3Fnuz).scales(AttentionScales::Block(100));
    let message = "scales for blocks of 100 keys do not fit tiles of 64 keys";
    refused(blocks, message, "use blocks of whole tiles");
    let lifted = Attention::new(6, 128).inputs(F8E4M3Fn).threshold(9.0);
    refused(lifted, "a threshold of 9 is not between 0 and 8.81, which f8e4m3fn weights hold", "use 0");
}

#[test]
fn pairs_that_are_none() {
    let help = "use an even head_dim";
    let message = "heads without an even number of elements have no pairs to turn";
    refused(Attention::new(2, 63).rope(RopePairs::Halves), message, help);
    refused(Attention::any_shape().rope(RopePairs::Halves), message, help);
    let narrow = Attention::new(2, 64).inputs(F8E4M3Fn).rope(RopePairs::Halves);
    refused(narrow, "queries and keys of f8e4m3fn are not turned", "before they are rounded");
}

/// Chips without 8-bit products say which ones have them.
#[test]
fn dtypes_that_the_chip_lacks() {
    let attention = Attention::new(2, 64).inputs(F8E4M3Fn).sizes(1, 64, 64);
    let fault = attention.compile(Target::GFX942).expect_err("no such instruction").to_string();
    assert!(fault.contains("gfx950"), "{fault}");
}
