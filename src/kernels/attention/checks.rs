//! What attention refuses, with the way out.

use super::builder::Attention;
use super::scores::Scale;
use crate::prelude::*;

/// The first thing that cannot be made.
pub(super) fn check(attention: &Attention) -> Result<(), Diagnostic> {
    attention.heads.check()?;
    check_inputs(attention.inputs)?;
    check_scale(attention.scale)?;
    check_threshold(attention.softmax.threshold, attention.inputs)?;
    match attention.tile {
        Some((tile, caller)) => {
            tile.check(attention.choice().1).map_err(|fault| fault.at(Some(caller.into())))
        }
        None => Ok(()),
    }
}

fn check_inputs(inputs: DType) -> Result<(), Diagnostic> {
    match inputs {
        F16 | Bf16 => Ok(()),
        _ => {
            Err(Diagnostic::invalid(format!("attention multiplies no {inputs}"))
                .help("use f16 or bf16 inputs"))
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
    let (most, why) = match weights {
        F16 => (65504f64.log2(), "f16 weights hold"),
        // Sums of many weights stay far from the end of f32.
        _ => (96.0, "the sums of bf16 weights hold"),
    };
    if (0.0..=most).contains(&threshold) {
        return Ok(());
    }
    let text = format!("a threshold of {threshold} is not between 0 and {most:.2}, which {why}");
    Err(Diagnostic::invalid(text).help("use 0 for the maximum itself, or 8 for fewer changes of scale"))
}
