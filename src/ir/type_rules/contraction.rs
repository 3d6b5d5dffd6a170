//! Products: factors with m and k, and with n and k, in any order, into `[.., m, n]`, of dtypes that a matrix
//! instruction multiplies. With scales there is one for each block of a factor.

use super::{BrokenRule, TypeFault, TypeRules, TypedNode, WrittenBy};
use crate::ir::layout::{Dim, Mma, SCALED_BLOCK};
use crate::ir::node::{Dims, ValueType};
use crate::ir::types::DType;

impl TypeRules<'_> {
    /// The type of a product's sums: that of its accumulator.
    pub(super) fn sum(&self, node: &TypedNode) -> Result<ValueType, TypeFault> {
        let Some((&[lhs, rhs, acc], scales)) = node.operands.split_first_chunk() else {
            return Err(TypeFault::operands());
        };
        let word = node.op.row().word;
        let MmaDims { k, .. } = self.roles(lhs, rhs, acc).map_err(|text| {
            let help = format!(
                "{word} wants m and k, n and k into [.., m, n], and the same other dimensions in all three"
            );
            TypeFault::dims(format!("{}: {text}", self.product(word, [lhs, rhs, acc])), help)
        })?;
        let multiplies = |mma: Mma| {
            let held = mma
                .inputs()
                .into_iter()
                .zip([lhs, rhs])
                .all(|(input, factor)| self.holds_input(factor, input));
            held && acc.dtype == Some(mma.accumulator()) && (scales.is_empty() || mma.has_scales())
        };
        if !Mma::all().any(multiplies) {
            return Err(self.not_multiplied(word, [lhs, rhs, acc], scales));
        }
        for (scale, (factor, side, k)) in scales.iter().zip([(lhs, "lhs", k[0]), (rhs, "rhs", k[1])]) {
            self.scaled((word, side), scale, (factor, acc), k.dim)?;
        }
        Ok(acc.clone())
    }

    fn product(&self, word: &str, operands: [&ValueType; 3]) -> String {
        let [lhs, rhs, acc] = operands.map(|ty| self.show(ty));
        format!("{word} of {lhs}, {rhs} and {acc}")
    }

    fn not_multiplied(&self, word: &str, operands: [&ValueType; 3], scales: &[&ValueType]) -> TypeFault {
        let [left, right, sum] = operands.map(|ty| ty.dtype.map_or("?", DType::name));
        let inputs = if left == right { left.to_owned() } else { format!("{left} and {right}") };
        let (with, help) = match scales {
            [] => ("", "choose the dtypes of a matrix instruction, or cast"),
            _ => (
                " with scales",
                "factors with scales are floats of OCP, f8e4m3fn, f8e5m2, f6e2m3, f6e3m2 or f4e2m1, each of its \
                 own dtype, and their sums f32",
            ),
        };
        let product = self.product(word, operands);
        TypeFault::dtypes(
            format!("{product}: no matrix instruction multiplies {inputs}{with} into {sum}"),
            help,
        )
    }

    /// True if a factor has the elements that an instruction takes; passes pack those of 4 and 6 bits.
    fn holds_input(&self, factor: &ValueType, input: DType) -> bool {
        let packed = input.packing().filter(|_| self.written_by == WrittenBy::Passes);
        factor.dtype == Some(input) || packed.is_some_and(|packing| factor.dtype == Some(packing.word))
    }

    /// The roles of the dimensions of a product.
    fn roles(&self, lhs: &ValueType, rhs: &ValueType, acc: &ValueType) -> Result<MmaDims, &'static str> {
        if self.written_by == WrittenBy::Author {
            return MmaDims::of(lhs, rhs, acc);
        }
        let roles = MmaDims::held(lhs, rhs, acc)?;
        let [left, right] = [(lhs, 0), (rhs, 1)].map(|(factor, at)| {
            let SummedDim { dim, words } = roles.k[at];
            // Words of a unit are those of 6-bit floats.
            let fits = words.is_none() || factor.dtype == Some(DType::I32);
            let is_packed = self.is_packed(factor) && acc.dtype == Some(DType::F32);
            fits.then(|| if is_packed { self.base(dim) } else { dim })
        });
        if left.is_some() && left == right { Ok(roles) } else { Err(OTHER_DIMENSIONS) }
    }

    /// The dimension that another one follows, or that one itself.
    fn base(&self, dim: Dim) -> Dim {
        self.dims.scaled_from(dim).map_or(dim, |(base, _)| base)
    }

    /// Checks that a factor has a scale for each block of its elements along `k`.
    fn scaled(
        &self,
        (word, side): (&str, &str),
        scale: &ValueType,
        (factor, acc): (&ValueType, &ValueType),
        k: Dim,
    ) -> Result<(), TypeFault> {
        // Packed elements have the blocks of the dimension that their units follow.
        let elements = if self.is_packed(factor) { self.base(k) } else { k };
        let blocks = self.dims.0.get(elements).and_then(|k| self.dims.find(k.scaled(SCALED_BLOCK)));
        let own = factor.dims.iter().filter(|dim| acc.dims.contains(dim));
        let has_all = own.clone().all(|dim| scale.dims.contains(dim))
            && blocks.is_some_and(|blocks| scale.dims.contains(&blocks));
        if has_all && scale.dims.len() == own.count() + 1 && scale.dtype == Some(DType::F8E8M0) {
            return Ok(());
        }
        let k = self.dims.name(k);
        let name = |&dim: &Dim| match self.dims.name(dim) {
            name if name == k => format!("{k}/{SCALED_BLOCK}"),
            name => name.to_owned(),
        };
        let names: Vec<String> = factor.dims.iter().map(name).collect();
        let names = names.join(", ");
        let text = format!("{word}: the scales of {side} are {}, not [{names}] f8e8m0", self.show(scale));
        let help = format!(
            "each {SCALED_BLOCK} elements of {k} share a scale: read it from `memory [{names}] global f8e8m0`"
        );
        Err(TypeFault::new(BrokenRule::Scales, text, help))
    }

    fn is_packed(&self, factor: &ValueType) -> bool {
        self.written_by == WrittenBy::Passes && matches!(factor.dtype, Some(DType::I8 | DType::I32))
    }
}

/// The roles of the dimensions of an `mma`.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct MmaDims {
    /// Rows of lhs and acc.
    pub m: Dim,
    /// Rows of rhs, columns of acc.
    pub n: Dim,
    /// The dimensions along which lhs and rhs are summed.
    pub k: [SummedDim; 2],
}

/// The dimension along which a factor is summed.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct SummedDim {
    /// The dimension itself or, of packed elements, that of their units.
    pub dim: Dim,
    /// The words of a unit, if it has several.
    pub words: Option<Dim>,
}

/// The fault of factors that have a dimension of their own.
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
