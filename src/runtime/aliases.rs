//! Arguments that overlap in memory. A kernel reads and writes its tensors as if they were apart: where one
//! that it writes is in the place of another, what it reads depends on who comes first. Launches refuse that,
//! unless the compiler has found the two to be safe in one place
//! ([`Executable::in_place`](super::executable::Executable::in_place)).

use super::executable::Executable;
use super::placement::BufferPlacement;
use crate::ir::diagnostic::Diagnostic;

/// A tensor argument of a launch, and where its elements are.
pub(super) struct TensorArgument<'p> {
    /// Its number among the parameters.
    pub(super) number: u32,
    pub(super) name: &'p str,
    pub(super) written: bool,
    pub(super) address: u64,
    /// From the first element to the end of the last one.
    pub(super) bytes: u64,
    /// Bytes of an element.
    pub(super) element: u64,
    pub(super) placement: BufferPlacement,
}

/// Checks all pairs of tensors of a launch.
///
/// # Errors
/// Two that share memory, of which the kernel writes one.
pub(super) fn check(executable: &Executable, tensors: &[TensorArgument]) -> Result<(), Diagnostic> {
    for (at, one) in tensors.iter().enumerate() {
        for other in &tensors[..at] {
            if (one.written || other.written) && one.overlaps(other) && !may_be_one(executable, other, one) {
                return Err(overlap(executable, other, one));
            }
        }
    }
    Ok(())
}

/// Whether two tensors have each element in the same place, and the kernel is made for that.
fn may_be_one(executable: &Executable, one: &TensorArgument, other: &TensorArgument) -> bool {
    let [read, written] = if other.written { [one, other] } else { [other, one] };
    executable.in_place().contains(&[read.number, written.number])
        && one.address == other.address
        && one.element == other.element
        && one.placement == other.placement
}

fn overlap(executable: &Executable, one: &TensorArgument, other: &TensorArgument) -> Diagnostic {
    let [read, written] = if other.written { [one, other] } else { [other, one] };
    let (name, [first, second]) = (executable.name(), [read.name, written.name]);
    let text = if read.written {
        format!("`{first}` and `{second}` share memory, and `{name}` writes both")
    } else {
        format!("`{first}` and `{second}` share memory, and `{name}` writes `{second}`")
    };
    let is_in_place = executable.in_place().contains(&[read.number, written.number]);
    let why = if is_in_place {
        "they may be one tensor, with every element in the same place, and here they are not"
    } else {
        "an element may be written before another part of the launch has read it"
    };
    let help = if read.written {
        format!("pass another buffer for `{second}`")
    } else {
        format!("pass another buffer for `{second}`, or a copy of the data for `{first}`")
    };
    Diagnostic::invalid(text).note(why, None).help(help)
}

impl TensorArgument<'_> {
    /// Whether the two may have an element in the same place.
    fn overlaps(&self, other: &TensorArgument) -> bool {
        let [first, second] = if self.address <= other.address { [self, other] } else { [other, self] };
        let distance = second.address - first.address;
        let is_empty = |own: &TensorArgument| own.placement.sizes.contains(&0);
        if is_empty(first) || is_empty(second) || distance >= first.bytes {
            return false;
        }
        // Parts of the rows of one matrix, side by side: what is in one row of each never reaches the other.
        let strides = first.placement.strides.iter().map(|stride| stride.saturating_mul(first.element));
        !strides.filter(|&row| row > 0).any(|row| {
            let start = distance % row;
            let within = |own: &TensorArgument| own.bytes_within(row);
            within(first).is_some_and(|bytes| bytes <= start)
                && within(second).is_some_and(|bytes| start.checked_add(bytes).is_some_and(|end| end <= row))
        })
    }

    /// Bytes from the first to the last element of those whose coordinates along dimensions with strides of
    /// whole rows are the same, for rows of so many bytes; `None` if they are too many for 64 bits.
    fn bytes_within(&self, row: u64) -> Option<u64> {
        let mut bytes = self.element;
        let mut dense = self.element;
        for (at, &size) in self.placement.sizes.iter().enumerate().rev() {
            let stride = match self.placement.strides.get(at) {
                Some(stride) => stride.checked_mul(self.element)?,
                None => dense,
            };
            if !stride.is_multiple_of(row) {
                bytes = bytes.checked_add(stride.checked_mul(size.saturating_sub(1))?)?;
            }
            dense = dense.checked_mul(size)?;
        }
        Some(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn argument(address: u64, sizes: &[u64], strides: &[u64]) -> TensorArgument<'static> {
        let placement = BufferPlacement { sizes: sizes.into(), strides: strides.into() };
        let bytes = 4 * placement.span().expect("small");
        TensorArgument { number: 0, name: "x", written: true, address, bytes, element: 4, placement }
    }

    /// Whether two tensors overlap, by all their elements.
    fn meet(one: &TensorArgument, other: &TensorArgument) -> bool {
        let elements = |own: &TensorArgument| {
            let mut places = vec![own.address];
            let mut dense = 1;
            for (at, &size) in own.placement.sizes.iter().enumerate().rev() {
                let stride = own.placement.strides.get(at).copied().unwrap_or(dense);
                let steps = (0..size).map(|step| 4 * step * stride);
                places = steps.flat_map(|step| places.iter().map(move |place| place + step)).collect();
                dense *= size;
            }
            places
        };
        let (own, others) = (elements(one), elements(other));
        own.iter().any(|&a| others.iter().any(|&b| a.abs_diff(b) < 4))
    }

    #[test]
    fn tensors_that_overlap_are_found() {
        let shapes: [(&[u64], &[u64]); 6] = [
            (&[4, 8], &[]),
            (&[4, 8], &[32, 1]),
            (&[4, 3], &[32, 1]),
            (&[2, 4, 8], &[128, 32, 1]),
            (&[8, 4], &[1, 32]),
            (&[0, 8], &[]),
        ];
        let mut apart = 0;
        for (sizes, strides) in shapes {
            for (other_sizes, other_strides) in shapes {
                for place in 0..80 {
                    let one = argument(1 << 20, sizes, strides);
                    let other = argument((1 << 20) + 16 * place, other_sizes, other_strides);
                    let overlaps = one.overlaps(&other);
                    assert_eq!(overlaps, other.overlaps(&one));
                    assert!(overlaps || !meet(&one, &other), "{sizes:?} {other_sizes:?} {place}");
                    apart += u32::from(!overlaps && place < 8);
                }
            }
        }
        // Columns beside each other are no overlap.
        let [left, right] = [0, 8].map(|column| argument(4096 + 4 * column, &[4, 8], &[32, 1]));
        assert!(!left.overlaps(&right) && left.overlaps(&left));
        assert!(apart > 0);
    }
}
