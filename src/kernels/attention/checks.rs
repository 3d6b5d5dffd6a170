//! What attention refuses, with the way out.

use super::choices::{Attention, AttentionLayout, AttentionScales, Scale, StrideMultiple};
use super::running::largest_weight;
use crate::prelude::*;

/// The first thing that cannot be made.
pub(super) fn check(attention: &Attention) -> Result<(), Diagnostic> {
    attention.heads.check()?;
    check_inputs(attention.tensors.inputs)?;
    check_scale(attention.scale)?;
    check_threshold(attention.softmax.threshold, attention.tensors.inputs)?;
    check_layout(attention)?;
    check_scales(attention)?;
    check_rotary(attention)?;
    match attention.spread.tile {
        Some((tile, caller)) => {
            tile.check(attention.choice().1).map_err(|fault| fault.at(Some(caller.into())))
        }
        None => Ok(()),
    }
}

fn check_inputs(inputs: DType) -> Result<(), Diagnostic> {
    match inputs {
        F16 | Bf16 | F8E4M3Fnuz | F8E4M3Fn => Ok(()),
        _ => {
            let help = "use f16, bf16, or f8e4m3fnuz (gfx942) and f8e4m3fn (gfx950) inputs";
            Err(Diagnostic::invalid(format!("attention multiplies no {inputs}")).help(help))
        }
    }
}

fn check_scale(scale: Scale) -> Result<(), Diagnostic> {
    match scale {
        // Scores that a mask takes out are minus infinity before they are scaled, and have to stay that.
        Scale::Given(scale) if !(scale.is_finite() && scale > 0.0) => {
            Err(Diagnostic::invalid(format!("a scale of {scale} is no positive number"))
                .help("use a positive scale, and negate the queries where the sign is to change"))
        }
        _ => Ok(()),
    }
}

fn check_threshold(threshold: f64, weights: DType) -> Result<(), Diagnostic> {
    let most = largest_weight(weights);
    if (0.0..=most).contains(&threshold) {
        return Ok(());
    }
    let text =
        format!("a threshold of {threshold} is not between 0 and {most:.2}, which {weights} weights hold");
    Err(Diagnostic::invalid(text).help("use 0 for the maximum itself, or 8 for fewer changes of scale"))
}

fn check_layout(attention: &Attention) -> Result<(), Diagnostic> {
    match (attention.tensors.layout, attention.tensors.strides) {
        (AttentionLayout::Packed, Some(_)) => Err(Diagnostic::invalid("packed sequences have no strides")
            .help("leave `strided` out, or give sequences one length with another layout")),
        (_, Some(StrideMultiple(0))) => Err(Diagnostic::invalid("strides are multiples of 0 elements")
            .help("use 1 for any strides, or 8 for the widest accesses")),
        _ => Ok(()),
    }
}

/// Pairs are two halves of a head whose size is known, and turned in floats that hold the result.
fn check_rotary(attention: &Attention) -> Result<(), Diagnostic> {
    if attention.rotary.is_none() {
        return Ok(());
    }
    if !attention.heads.dim().is_some_and(|dim| dim.is_multiple_of(2)) {
        return Err(Diagnostic::invalid("heads without an even number of elements have no pairs to turn")
            .help("use an even head_dim, which `Attention::new` says"));
    }
    match attention.tensors.inputs {
        F16 | Bf16 => Ok(()),
        inputs => Err(Diagnostic::invalid(format!("queries and keys of {inputs} are not turned"))
            .help("turn them before they are rounded to 8 bits")),
    }
}

/// A tile has one scale for its keys.
fn check_scales(attention: &Attention) -> Result<(), Diagnostic> {
    let keys = attention.choice().0.keys;
    match attention.tensors.scales {
        Some(AttentionScales::Block(size)) if size == 0 || !size.is_multiple_of(keys) => {
            let text = format!("scales for blocks of {size} keys do not fit tiles of {keys} keys");
            Err(Diagnostic::invalid(text).help("use blocks of whole tiles, or another tile"))
        }
        _ => Ok(()),
    }
}
