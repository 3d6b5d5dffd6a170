//! Reads of packed elements: a read is one of words, and each element takes its bits.

use bevy_ecs::prelude::*;
use smallvec::{SmallVec, smallvec};

use super::packed_rows::{PackedRow, own_coordinate};
use super::small_float_codes::become_codes;
use crate::ir::access_flags::MemoryAccessFlags;
use crate::ir::expr::{SymExpr, SymNode, SymOp, Symbol};
use crate::ir::kernel::DimTable;
use crate::ir::layout::Dim;
use crate::ir::mapping::Mapping;
use crate::ir::node::*;
use crate::ir::node_map::NodeMap;
use crate::ir::nodes::Bug;
use crate::ir::types::DType;
use crate::passes::PassResult;
use crate::passes::kernel_editor::KernelEditor;

/// The reads so far.
#[derive(Default)]
pub(super) struct PackedReads {
    /// For codes that are read element after element the read of their words.
    pub(super) whole: NodeMap<Entity>,
    /// For codes that are halves of bytes the bytes, and the dimension along which two have one.
    pub(super) halves: NodeMap<(Entity, Dim)>,
}

impl PackedReads {
    /// Makes a read of a packed memory one of words.
    pub(super) fn read(
        &mut self,
        editor: &mut KernelEditor<'_>,
        node: Entity,
        row: &PackedRow,
    ) -> PassResult {
        let seen = editor.node(node)?;
        let (mut operands, dims) = (seen.operands.0.clone(), seen.ty.dims.clone());
        let mapping = editor.take::<Mapping>(node);
        if let Some(Mapping(coordinates)) = &mapping {
            self.rows_at(editor, (node, &operands, coordinates), &dims, row)?;
        }
        let flags = editor.take::<MemoryAccessFlags>(node);
        let is_whole = mapping.is_none();
        let mut whole = None;
        if is_whole || row.words.is_none() {
            let words_dims = if is_whole { row.dims_of_words(&dims) } else { dims.clone() };
            let read = editor.maker(&words_dims).made(Op::Read, &operands, row.packing.word);
            if let Some(flags) = flags {
                editor.attach(read, flags);
            }
            if let Some(tag) = editor.take::<Tag>(node) {
                editor.attach(read, tag);
            }
            if is_whole {
                self.whole.insert(node, read);
            }
            whole = Some(read);
        }
        let (coordinates, place) = match mapping {
            None => (None, SymExpr::from(row.symbol)),
            Some(Mapping(mut coordinates)) => {
                let place = coordinates.pop().ok_or(Bug::new("a mapping without coordinates"))?;
                (Some(coordinates), place)
            }
        };
        let Some(read) = whole.filter(|_| row.words.is_none()) else {
            let coordinates = match coordinates {
                Some(coordinates) => coordinates,
                None => own_coordinates(editor, &dims, row, &mut operands)?,
            };
            return become_bits_of_words(editor, node, (&operands, &coordinates), &place, row);
        };
        let others = coordinates.clone().unwrap_or_default();
        if let Some(mut coordinates) = coordinates {
            coordinates.push(place.clone() / i64::from(row.packing.elements));
            editor.attach(read, Mapping(coordinates));
        }
        let values = operands.split_last().map_or(&[][..], |(_, values)| values);
        self.become_halves(editor, node, read, &place, (&others, values))
    }

    /// Makes a read of bytes for a read of 4-bit floats at coordinates that takes rows as they lie: the last
    /// coordinate is the dimension along which they lie, which is the value's last one, too, and nothing else
    /// depends on it. So products take the bytes of an expert's matrix as those of a whole memory.
    fn rows_at(
        &mut self,
        editor: &mut KernelEditor<'_>,
        (node, operands, coordinates): (Entity, &[Entity], &[SymExpr]),
        dims: &Dims,
        row: &PackedRow,
    ) -> PassResult {
        let Some((place, others)) = coordinates.split_last() else { return Ok(()) };
        if row.words.is_some() || dims.last() != Some(&row.dim) || place.as_symbol() != Some(row.symbol) {
            return Ok(());
        }
        // The elements are read as well, unless nobody asks for them, and volatile reads are counted.
        let is_volatile = editor.get::<MemoryAccessFlags>(node).is_some_and(|flags| flags.volatile);
        let is_own = |symbol: Symbol| symbol.scaled_from().map_or(symbol, |from| from.0) == row.symbol;
        let mut depends = is_volatile;
        others.iter().for_each(|other| other.visit(&mut |symbol| depends |= is_own(symbol)));
        for &value in operands.split_last().map_or(&[][..], |(_, values)| values) {
            depends |= editor.dims(value)?.contains(&row.dim);
        }
        if depends {
            return Ok(());
        }
        let read = editor.maker(&row.dims_of_words(dims)).made(Op::Read, operands, row.packing.word);
        let bytes = SymExpr::from(row.symbol.scaled(row.packing.elements));
        editor.attach(read, Mapping(others.iter().cloned().chain([bytes]).collect()));
        editor.copy::<MemoryAccessFlags>(node, read);
        editor.copy::<Tag>(node, read);
        self.whole.insert(node, read);
        Ok(())
    }

    /// Makes a node the half of each byte of a value in which the element at `place` is; bytes may lie along
    /// pairs of elements. A read has `others`, its other coordinates and the values in all of them.
    pub(super) fn become_halves(
        &mut self,
        editor: &mut KernelEditor<'_>,
        node: Entity,
        bytes: Entity,
        place: &SymExpr,
        (others, values): (&[SymExpr], &[Entity]),
    ) -> PassResult {
        let dims = editor.dims(node)?;
        let mut along = None;
        if let Some(symbol) = place_of_pairs(place)
            && let Some(dim) = editor.kernel::<DimTable>()?.find(symbol)
            && dims.contains(&dim)
            && others.iter().all(|coordinate| is_of_pairs(coordinate, symbol))
        {
            let mut depends = false;
            for &value in values {
                depends |= editor.dims(value)?.contains(&dim);
            }
            along = Some(dim).filter(|_| !depends);
        }
        let is_along = editor.node(bytes)?.ty.dims == dims;
        let mut maker = editor.maker(&dims_of_place(editor, place, &dims)?);
        maker.values = values;
        let count = maker.value_of(&(place.clone() % 2 * 4))?;
        let mut maker = editor.maker(&dims);
        let bytes = if is_along { bytes } else { maker.made(Op::Broadcast, &[bytes], DType::I8) };
        if let Some(dim) = along {
            self.halves.insert(node, (bytes, dim));
        }
        let wide = maker.converted(Conversion::Cast, bytes, DType::I32);
        become_codes(editor, node, Op::Binary(BinaryOp::ShiftRight), &[wide, count])
    }
}

/// The dimension of which two elements, from an even one on, are both halves of a byte where `place` says in
/// which half an element is: the dimension itself, or what is left of it beside whole bytes.
fn place_of_pairs(place: &SymExpr) -> Option<Symbol> {
    if let SymNode::Operation(SymOp::Mod, part, units) = place.node()
        && units.as_integer()? % 2 == 0
    {
        return part.as_symbol();
    }
    place.as_symbol()
}

/// Whether a coordinate is the same for two elements of a pair along a dimension.
fn is_of_pairs(coordinate: &SymExpr, along: Symbol) -> bool {
    match coordinate.node() {
        SymNode::Int(_) => true,
        SymNode::Symbol(symbol) => *symbol != along,
        SymNode::TooDeep => false,
        SymNode::Operation(SymOp::FloorDiv, part, units)
            if part.as_symbol() == Some(along) && units.as_integer().is_some_and(|units| units % 2 == 0) =>
        {
            true
        }
        SymNode::Operation(_, one, other) => is_of_pairs(one, along) && is_of_pairs(other, along),
    }
}

/// What depends on one dimension alone is computed along it: the dimensions that a place is computed for.
fn dims_of_place(editor: &KernelEditor<'_>, place: &SymExpr, dims: &Dims) -> Result<Dims, Bug> {
    let table = editor.kernel::<DimTable>()?;
    let own = place.as_symbol().and_then(|symbol| table.find(symbol)).filter(|dim| dims.contains(dim));
    Ok(own.map_or_else(|| dims.clone(), |dim| smallvec![dim]))
}

/// The coordinates of a read without a mapping, but the last one; numbers of places go to `operands`, in
/// front of the memory.
fn own_coordinates(
    editor: &mut KernelEditor<'_>,
    dims: &Dims,
    row: &PackedRow,
    operands: &mut SmallVec<[Entity; 4]>,
) -> Result<SmallVec<[SymExpr; 4]>, Bug> {
    let memory = operands.pop().ok_or(Bug::new("a read of nothing"))?;
    let mut maker = editor.maker(dims);
    let mut coordinates = SmallVec::new();
    for &dim in dims.iter().filter(|dim| **dim != row.dim) {
        coordinates.push(own_coordinate(&mut maker, dim, operands)?);
    }
    operands.push(memory);
    Ok(coordinates)
}

/// Makes a node the elements at `place` of a memory of words: an element is in the word of its first bit and
/// in that of its last one, which may be the same. `operands` and `coordinates` are those of a read, without
/// the place in the row.
fn become_bits_of_words(
    editor: &mut KernelEditor<'_>,
    node: Entity,
    (operands, coordinates): (&[Entity], &[SymExpr]),
    place: &SymExpr,
    row: &PackedRow,
) -> PassResult {
    let dims = editor.dims(node)?;
    let (together, bits) = (i64::from(row.packing.elements), i64::from(row.packing.bits()));
    let mut maker = editor.maker(&dims_of_place(editor, place, &dims)?);
    maker.values = operands.split_last().map_or(&[][..], |(_, values)| values);
    let down = maker.value_of(&(place.clone() * bits % 32))?;
    let word = maker.number(32, DType::I32);
    let up = maker.binary(BinaryOp::Sub, word, down, DType::I32);
    // Words that are moved down have copies of their sign above.
    let one = maker.number(1, DType::I32);
    let count = maker.with(BinaryOp::Min, up, bits, DType::I32);
    let above = maker.binary(BinaryOp::ShiftLeft, one, count, DType::I32);
    let kept = maker.with(BinaryOp::Sub, above, 1, DType::I32);
    let mut maker = editor.maker(&dims);
    let [first, last] = [0, bits - 1].map(|bit| {
        let read = maker.made(Op::Read, operands, DType::I32);
        let in_unit = (place.clone() % together * bits + bit) / 32;
        let place = [place.clone() / together, in_unit];
        maker.editor.attach(read, Mapping(coordinates.iter().cloned().chain(place).collect()));
        read
    });
    let low = maker.binary(BinaryOp::ShiftRight, first, down, DType::I32);
    let low = maker.binary(BinaryOp::And, low, kept, DType::I32);
    // Where the word is the same one, what it adds is above the element, or the element itself: a shift by
    // 32 is none.
    let high = maker.binary(BinaryOp::ShiftLeft, last, up, DType::I32);
    become_codes(editor, node, Op::Binary(BinaryOp::Or), &[low, high])
}
