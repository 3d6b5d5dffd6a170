//! What products take, and the type of their sums.

use crate::ir::kernel::DimTable;
use crate::ir::layout::{Dim, Mma, SCALED_BLOCK};
use crate::ir::node::{Dims, Op, ValueType};
use crate::ir::types::DType;

/// What is wrong with the operands of a product, and a way out.
pub(super) type ProductFault = (String, String);

/// The type of a product's sums: that of its accumulator. `operands` are those of [`Op::Mma`] or
/// [`Op::ScaledMma`].
pub(super) fn sum_type(
    op: Op,
    operands: &[&ValueType],
    dims: &DimTable,
    show: &dyn Fn(&ValueType) -> String,
) -> Result<ValueType, ProductFault> {
    let (&[lhs, rhs, acc], scales) = operands.split_first_chunk().ok_or_else(|| {
        ("a product without factors".to_owned(), "give it two factors and an accumulator".to_owned())
    })?;
    let word = op.row().word;
    let product = || format!("{word} of {}, {} and {}", show(lhs), show(rhs), show(acc));
    let MmaDims { k: [SummedDim { dim: k, .. }, _], .. } = MmaDims::of(lhs, rhs, acc).map_err(|text| {
        let help = format!(
            "{word} wants m and k, n and k into [.., m, n], and the same other dimensions in all three"
        );
        (format!("{}: {text}", product()), help)
    })?;
    let factors = lhs.dtype.zip(rhs.dtype);
    let multiplies = |mma: Mma| {
        (Some(mma.inputs().into()), Some(mma.accumulator())) == (factors, acc.dtype)
            && (scales.is_empty() || mma.has_scales())
    };
    if !Mma::all().any(multiplies) {
        let [left, right, sum] =
            [lhs.dtype, rhs.dtype, acc.dtype].map(|dtype| dtype.map_or("?", DType::name));
        let inputs = if left == right { left.to_owned() } else { format!("{left} and {right}") };
        let (with, help) = match scales {
            [] => ("", "choose the dtypes of a matrix instruction, or cast"),
            _ => (
                " with scales",
                "factors with scales are floats of OCP, f8e4m3fn, f8e5m2, f6e2m3, f6e3m2 or f4e2m1, each of its \
                 own dtype, and their sums f32",
            ),
        };
        let text = format!("{}: no matrix instruction multiplies {inputs}{with} into {sum}", product());
        return Err((text, help.to_owned()));
    }
    let blocks = dims.0.get(k).and_then(|k| dims.find(k.scaled(SCALED_BLOCK)));
    for (scale, (factor, side)) in scales.iter().zip([(lhs, "lhs"), (rhs, "rhs")]) {
        let wanted = factor.dims.iter().map(|&dim| if dim == k { blocks } else { Some(dim) });
        let has_all = wanted.clone().all(|dim| dim.is_some_and(|dim| scale.dims.contains(&dim)));
        if !has_all || scale.dims.len() != factor.dims.len() || scale.dtype != Some(DType::F8E8M0) {
            let k = dims.name(k);
            let name = |&dim: &_| {
                if dims.name(dim) == k { format!("{k}/{SCALED_BLOCK}") } else { dims.name(dim).to_owned() }
            };
            let names: Vec<String> = factor.dims.iter().map(name).collect();
            let names = names.join(", ");
            let text = format!("{word}: the scales of {side} are {}, not [{names}] f8e8m0", show(scale));
            let help = format!(
                "each {SCALED_BLOCK} elements of {k} share a scale: read it from `memory [{names}] global \
                 f8e8m0`"
            );
            return Err((text, help));
        }
    }
    Ok(acc.clone())
}

/// The roles of the dimensions of an `mma`.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct MmaDims {
    /// Rows of lhs and acc.
    pub m: Dim,
    /// Rows of rhs, columns of acc.
    pub n: Dim,
    /// What lhs and rhs are summed along.
    pub k: [SummedDim; 2],
}

/// What a factor is summed along.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct SummedDim {
    /// The dimension itself or, of packed elements, that of their units.
    pub dim: Dim,
    /// The words of a unit, if it has several.
    pub words: Option<Dim>,
}

/// What is wrong with factors that have a dimension of their own.
const OTHER_DIMENSIONS: &str = "all three must have the same dimensions beside m, n and k";

impl SummedDim {
    /// The one along which the elements of a factor lie that is not turned.
    pub(crate) fn innermost(self) -> Dim {
        self.words.unwrap_or(self.dim)
    }
}

impl MmaDims {
    /// Reads the roles off the operand types: k is in lhs and rhs and not in acc; m and n are the last two
    /// dims of acc. The factors may have their dims in any order.
    ///
    /// # Errors
    /// Says what does not fit.
    pub(crate) fn of(lhs: &ValueType, rhs: &ValueType, acc: &ValueType) -> Result<MmaDims, &'static str> {
        let mut shared = lhs.dims.iter().filter(|d| rhs.dims.contains(d) && !acc.dims.contains(d));
        if let (2.., (None, _) | (_, Some(_))) = (acc.dims.len(), (shared.next(), shared.next())) {
            return Err("lhs and rhs must share exactly one dimension that the accumulator lacks");
        }
        let roles = MmaDims::held(lhs, rhs, acc)?;
        let is_whole = roles.k.iter().all(|k| k.dim == roles.k[0].dim && k.words.is_none());
        is_whole.then_some(roles).ok_or(OTHER_DIMENSIONS)
    }

    /// The same of factors that may be packed, each in its own way: along units, and words of these.
    ///
    /// # Errors
    /// Says what does not fit.
    pub(crate) fn held(lhs: &ValueType, rhs: &ValueType, acc: &ValueType) -> Result<MmaDims, &'static str> {
        let [.., m, n] = acc.dims[..] else { return Err("the accumulator needs two dimensions") };
        if !lhs.dims.contains(&m) || lhs.dims.contains(&n) {
            return Err("lhs must have the accumulator's second last dimension, and not its last");
        }
        if !rhs.dims.contains(&n) || rhs.dims.contains(&m) {
            return Err("rhs must have the accumulator's last dimension, and not its second last");
        }
        let batch = &acc.dims[..acc.dims.len() - 2];
        let summed = |dims: &Dims| {
            let mut own = dims.iter().copied().filter(|dim| !acc.dims.contains(dim));
            let (dim, words, more) = (own.next(), own.next(), own.next());
            let whole = dims.len() == acc.dims.len() + usize::from(words.is_some())
                && batch.iter().all(|d| dims.contains(d));
            match (dim, more) {
                (Some(dim), None) if whole => Ok(SummedDim { dim, words }),
                _ => Err(OTHER_DIMENSIONS),
            }
        };
        Ok(MmaDims { m, n, k: [summed(&lhs.dims)?, summed(&rhs.dims)?] })
    }
}
