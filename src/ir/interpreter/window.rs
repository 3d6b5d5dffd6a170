//! Windows into row-major tensors: the one copy loop that slices of a loop's iteration, broadcasts and
//! transpositions share.

use smallvec::SmallVec;

/// One dimension of a window, outermost first. The window's element `i` along it is the tensor's element
/// `start + i`.
#[derive(Copy, Clone, Debug)]
pub(super) struct Axis {
    /// Elements of the window.
    pub extent: usize,
    /// First element in the tensor.
    pub start: usize,
    /// Elements of the tensor: the window may extend beyond them.
    pub limit: usize,
    /// Distance of neighbours in the tensor; 0 repeats one element.
    pub stride: usize,
}

pub(super) type Axes = SmallVec<[Axis; 4]>;

/// Distances of neighbours in a row-major tensor.
pub(super) fn strides(shape: &[usize]) -> SmallVec<[usize; 4]> {
    let mut strides: SmallVec<[usize; 4]> = SmallVec::from_elem(1, shape.len());
    for i in (1..shape.len()).rev() {
        strides[i - 1] = strides[i] * shape[i];
    }
    strides
}

/// True if a window is the whole tensor.
pub(super) fn is_whole(axes: &[Axis]) -> bool {
    axes.iter().all(|axis| axis.start == 0 && axis.extent == axis.limit)
}

/// Copies a window out; elements beyond the tensor have the default value (zero).
pub(super) fn gather<T: Copy + Default>(tensor: &[T], axes: &[Axis]) -> Vec<T> {
    let mut out = Vec::with_capacity(axes.iter().map(|a| a.extent).product());
    gather_from(tensor, 0, axes, &mut out);
    out
}

fn gather_from<T: Copy + Default>(tensor: &[T], base: usize, axes: &[Axis], out: &mut Vec<T>) {
    let Some((axis, inner)) = axes.split_first() else {
        out.push(tensor[base]);
        return;
    };
    let inside = axis.extent.min(axis.limit.saturating_sub(axis.start));
    let first = base + axis.start * axis.stride;
    if inner.is_empty() && axis.stride == 1 && inside > 0 {
        out.extend_from_slice(&tensor[first..first + inside]);
    } else {
        for i in 0..inside {
            gather_from(tensor, first + i * axis.stride, inner, out);
        }
    }
    let outside = (axis.extent - inside) * inner.iter().map(|a| a.extent).product::<usize>();
    out.resize(out.len() + outside, T::default());
}

/// Copies a window, whose elements are `window` in order, into the tensor; elements beyond it are dropped.
pub(super) fn scatter<T: Copy>(tensor: &mut [T], axes: &[Axis], window: &[T]) {
    scatter_to(tensor, 0, axes, window);
}

fn scatter_to<T: Copy>(tensor: &mut [T], base: usize, axes: &[Axis], window: &[T]) {
    let Some((axis, inner)) = axes.split_first() else {
        tensor[base] = window[0];
        return;
    };
    let inside = axis.extent.min(axis.limit.saturating_sub(axis.start));
    let first = base + axis.start * axis.stride;
    let size = inner.iter().map(|a| a.extent).product::<usize>();
    if size == 0 {
        return;
    }
    if inner.is_empty() && axis.stride == 1 {
        tensor[first..first + inside].copy_from_slice(&window[..inside]);
        return;
    }
    for (i, part) in window.chunks_exact(size).take(inside).enumerate() {
        scatter_to(tensor, first + i * axis.stride, inner, part);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn axis(extent: usize, start: usize, limit: usize, stride: usize) -> Axis {
        Axis { extent, start, limit, stride }
    }

    #[test]
    fn a_window_over_the_edge_reads_zeros_and_drops_writes() {
        let tensor: Vec<i32> = (1..=6).collect();
        let axes = [axis(2, 0, 2, 3), axis(2, 2, 3, 1)];
        assert_eq!(gather(&tensor, &axes), [3, 0, 6, 0]);
        let mut written = tensor.clone();
        scatter(&mut written, &axes, &[30, 31, 60, 61]);
        assert_eq!(written, [1, 2, 30, 4, 5, 60]);
        assert_eq!(gather(&tensor, &[axis(2, 5, 2, 3), axis(1, 0, 3, 1)]), [0, 0], "wholly outside");
    }

    #[test]
    fn strides_transpose_and_repeat() {
        let tensor: Vec<i32> = (1..=6).collect();
        assert_eq!(strides(&[2, 3]).as_slice(), [3, 1]);
        assert_eq!(gather(&tensor, &[axis(3, 0, 3, 1), axis(2, 0, 2, 3)]), [1, 4, 2, 5, 3, 6]);
        assert_eq!(gather(&[7, 8], &[axis(2, 0, 2, 1), axis(3, 0, 3, 0)]), [7, 7, 7, 8, 8, 8]);
        assert_eq!(gather(&[] as &[i32], &[axis(0, 0, 0, 3), axis(3, 0, 3, 1)]), [] as [i32; 0]);
    }
}
