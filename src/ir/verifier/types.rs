//! The part of the verifier that runs once every result has a dtype: the types of a node and of its operands
//! must agree.
//!
//! - A read has the type of its memory or, where it turns units, has them along another dimension. A written
//!   value has the memory's dtype and all of its dims, in any order. With a mapping they have the memory's
//!   dtype and any dims, there is a coordinate for each dim of the memory, and further operands are i32 with
//!   dims among those of the value.
//! - Element-wise: one operand has all dims of the others, and the result has these; operands have the dtypes
//!   that the row of the operation admits ([`DTypes`](crate::ir::op::DTypes)), and the result has the one
//!   that follows from its [`ResultType`].
//! - `mma` takes factors with m and k, and with n and k, in any order, into `[.., m, n]`, of the dtypes that
//!   [`ACCUMULATORS`] lists.
//! - `broadcast` has all dims of its operand, and the operand's dtype. A reduction has those of its operand
//!   but the one that it runs along, and the operand's dtype; if each wave reduces its own part, also the one
//!   that counts these parts. `self_index` is i32 along its dimension, `size` one i32.
//! - A constant is a number that its dtype holds.
//! - A loop's argument, its yield and its result have the type of its initial value.

use bevy_ecs::prelude::*;
use smallvec::SmallVec;

use super::{Verifier, mapped};
use crate::ir::facts::TurnedUnits;
use crate::ir::kernel::{DimTable, ScaledDim};
use crate::ir::layout::{Dim, UnitDims};
use crate::ir::mapping::Mapping;
use crate::ir::node::*;
use crate::ir::op::ResultType;
use crate::ir::types::DType;

/// The dtypes that `mma` multiplies, and those that it accumulates in: each factor has any of a list.
const ACCUMULATORS: &[(&[DType], DType)] = &[
    (&[DType::F16], DType::F32),
    (&[DType::Bf16], DType::F32),
    (&[DType::F32], DType::F32),
    (&[DType::F64], DType::F64),
    (&[DType::I8], DType::I32),
    (&[DType::F8E4M3Fnuz, DType::F8E5M2Fnuz], DType::F32),
    (SMALL_FLOATS, DType::F32),
    // Units of 4-bit and 6-bit floats in place of them: bytes and words.
    (&[DType::F8E4M3Fn, DType::F8E5M2, DType::I8, DType::I32], DType::F32),
];

const SMALL_FLOATS: &[DType] = &[DType::F8E4M3Fn, DType::F8E5M2, DType::F6E2M3, DType::F6E3M2, DType::F4E2M1];

pub(super) fn check(verifier: &mut Verifier) {
    for at in 0..verifier.order.len() {
        let node = verifier.order[at];
        if let Some(text) = disagreement(verifier, node) {
            verifier.bug(node, text);
        }
    }
}

/// What is wrong with the types of a node. Operands that are missing or of the wrong kind have been reported
/// already.
fn disagreement(verifier: &Verifier, node: Entity) -> Option<String> {
    let (op, Operands(operands), ty) = verifier.node(node)?;
    let of = |node: Entity| verifier.node(node).map(|parts| parts.2);
    let show = |ty: &ValueType| {
        let dims: Vec<_> = ty.dims.iter().map(|&d| verifier.dim(d)).collect();
        format!("{}[{}]", ty.dtype.map_or("?", DType::name), dims.join(", "))
    };
    match (op, operands.as_slice()) {
        (Op::Register(constant), []) => {
            let fault = ty.dtype.and_then(|dtype| constant.bits(dtype).err());
            fault.map(|fault| format!("is {}, but {}", show(ty), fault.message))
        }
        (Op::Read | Op::Write | Op::Atomic(_), operands)
            if let Some(mapping) = Mapping::of(verifier.world, node) =>
        {
            let types = operands.iter().map(|&o| of(o)).collect::<Option<SmallVec<[_; 4]>>>()?;
            mapped::disagreement(*op, ty, mapping, &types, &show)
        }
        (Op::Read, &[memory]) if let Some(turned) = TurnedUnits::of(verifier.world, node) => {
            let memory = of(memory)?;
            let wrong = ty.dtype != memory.dtype || !turns(turned, &memory.dims, &ty.dims, verifier);
            wrong.then(|| format!("is {}, but turns units of {}", show(ty), show(memory)))
        }
        (Op::Read, &[memory]) => {
            let memory = of(memory)?;
            (memory != ty).then(|| format!("is {}, but its memory is {}", show(ty), show(memory)))
        }
        (Op::Write | Op::Atomic(_), &[ref values @ .., memory]) => {
            let memory = of(memory)?;
            let fits =
                |value: &&ValueType| value.dtype == memory.dtype && same_dims(&value.dims, &memory.dims);
            let wrong = values.iter().filter_map(|&value| of(value)).find(|value| !fits(value))?;
            Some(format!("writes {} to a memory that is {}", show(wrong), show(memory)))
        }
        (Op::Mma(_), &[lhs, rhs, acc]) => {
            let (lhs, rhs, acc) = (of(lhs)?, of(rhs)?, of(acc)?);
            if !is_product(lhs, rhs, acc, verifier) || !accumulates(lhs.dtype, rhs.dtype, acc.dtype) {
                return Some(format!("multiplies {} and {} into {}", show(lhs), show(rhs), show(acc)));
            }
            (ty != acc).then(|| format!("is {}, but its accumulator is {}", show(ty), show(acc)))
        }
        (Op::ScaledMma(_), &[lhs, rhs, acc, lhs_scale, rhs_scale]) => {
            let (lhs, rhs, acc) = (of(lhs)?, of(rhs)?, of(acc)?);
            if !is_product(lhs, rhs, acc, verifier) || !accumulates(lhs.dtype, rhs.dtype, acc.dtype) {
                return Some(format!("multiplies {} and {} into {}", show(lhs), show(rhs), show(acc)));
            }
            for (scale, factor) in [(of(lhs_scale)?, lhs), (of(rhs_scale)?, rhs)] {
                // All of the factor's but those that are summed over, and one that counts blocks.
                let kept = factor.dims.iter().filter(|dim| acc.dims.contains(dim));
                let fits = kept.clone().all(|dim| scale.dims.contains(dim))
                    && scale.dims.len() == kept.count() + 1
                    && scale.dims.iter().filter(|dim| !acc.dims.contains(dim)).count() == 1;
                if !fits || scale.dtype != Some(DType::F8E8M0) {
                    return Some(format!("scales {} by {}", show(factor), show(scale)));
                }
            }
            (ty != acc).then(|| format!("is {}, but its accumulator is {}", show(ty), show(acc)))
        }
        (
            Op::Unary(_)
            | Op::Binary(_)
            | Op::Ternary(_)
            | Op::Compare(_)
            | Op::Select
            | Op::Convert(_)
            | Op::Broadcast,
            operands,
        ) => element_wise(op, operands.iter().map(|&o| of(o)).collect::<Option<_>>()?, ty, verifier, &show),
        (Op::Decode(decoding), &[codes, scales]) => {
            let (codes, scales) = (of(codes)?, of(scales)?);
            let holds = match decoding.form {
                CodeForm::Elements => codes.dtype.is_some_and(|dtype| dtype.is_float() && dtype.bits() <= 8),
                CodeForm::Integers(dtype) => {
                    dtype.packing().is_some() && matches!(codes.dtype, Some(DType::I8 | DType::I32))
                }
                CodeForm::Bytes => codes.dtype == Some(DType::I8) && decoding.along.is_some(),
            };
            let gives = matches!(ty.dtype, Some(DType::F32 | DType::F16 | DType::Bf16));
            let fits = broadcasts(&[&codes.dims, &scales.dims], &ty.dims, verifier)
                && decoding.along.is_none_or(|dim| ty.dims.contains(&dim));
            let wrong = !holds || !gives || !fits || scales.dtype != Some(DType::F8E8M0);
            wrong.then(|| format!("is {}, but decodes {} by {}", show(ty), show(codes), show(scales)))
        }
        (Op::Encode(dtype), &[value]) => {
            let from = of(value)?;
            let fits = dtype.packing().is_some() && from.dtype == Some(DType::F32);
            let wrong = !fits || ty.dtype != Some(DType::I8) || ty.dims != from.dims;
            wrong.then(|| format!("is {}, but encodes {} as {dtype}", show(ty), show(from)))
        }
        (Op::Rearrange, pieces) => {
            let from = of(*pieces.first()?)?;
            let one = pieces.iter().all(|&piece| of(piece).is_some_and(|piece| piece == ty));
            (!one).then(|| format!("is {}, but rearranges {}", show(ty), show(from)))
        }
        (Op::SelfIndex(dim), []) => {
            let wrong = ty.dims[..] != [*dim] || ty.dtype != Some(DType::I32);
            wrong.then(|| format!("is {}, and not i32 along {}", show(ty), verifier.dim(*dim)))
        }
        (Op::Size(_) | Op::WorkgroupId(_) | Op::Iteration(_), []) => {
            let wrong = !ty.dims.is_empty() || ty.dtype != Some(DType::I32);
            wrong.then(|| format!("is {}, and not i32[]", show(ty)))
        }
        (Op::Reduce(reduction), pieces) => {
            let mut dims = of(*pieces.first()?)?.dims.clone();
            let reduced = dims.contains(&reduction.dim);
            dims.retain(|dim| *dim != reduction.dim);
            dims.extend(reduction.parts);
            let admitted = ty.dtype.is_some_and(|dtype| op.row().operands.admit(dtype));
            let one = pieces.iter().all(|&piece| of(piece).is_some_and(|piece| piece.dtype == ty.dtype));
            let wrong = !reduced || !one || !admitted || !same_dims(&dims, &ty.dims);
            let along = verifier.dim(reduction.dim);
            let from = of(pieces[0]).map_or_else(String::new, show);
            wrong.then(|| format!("is {}, but reduces {from} along {along}", show(ty)))
        }
        (Op::Scan(scan), pieces) => {
            let (value, before) = pieces.split_first()?;
            let from = of(*value)?;
            let admitted = ty.dtype.is_some_and(|dtype| op.row().operands.admit(dtype));
            let one = before.iter().all(|&piece| of(piece).is_some_and(|piece| piece.dtype == ty.dtype));
            let wrong = from != ty || !from.dims.contains(&scan.dim) || !one || !admitted;
            let along = verifier.dim(scan.dim);
            wrong.then(|| format!("is {}, but sums up {} along {along}", show(ty), show(from)))
        }
        (Op::Sort(sort), &[value]) => {
            let from = of(value)?;
            let dtype = if sort.op.gives_places() { Some(DType::I32) } else { from.dtype };
            let admitted = from.dtype.is_some_and(|dtype| op.row().operands.admit(dtype));
            let wrong = from.dims != ty.dims || dtype != ty.dtype || !from.dims.contains(&sort.dim);
            let along = verifier.dim(sort.dim);
            (wrong || !admitted).then(|| format!("is {}, but sorts {} along {along}", show(ty), show(from)))
        }
        (Op::Conditional | Op::While, [.., condition])
            if of(*condition)?.dtype != Some(DType::I1) || !of(*condition)?.dims.is_empty() =>
        {
            Some(format!("runs under a condition that is {}", show(of(*condition)?)))
        }
        (Op::Iterate(_) | Op::Pipeline(_) | Op::Conditional | Op::While, operands) => {
            let init = op.initial(operands);
            let (body, yields) = (verifier.world.get::<Body>(node)?, verifier.world.get::<Yields>(node)?);
            if let (Op::While, Some(&again)) = (op, yields.0.last())
                && (of(again)?.dtype != Some(DType::I1) || !of(again)?.dims.is_empty())
            {
                return Some(format!("goes on under a condition that is {}", show(of(again)?)));
            }
            let carried = init.iter().zip(&body.0).zip(&yields.0).enumerate();
            carried.into_iter().find_map(|(number, ((&init, &argument), &yielded))| {
                let (init, argument, yielded) = (of(init)?, of(argument)?, of(yielded)?);
                (argument != init || yielded != init).then(|| {
                    let [init, argument, yielded] = [init, argument, yielded].map(show);
                    format!("carries {init} as value {number}, but its argument is {argument} and it yields {yielded}")
                })
            })
        }
        (Op::LoopResult(number), &[of_loop]) => {
            let (_, Operands(init), ..) = verifier.node(of_loop)?;
            let init = of(*init.get(*number as usize)?)?;
            (ty != init).then(|| format!("is {}, but the carried value is {}", show(ty), show(init)))
        }
        // Their rows have been checked, or the number of operands is wrong.
        (Op::Memory | Op::Scalar | Op::Allocate | Op::IterArg(_), _) => None,
        (Op::SetSymbol(_), &[value])
            if of(value)?.dtype != Some(DType::I32) || !of(value)?.dims.is_empty() =>
        {
            Some(format!("sets a symbol to {}", show(of(value)?)))
        }
        (Op::Barrier | Op::Control(_) | Op::SetSymbol(_), _) => None,
        (Op::Register(_) | Op::Read | Op::Write | Op::Atomic(_) | Op::LoopResult(_), _) => None,
        (Op::Mma(_) | Op::ScaledMma(_) | Op::Decode(_) | Op::Encode(_), _) => None,
        (Op::GlobalToShared | Op::SelfIndex(_) | Op::Size(_) | Op::Sort(_), _) => None,
        (Op::WorkgroupId(_) | Op::Iteration(_), _) => None,
    }
}

/// What is wrong with the types of an element-wise node, by its row.
fn element_wise(
    op: &Op,
    operands: SmallVec<[&ValueType; 3]>,
    ty: &ValueType,
    verifier: &Verifier,
    show: &dyn Fn(&ValueType) -> String,
) -> Option<String> {
    let row = op.row();
    let all = || listed(operands.iter().map(|ty| show(ty)));
    let dims: SmallVec<[&Dims; 3]> = operands.iter().map(|ty| &ty.dims).collect();
    // The operands that have to agree, and the dtype of the result.
    let (numbers, dtype) = match (row.result, operands.as_slice()) {
        (ResultType::Chosen, [condition, numbers @ ..]) => {
            let one = numbers.iter().all(|ty| ty.dtype == numbers[0].dtype);
            if condition.dtype != Some(DType::I1) || !one {
                let numbers = numbers.iter().map(|ty| show(ty)).collect::<Vec<_>>().join(" and ");
                return Some(format!("chooses by {} between {numbers}", show(condition)));
            }
            (numbers, numbers.first()?.dtype)
        }
        (ResultType::Converted(sizes), numbers) => {
            let from = numbers.first()?;
            let fits = from
                .dtype
                .zip(ty.dtype)
                .is_some_and(|(from, to)| row.operands.admit(from) && sizes.admit(from, to));
            let converted = |to| {
                let Op::Convert(conversion) = op else { return None };
                let table = verifier.world.get::<DimTable>(verifier.root)?;
                table.converted(*conversion, from, to)
            };
            let wrong = !fits || ty.dtype.and_then(converted).as_ref() != Some(&ty.dims);
            return wrong.then(|| format!("cannot make {} from {}", show(ty), all()));
        }
        (ResultType::Repeated, numbers) => {
            let from = numbers.first()?;
            let fits = from.dtype == ty.dtype && from.dims.iter().all(|&dim| verifier.repeats(dim, &ty.dims));
            let admitted = from.dtype.is_some_and(|dtype| row.operands.admit(dtype));
            return (!fits || !admitted).then(|| format!("cannot make {} from {}", show(ty), all()));
        }
        (ResultType::Condition, numbers) => (numbers, Some(DType::I1)),
        (ResultType::Joined | ResultType::OfOperand(_), numbers) => (numbers, numbers.first()?.dtype),
        // These rules do not occur in element-wise rows.
        (ResultType::None | ResultType::Declared | ResultType::Carried | ResultType::Reduced, _)
        | (ResultType::Chosen, []) => return None,
    };
    let admitted = |ty: &&ValueType| {
        ty.dtype == numbers[0].dtype && ty.dtype.is_some_and(|dtype| row.operands.admit(dtype))
    };
    if !numbers.iter().all(admitted) {
        return Some(format!("is not defined for {}", all()));
    }
    let wrong = ty.dtype != dtype || !broadcasts(&dims, &ty.dims, verifier);
    let verb = if operands.len() == 1 { "operand is" } else { "operands are" };
    wrong.then(|| format!("is {}, but its {verb} {}", show(ty), all()))
}

/// `a`, `a and b`, `a, b and c`.
fn listed(parts: impl Iterator<Item = String>) -> String {
    let mut parts: Vec<String> = parts.collect();
    let last = parts.pop().unwrap_or_default();
    if parts.is_empty() { last } else { format!("{} and {last}", parts.join(", ")) }
}

fn same_dims(x: &Dims, y: &Dims) -> bool {
    x.len() == y.len() && x.iter().all(|d| y.contains(d))
}

/// Every operand's dims, or what they follow, are among the result's, and one operand has them all.
fn broadcasts(operands: &[&Dims], result: &Dims, verifier: &Verifier) -> bool {
    operands.iter().all(|dims| dims.iter().all(|&dim| verifier.repeats(dim, result)))
        && operands.iter().any(|dims| dims.len() == result.len())
}

/// lhs has m and k, rhs has n and k, acc is `[.., m, n]`, and all have the same other dims; factors in any
/// order.
/// The value has the elements of the memory in units along another dimension.
fn turns(turned: &TurnedUnits, memory: &Dims, value: &Dims, verifier: &Verifier) -> bool {
    let TurnedUnits { stored, held, elements, .. } = *turned;
    let counts = |dims: UnitDims| {
        let counted = ScaledDim { dim: dims.units, base: dims.elements, by: elements };
        verifier.scaled.contains(&counted)
    };
    let of_value = |&dim: &Dim| match dim {
        dim if dim == stored.units => stored.elements,
        dim if dim == held.elements => held.units,
        dim => dim,
    };
    let dims: Dims = memory.iter().map(of_value).collect();
    let has_both = memory.contains(&stored.units) && memory.contains(&held.elements);
    let has_words = held.words == stored.words && stored.words.is_none_or(|words| memory.contains(&words));
    has_both && has_words && dims == *value && counts(stored) && counts(held)
}

/// The factors have the same dimension beside those of the sum; of units of packed elements each its own, and
/// another one for words of 6-bit floats.
fn is_product(lhs: &ValueType, rhs: &ValueType, acc: &ValueType, verifier: &Verifier) -> bool {
    let [batch @ .., m, n] = acc.dims.as_slice() else { return false };
    let summed = |ty: &ValueType, own: &Dim| {
        let mut beside = ty.dims.iter().copied().filter(|dim| !acc.dims.contains(dim));
        let (k, words, more) = (beside.next(), beside.next(), beside.next());
        let is_of_words = words.is_some() && ty.dtype == Some(DType::I32);
        let is_whole = ty.dims.contains(own)
            && batch.iter().all(|dim| ty.dims.contains(dim))
            && ty.dims.len() == acc.dims.len() + usize::from(is_of_words);
        k.filter(|_| is_whole && more.is_none() && (words.is_none() || is_of_words))
    };
    let (Some(left), Some(right)) = (summed(lhs, m), summed(rhs, n)) else { return false };
    let base = |k: Dim, ty: &ValueType| match ty.dtype {
        Some(DType::I8 | DType::I32) if acc.dtype == Some(DType::F32) => {
            let scaled = verifier.scaled.iter().find(|scaled| scaled.dim == k);
            scaled.map_or(k, |scaled| scaled.base)
        }
        _ => k,
    };
    m != n && base(left, lhs) == base(right, rhs)
}

fn accumulates(lhs: Option<DType>, rhs: Option<DType>, acc: Option<DType>) -> bool {
    let holds = |dtypes: &[DType], dtype: Option<DType>| dtype.is_some_and(|dtype| dtypes.contains(&dtype));
    ACCUMULATORS.iter().any(|&(factors, sum)| holds(factors, lhs) && holds(factors, rhs) && acc == Some(sum))
}
