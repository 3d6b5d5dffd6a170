//! Inverse maps: from the indices of an input to those of the output element that reads it.

use super::Task;
use super::element::{ElementNode, ReadIndex, TensorId};
use crate::prelude::*;

/// Elements of the output that are checked for each choice of sizes.
const CHECKED: i64 = 4096;

/// Tensors that are looked at before there are too many ways from the output to the input.
const MAX_VISITS: u32 = 4096;

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
    let identity = axes.iter().map(|axis| SymExpr::from(axis.index)).collect::<Vec<SymExpr>>();
    let mut reads = InputReads { task, input: inverse.input, found: Vec::new(), visits: 0 };
    reads.collect(output, &identity);
    let [Some(read)] = &reads.found[..] else {
        let many =
            if reads.visits > MAX_VISITS { "too many".to_owned() } else { reads.found.len().to_string() };
        return Err(fault(format!("elements of the output read it {many} times, or at computed indices")));
    };
    for choice in 0..3 {
        let size = |symbol: Symbol| {
            let at = task.symbols().iter().position(|&known| known == symbol)?;
            Some([4, 3, 6][(at + choice) % 3])
        };
        let extents: Option<Vec<i64>> = axes.iter().map(|axis| axis.extent.value(&size)).collect();
        let Some(extents) = extents else { return Ok(()) };
        for index in sampled(&extents) {
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
                let text = format!("the output element {index:?} reads {at:?}, which it maps to {back:?}");
                return Err(fault(text));
            }
        }
    }
    Ok(())
}

/// Indices of a box: all, or as many from everywhere in it.
fn sampled(extents: &[i64]) -> impl Iterator<Item = Vec<i64>> {
    let count = extents.iter().copied().map(|extent| extent.max(0)).fold(1, i64::saturating_mul);
    // Odd steps meet every digit of extents that are powers of two.
    let step = (count / CHECKED).max(1) | 1;
    (0..count.min(CHECKED)).map(move |number| {
        let mut rest = number.saturating_mul(step) % count;
        let mut index = vec![0; extents.len()];
        for (digit, extent) in index.iter_mut().zip(extents).rev() {
            *digit = rest % extent;
            rest /= extent;
        }
        index
    })
}

/// The reads of an input that elements of an output depend on.
struct InputReads<'a> {
    task: &'a Task,
    input: TensorId,
    /// Their indices, by those of the output; nothing for a read at indices that are elements.
    found: Vec<Option<Vec<SymExpr>>>,
    /// Tensors that have been looked at, each as often as it is read.
    visits: u32,
}

impl InputReads<'_> {
    /// Those of a tensor at these indices, by way of other tensors too.
    fn collect(&mut self, tensor: TensorId, at: &[SymExpr]) {
        let task = self.task;
        let definition = &task.tensors[tensor];
        self.visits += 1;
        let Some(value) = definition.value.filter(|_| self.visits <= MAX_VISITS) else { return };
        let replace = |symbol: Symbol| {
            let place = definition.axes.iter().position(|axis| axis.index == symbol);
            place.and_then(|place| at.get(place).cloned())
        };
        let mut reads: Vec<(TensorId, Option<Vec<SymExpr>>)> = Vec::new();
        task.elements.any(value, &mut |node| {
            if let ElementNode::Read { tensor, indices } = node {
                let affine = indices.iter().map(|index| match index {
                    ReadIndex::Affine(e) => Some(e.replaced(&replace)),
                    ReadIndex::Element(_) => None,
                });
                reads.push((*tensor, affine.collect()));
            }
            false
        });
        for (read, indices) in reads {
            match indices {
                indices if read == self.input => self.found.push(indices),
                Some(indices) => self.collect(read, &indices),
                None => {}
            }
        }
    }
}
