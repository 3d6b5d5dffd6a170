//! Rows of packed elements: what a memory of 4-bit or 6-bit floats is accessed along, and how the codes of a
//! value come together in its words.

use bevy_ecs::prelude::*;
use smallvec::{SmallVec, smallvec};

use super::node_maker::NodeMaker;
use super::small_float_codes::joined_word;
use crate::ir::expr::{SymExpr, Symbol};
use crate::ir::kernel::DimTable;
use crate::ir::layout::Dim;
use crate::ir::mapping::{Mapping, operand_symbol};
use crate::ir::node::*;
use crate::ir::nodes::Bug;
use crate::ir::types::{DType, PackedUnit};
use crate::passes::facts::Geometry;
use crate::passes::kernel_editor::KernelEditor;

/// Elements of 6 bits that a word of 32 bits has bits of.
const WORD_ELEMENTS: i64 = 6;

/// The dimensions along which a packed memory is accessed.
pub(super) struct PackedRow {
    /// The last dimension of its elements.
    pub(super) dim: Dim,
    pub(super) symbol: Symbol,
    /// That of its units.
    units: Dim,
    /// That of the words of a unit, if there are several.
    pub(super) words: Option<Dim>,
    pub(super) packing: PackedUnit,
}

impl PackedRow {
    /// The last of some dimensions, which elements lie along in units.
    pub(super) fn last(
        editor: &KernelEditor<'_>,
        dims: &Dims,
        packing: PackedUnit,
    ) -> Result<PackedRow, Bug> {
        let row = match dims.last() {
            Some(&dim) => PackedRow::along(editor, dim, packing)?,
            None => None,
        };
        row.ok_or(Bug::new("packed elements along a dimension without units"))
    }

    /// A dimension that elements lie along in units, if some memory has such units.
    pub(super) fn along(
        editor: &KernelEditor<'_>,
        dim: Dim,
        packing: PackedUnit,
    ) -> Result<Option<PackedRow>, Bug> {
        let table = editor.kernel::<DimTable>()?;
        let row = || {
            let symbol = *table.0.get(dim)?;
            let (units, words) = table.packed(dim, packing)?;
            Some(PackedRow { dim, symbol, units, words, packing })
        };
        Ok(row())
    }

    /// The dimensions of words where elements have `dims`.
    pub(super) fn dims_of_words(&self, dims: &Dims) -> Dims {
        let mut dims = dims.clone();
        dims.iter_mut().filter(|dim| **dim == self.dim).for_each(|dim| *dim = self.units);
        dims.extend(self.words);
        dims
    }

    /// The words of codes in the dtype that memories have them in.
    pub(super) fn words_of(&self, editor: &mut KernelEditor<'_>, codes: Entity) -> Result<Entity, Bug> {
        let words = self.joined(editor, codes)?;
        match self.packing.word == DType::I32 {
            true => Ok(words),
            false => Ok(editor.maker_like(words)?.converted(Conversion::Cast, words, self.packing.word)),
        }
    }

    /// The words of codes, as i32: the lowest bits of a unit are the first of its elements.
    pub(super) fn joined(&self, editor: &mut KernelEditor<'_>, codes: Entity) -> Result<Entity, Bug> {
        let dims = editor.dims(codes)?;
        let (together, bits) = (i64::from(self.packing.elements), i64::from(self.packing.bits()));
        let unit = SymExpr::from(editor.kernel::<Geometry>()?.dim(self.units).symbol) * together;
        // They go through LDS, where bytes take less room.
        let narrow = match encoded_bytes(editor, codes)? {
            Some(bytes) => bytes,
            None => editor.maker(&dims).converted(Conversion::Cast, codes, DType::I8),
        };
        let shifts = self.shifts(editor);
        let mut maker = editor.maker(&self.dims_of_words(&dims));
        let mut operands: SmallVec<[Entity; 4]> = SmallVec::new();
        let mut coordinates: SmallVec<[SymExpr; 4]> = SmallVec::new();
        for &dim in &dims {
            coordinates.push(match dim == self.dim {
                true => unit.clone(),
                false => own_coordinate(&mut maker, dim, &mut operands)?,
            });
        }
        let first = self.words.map(|words| {
            operands.push(maker.index(words));
            SymExpr::from(operand_symbol(operands.len() - 1)) * 32 / bits
        });
        operands.push(narrow);
        let at = dims.iter().position(|&dim| dim == self.dim);
        let element = |maker: &mut NodeMaker<'_, '_>, number: i64| {
            let read = maker.made(Op::Read, &operands, DType::I8);
            let mut coordinates = coordinates.clone();
            if let Some(place) = at.and_then(|at| coordinates.get_mut(at)) {
                let within = match &first {
                    Some(first) => Some((first.clone() + number) % together),
                    None => (number > 0).then(|| SymExpr::from(number)),
                };
                if let Some(within) = within {
                    *place = place.clone() + within;
                }
            }
            maker.editor.attach(read, Mapping(coordinates));
            maker.converted(Conversion::Cast, read, DType::I32)
        };
        Ok(joined_word(&mut maker, &shifts, bits, element))
    }

    /// By how much each element of a word is shifted, the first one, which begins before the word or at its
    /// first bit, to the right; none where a unit is a byte.
    fn shifts(&self, editor: &mut KernelEditor<'_>) -> SmallVec<[Entity; 6]> {
        let Some(words) = self.words else { return SmallVec::new() };
        let bits = i64::from(self.packing.bits());
        let mut maker = editor.maker(&smallvec![words]);
        let word = maker.index(words);
        let first_bit = maker.with(BinaryOp::Mul, word, 32, DType::I32);
        let before = maker.with(BinaryOp::Rem, first_bit, bits, DType::I32);
        let mut shifts = smallvec![before];
        for at in 1..WORD_ELEMENTS {
            let place = maker.number(at * bits, DType::I32);
            shifts.push(maker.binary(BinaryOp::Sub, place, before, DType::I32));
        }
        shifts
    }
}

/// The bytes that codes have been widened from, if they have been encoded at once.
fn encoded_bytes(editor: &KernelEditor<'_>, codes: Entity) -> Result<Option<Entity>, Bug> {
    let seen = editor.node(codes)?;
    let (Op::Convert(Conversion::Cast), &[bytes]) = (*seen.op, &seen.operands.0[..]) else { return Ok(None) };
    Ok(matches!(editor.op(bytes)?, Op::Encode(_)).then_some(bytes))
}

/// The own place along a dimension as a coordinate: its symbol or, of a number, the next operand of a read.
pub(super) fn own_coordinate(
    maker: &mut NodeMaker<'_, '_>,
    dim: Dim,
    operands: &mut SmallVec<[Entity; 4]>,
) -> Result<SymExpr, Bug> {
    let symbol = maker.editor.kernel::<Geometry>()?.dim(dim).symbol;
    if symbol.value().is_none() {
        return Ok(symbol.into());
    }
    operands.push(maker.index(dim));
    Ok(operand_symbol(operands.len() - 1).into())
}
