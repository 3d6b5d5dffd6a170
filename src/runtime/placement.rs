//! Where the elements of a tensor argument are in its buffer.

use smallvec::SmallVec;

use super::executable::{Parameter, Size};
use crate::ir::diagnostic::Diagnostic;
use crate::ir::expr::Symbol;
use crate::ir::types::DType;

/// Sizes and strides of a tensor argument, as numbers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct BufferPlacement {
    pub(super) sizes: SmallVec<[u64; 4]>,
    /// Empty if the elements lie row after row.
    pub(super) strides: SmallVec<[u64; 4]>,
}

impl BufferPlacement {
    /// That of a tensor argument, where `value` gives the dynamic symbols: those without a value count as
    /// nothing, which other checks of a launch refuse. `None` for other parameters.
    ///
    /// # Errors
    /// Strides that do not fit 64 bits, and coordinates that reach into the elements of the next one; along a
    /// dimension of one element there is no next one.
    pub(super) fn of(
        parameter: &Parameter,
        value: &dyn Fn(Symbol) -> Option<i64>,
    ) -> Result<Option<BufferPlacement>, Diagnostic> {
        let Parameter::Buffer { name, shape, strides, .. } = parameter else { return Ok(None) };
        let number = |size: &Size| match *size {
            Size::Static(n) => u64::from(n),
            Size::Dynamic(symbol) => {
                symbol.value_where(value).and_then(|v| u64::try_from(v).ok()).unwrap_or(0)
            }
        };
        let product = |sizes: &SmallVec<[Size; 2]>| {
            let number = sizes.iter().try_fold(1u64, |product, size| product.checked_mul(number(size)));
            number.ok_or_else(|| Diagnostic::invalid(format!("a stride of `{name}` does not fit 64 bits")))
        };
        let placement = BufferPlacement {
            sizes: shape.iter().map(number).collect(),
            strides: strides.iter().map(product).collect::<Result<_, _>>()?,
        };
        let mut span = 1u64;
        let own = placement.sizes.iter().copied().zip(placement.strides.iter().copied());
        let mut order: SmallVec<[(usize, (u64, u64)); 4]> =
            own.enumerate().filter(|&(_, (size, _))| size != 1).collect();
        if strides.last().is_some_and(|last| !last.is_empty()) {
            order.sort_by_key(|&(_, (_, stride))| std::cmp::Reverse(stride));
        }
        for &(at, (size, stride)) in order.iter().rev() {
            if stride < span {
                let text = format!(
                    "dimension {at} of `{name}` has a stride of {stride} elements, and those of one coordinate \
                     take {span}"
                );
                return Err(
                    Diagnostic::invalid(text).help("launch with larger strides: rows may not overlap")
                );
            }
            span = span.saturating_add(stride.saturating_mul(size.saturating_sub(1)));
        }
        Ok(Some(placement))
    }

    /// Elements from the first one to the last one; `None` if they are too many for 64 bits.
    pub(super) fn span(&self) -> Option<u64> {
        if self.strides.is_empty() {
            return self.sizes.iter().try_fold(1u64, |count, &size| count.checked_mul(size));
        }
        let mut span = 1u64;
        for (&size, &stride) in self.sizes.iter().zip(&self.strides) {
            span = span.checked_add(stride.checked_mul(size.saturating_sub(1))?)?;
        }
        Some(span)
    }

    /// Bytes from the first element to the last one; `None` if they are too many for 64 bits.
    pub(super) fn bytes(&self, dtype: DType) -> Option<u64> {
        match self.sizes.split_last() {
            Some((&length, rows)) if self.strides.is_empty() => {
                rows.iter().try_fold(dtype.row_bytes(length)?, |bytes, &size| bytes.checked_mul(size))
            }
            _ => self.span()?.checked_mul(dtype.bytes().into()),
        }
    }

    /// Whether there may be something between elements.
    pub(super) fn is_strided(&self) -> bool {
        !self.strides.is_empty()
    }
}
