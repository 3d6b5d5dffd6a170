//! What the backward pass refuses, with the way out.

use super::super::checks::check as check_forward;
use super::super::choices::{Attention, AttentionLayout};
use super::super::places::ScoreChoice;
use super::choices::AttentionBackward;
use super::kernels::BackwardKernel;
use crate::prelude::*;

/// The first thing that cannot be made.
pub(super) fn check(backward: &AttentionBackward, kernel: BackwardKernel) -> Result<(), Diagnostic> {
    let attention = &backward.attention;
    check_forward(attention)?;
    check_inputs(attention)?;
    check_derivatives(attention)?;
    if kernel == BackwardKernel::Sinks && attention.softmax.sinks.is_none() {
        return Err(lacks("sinks"));
    }
    if kernel == BackwardKernel::Bias && attention.tensors.layout == AttentionLayout::Packed {
        return Err(Diagnostic::invalid("packed sequences have no gradient of a bias")
            .help("give sequences one length with another layout"));
    }
    match (backward.tile, backward.choice(kernel)) {
        (Some((tile, caller)), Some((_, matrix))) => {
            tile.check(matrix).map_err(|fault| fault.at(Some(caller.into())))
        }
        _ => Ok(()),
    }
}

fn check_inputs(attention: &Attention) -> Result<(), Diagnostic> {
    let inputs = attention.tensors.inputs;
    if !matches!(inputs, F16 | Bf16) || attention.tensors.scales.is_some() {
        return Err(Diagnostic::invalid(format!("the backward pass of attention takes no scaled {inputs}"))
            .help("use f16 or bf16 inputs without scales: widen narrow ones before"));
    }
    match attention.rotary {
        Some(_) => Err(Diagnostic::invalid("the backward pass turns no queries and keys")
            .help("turn them by a kernel of `Rope`, and dQ and dK by the same one with `sin` negated")),
        None => Ok(()),
    }
}

/// The fault of asking for a gradient of what attention does not have.
pub(super) fn lacks(what: &str) -> Diagnostic {
    let help = format!("leave that kernel out, or choose `{what}` for the forward pass, too");
    Diagnostic::invalid(format!("attention without `{what}` has no gradient of it")).help(help)
}

fn check_derivatives(attention: &Attention) -> Result<(), Diagnostic> {
    match attention.scores.iter().any(|choice| matches!(choice, ScoreChoice::Opaque(_))) {
        true => Err(Diagnostic::invalid("a function of scores comes without its derivative")
            .help("use `score_with_derivative`, whose function gives both")),
        false => Ok(()),
    }
}
