//! Inverse maps: from the indices of an input to those of the output element that reads it.

use super::element::{ElementNode, ReadIndex, TensorId};
use super::{ElementId, Task};
use crate::prelude::*;

/// Elements of the output that are checked for each choice of sizes.
const CHECKED: i64 = 4096;

/// A map from an input's index to the output's.
#[derive(Clone, Debug)]
pub(super) struct InverseMap {
    pub(super) input: TensorId,
    /// Symbols that stand for the input's indices.
    pub(super) axes: Vec<Symbol>,
    /// The index of the output.
    pub(super) results: Vec<SymExpr>,
}

/// Checks by evaluation that a map inverts the task's read of the input: for each output element, the map of
/// the indices that it reads is its own index.
///
/// # Errors
/// Several outputs, an input that is not read once, other ranks, or an element for which it does not hold.
pub(super) fn check_inverse(task: &Task, inverse: &InverseMap) -> Result<(), Diagnostic> {
    let input = &task.tensors[inverse.input];
    let fault = |why: String| {
        Diagnostic::invalid(format!("the inverse map of {} does not invert: {why}", input.name))
            .help("map the indices of the input to those of the output element that reads it")
    };
    let [output] = task.outputs[..] else {
        return Err(fault("the task has several outputs".to_owned()));
    };
    let axes = &task.tensors[output].axes;
    if inverse.axes.len() != input.axes.len() || inverse.results.len() != axes.len() {
        let text = format!(
            "it maps {} indices to {}, and the input has {}, the output {}",
            inverse.axes.len(),
            inverse.results.len(),
            input.axes.len(),
            axes.len()
        );
        return Err(fault(text));
    }
    let mut reads = Vec::new();
    let identity = axes.iter().map(|axis| SymExpr::from(axis.index)).collect::<Vec<SymExpr>>();
    collect_reads(task, output, &identity, inverse.input, &mut reads, 0);
    let [Some(read)] = &reads[..] else {
        let text = format!("elements of the output read it {} times, or at computed indices", reads.len());
        return Err(fault(text));
    };
    for choice in 0..3 {
        let size = |symbol: Symbol| {
            let at = task.symbols().iter().position(|&known| known == symbol)?;
            Some([4, 3, 6][(at + choice) % 3])
        };
        let extents: Option<Vec<i64>> = axes.iter().map(|axis| axis.extent.value(&size)).collect();
        let Some(extents) = extents else { return Ok(()) };
        let count: i64 = extents.iter().copied().fold(1, i64::saturating_mul);
        for number in 0..count.min(CHECKED) {
            let mut rest = number;
            let mut index = vec![0; extents.len()];
            for (digit, extent) in index.iter_mut().zip(&extents).rev() {
                *digit = rest % extent;
                rest /= extent;
            }
            let of_output = |symbol: Symbol| {
                let place = axes.iter().position(|axis| axis.index == symbol);
                place.map(|place| index[place]).or_else(|| size(symbol))
            };
            let at: Vec<Option<i64>> = read.iter().map(|e| e.value(&of_output)).collect();
            let of_input = |symbol: Symbol| {
                let place = inverse.axes.iter().position(|&axis| axis == symbol);
                place.map_or_else(|| size(symbol), |place| at[place])
            };
            let back: Vec<Option<i64>> = inverse.results.iter().map(|e| e.value(&of_input)).collect();
            if !back.iter().copied().eq(index.iter().map(|&digit| Some(digit))) {
                return Err(fault(format!(
                    "the output element {index:?} reads {at:?}, which it maps to {back:?}"
                )));
            }
        }
    }
    Ok(())
}

/// The indices at which elements of a tensor read an input, by way of other tensors too; nothing for a read at
/// indices that are elements.
fn collect_reads(
    task: &Task,
    tensor: TensorId,
    at: &[SymExpr],
    input: TensorId,
    reads: &mut Vec<Option<Vec<SymExpr>>>,
    depth: u32,
) {
    let definition = &task.tensors[tensor];
    let Some(value) = definition.value.filter(|_| depth < 64) else { return };
    let replace = |symbol: Symbol| {
        definition.axes.iter().position(|axis| axis.index == symbol).and_then(|place| at.get(place).cloned())
    };
    let mut found: Vec<(TensorId, Option<Vec<SymExpr>>)> = Vec::new();
    let mut see = |element: ElementId| {
        if let ElementNode::Read { tensor, indices } = task.elements.node(element) {
            let affine = indices.iter().map(|index| match index {
                ReadIndex::Affine(e) => Some(e.replaced(&replace)),
                ReadIndex::Element(_) => None,
            });
            found.push((*tensor, affine.collect()));
        }
    };
    let mut next = vec![value];
    while let Some(element) = next.pop() {
        see(element);
        task.elements.node(element).operands(|operand| next.push(operand));
    }
    for (read, indices) in found {
        match indices {
            indices if read == input => reads.push(indices),
            Some(indices) => collect_reads(task, read, &indices, input, reads, depth + 1),
            None => {}
        }
    }
}
