//! 4-bit and 6-bit floats, said with other operations: from here on there are no such dtypes.
//!
//! - A memory `[.., K]` of 4-bit floats becomes the bytes `[.., K/2]`, each of which holds two elements; one
//!   of 6-bit floats the i32 words `[.., K/32, 6]` ([`PackedUnit`]). [`PackedElements`] says what its user
//!   sees. A read is one of words, and each element takes its bits; a write brings the elements of a word
//!   together by way of coordinates. LDS buffers of the author have a byte for each element.
//! - A value becomes codes: i32 elements, of which the lowest bits count. What moves values without
//!   looking at them moves codes; a cast is arithmetic on their bits; everything else is computed in f32, as
//!   that of other narrow floats is.
//!
//! The dimension K/2 follows K and is entered where the memory is declared, so that tiles, loops and masks
//! are those of any dimension that follows another. A block of 32 6-bit floats, which has one scale, is six
//! words.

use bevy_ecs::prelude::*;
use smallvec::SmallVec;

use super::node_maker::NodeMaker;
use super::small_float_codes::{decoded, encoded, joined_word};
use super::turned_units::{UnturnedFactor, turned_read};
use crate::ir::access_flags::MemoryAccessFlags;
use crate::ir::diagnostic::{Diagnostic, Location};
use crate::ir::expr::{SymExpr, Symbol};
use crate::ir::kernel::{DimTable, Locations};
use crate::ir::layout::{Dim, MmaType};
use crate::ir::mapping::{Mapping, operand_symbol};
use crate::ir::node::{Name, *};
use crate::ir::node_map::{NodeMap, NodeSet};
use crate::ir::nodes::{self, Bug};
use crate::ir::op::OpClass;
use crate::ir::types::{DType, PackedUnit};
use crate::ir::walk::{self, NodeList};
use crate::passes::facts::{Geometry, PackedElements, Settings};
use crate::passes::{PassResult, kernel_entity};
use crate::small_float::SmallFormat;

/// The pass itself; see the module. It makes nodes in front of others, so it takes the whole world.
pub(crate) fn pack_small_floats(world: &mut World) -> PassResult {
    let root = kernel_entity(world)?;
    let mut packer = SmallFloatPacker {
        root,
        codes: NodeMap::default(),
        bytes: NodeSet::default(),
        whole: NodeMap::default(),
        halves: NodeMap::default(),
        turned: NodeMap::default(),
        has_conversions: nodes::fact::<Settings>(world, root, "a kernel without options")?
            .0
            .target()
            .has_scaled_conversions(),
    };
    for node in walk::nodes(world, root) {
        let seen = nodes::node(world, node)?;
        let Some(small) = seen.ty.dtype.and_then(SmallFloat::of) else { continue };
        match seen.op.row().class == OpClass::Declaration {
            true => packer.declare(world, node, small)?,
            false => packer.codes.insert(node, small),
        }
    }
    for region in walk::regions(world, root) {
        let mut body = Vec::new();
        for node in walk::body(world, region) {
            packer.node(world, node, &mut body)?;
            body.push(node);
        }
        walk::set_body(world, region, &body);
    }
    Ok(())
}

/// A dtype of several elements in a unit.
#[derive(Copy, Clone)]
struct SmallFloat {
    dtype: DType,
    format: SmallFormat,
    packing: PackedUnit,
}

impl SmallFloat {
    fn of(dtype: DType) -> Option<SmallFloat> {
        Some(SmallFloat { dtype, format: SmallFormat::of(dtype)?, packing: dtype.packing()? })
    }
}

struct SmallFloatPacker {
    root: Entity,
    /// Values that have become codes, or will.
    codes: NodeMap<SmallFloat>,
    /// LDS buffers of the author, which have a byte for each element.
    bytes: NodeSet,
    /// For codes that are read element after element the read of their words.
    whole: NodeMap<Entity>,
    /// For codes that are halves of bytes the bytes, and the dimension along which two have one.
    halves: NodeMap<(Entity, Dim)>,
    /// For reads of units those that turn them, and the dimension that a product sums over.
    turned: NodeMap<(Entity, Dim)>,
    /// Whether the chip has instructions for decoding and encoding.
    has_conversions: bool,
}

/// Elements of 6 bits that a word of 32 bits has bits of.
const WORD_ELEMENTS: i64 = 6;

type DimSymbols = SmallVec<[Symbol; 4]>;

/// What a packed memory is accessed along.
struct PackedRow {
    /// The last dimension of its elements.
    dim: Dim,
    symbol: Symbol,
    /// That of its units.
    units: Dim,
    /// That of the words of a unit, if there are several.
    words: Option<Dim>,
    packing: PackedUnit,
}

impl PackedRow {
    /// The dimensions of words where elements have `dims`.
    fn dims_of_words(&self, dims: &Dims) -> Dims {
        let mut dims = dims.clone();
        dims.iter_mut().filter(|dim| **dim == self.dim).for_each(|dim| *dim = self.units);
        dims.extend(self.words);
        dims
    }
}

impl SmallFloatPacker {
    /// Makes a memory one of words, or a buffer one of bytes.
    fn declare(&mut self, world: &mut World, node: Entity, small: SmallFloat) -> PassResult {
        let own = nodes::node(world, node)?.ty.clone();
        let mut ty = ValueType { dims: own.dims.clone(), dtype: Some(DType::I8) };
        if nodes::op(world, node)? == Op::Memory {
            ty.dims = self.row(world, &own.dims, small.packing)?.dims_of_words(&own.dims);
            ty.dtype = Some(small.packing.word);
            world.entity_mut(node).insert(PackedElements(own));
        } else {
            self.bytes.insert(node);
        }
        *nodes::fact_mut::<ValueType>(world, node, "a memory without type")? = ty;
        Ok(())
    }

    /// The last of some dimensions, which elements lie along in units.
    fn row(&self, world: &World, dims: &Dims, packing: PackedUnit) -> Result<PackedRow, Diagnostic> {
        let row = match dims.last() {
            Some(&dim) => self.units(world, dim, packing)?,
            None => None,
        };
        row.ok_or_else(|| Diagnostic::bug("packed elements along a dimension without units"))
    }

    /// A dimension that elements lie along in units, if some memory has such units.
    fn units(&self, world: &World, dim: Dim, packing: PackedUnit) -> Result<Option<PackedRow>, Diagnostic> {
        let table = nodes::fact::<DimTable>(world, self.root, "a kernel without dimensions")?;
        let row = || {
            let symbol = *table.0.get(dim)?;
            let (units, words) = table.packed(dim, packing)?;
            Some(PackedRow { dim, symbol, units, words, packing })
        };
        Ok(row())
    }

    fn place(&self, world: &World, node: Entity) -> Option<Location> {
        world.get::<Locations>(self.root)?.get(world.get::<Origin>(node)?.0)
    }

    /// What makes nodes with the dimensions of a value for a node.
    fn maker<'a>(
        &self,
        world: &'a mut World,
        node: Entity,
        dims: &Dims,
        values: &'a [Entity],
    ) -> Result<NodeMaker<'a>, Diagnostic> {
        let origin = *nodes::node(world, node)?.origin;
        Ok(NodeMaker { world, root: self.root, dims: dims.clone(), origin, values, new: NodeList::new() })
    }

    /// Says a node without such dtypes; what it needs goes to `body`, in front of it.
    fn node(&mut self, world: &mut World, node: Entity, body: &mut Vec<Entity>) -> PassResult {
        let seen = nodes::node(world, node)?;
        let (op, operands, ty) = (*seen.op, seen.operands.0.clone(), seen.ty.clone());
        if op.is_access() {
            let memory = seen.memory()?;
            if let Some(PackedElements(elements)) = world.get::<PackedElements>(memory).cloned() {
                return self.access_packed(world, node, &elements, body);
            }
            if self.bytes.contains(memory) {
                return self.access_bytes(world, node, body);
            }
        }
        let gives = self.codes.get(node).copied();
        if gives.is_none() && !operands.iter().any(|&operand| self.codes.get(operand).is_some()) {
            return Ok(());
        }
        match (op, &operands[..], gives) {
            (Op::Register(constant), _, Some(small)) => {
                let code = constant.bits(small.dtype)? as i64;
                self.become_codes(world, node, Op::Register(Constant::Integer(code)), &[])
            }
            (Op::Convert(Conversion::Bitcast), &[value], _) => self.bitcast(world, node, value, body),
            (Op::Convert(Conversion::Cast), &[value], Some(small)) => {
                self.encode(world, node, value, small, body)
            }
            (Op::Convert(Conversion::Cast), &[value], None)
                if self.has_conversions
                    && matches!(ty.dtype, Some(DType::F32 | DType::F16 | DType::Bf16)) =>
            {
                let dims = nodes::node(world, value)?.ty.dims.clone();
                let mut maker = self.maker(world, node, &dims, &[])?;
                let one = maker.number(1.0, DType::F8E8M0);
                body.extend(maker.new);
                self.decode_with(world, node, value, one)
            }
            (Op::Decode(_), &[value, scale], None) => self.decode_with(world, node, value, scale),
            // Casts to the dtype that codes have numbers in.
            (Op::Convert(Conversion::Cast), &[value], None) if ty.dtype == Some(DType::F32) => {
                let number = self.decoded(world, node, value, body)?;
                let operands = Operands(SmallVec::from_slice(&[number]));
                world.entity_mut(node).insert((Op::Broadcast, operands));
                Ok(())
            }
            _ if op.row().class == OpClass::Contraction => self.product(world, node, &operands, body),
            _ if op.row().class == OpClass::Region || op.row().class == OpClass::Order => Ok(()),
            // What moves values.
            _ if op.row().class == OpClass::Carried || op.is_access() || op == Op::Broadcast => {
                self.become_codes(world, node, op, &operands)
            }
            (Op::Select, ..) => self.become_codes(world, node, op, &operands),
            _ => self.compute(world, node, gives, body),
        }
    }

    /// Lets a node compute with decoded operands, and encodes its result if it gives codes.
    fn compute(
        &mut self,
        world: &mut World,
        node: Entity,
        gives: Option<SmallFloat>,
        body: &mut Vec<Entity>,
    ) -> PassResult {
        let seen = nodes::node(world, node)?;
        let (op, mut decoded, dims) = (*seen.op, seen.operands.0.clone(), seen.ty.dims.clone());
        for operand in &mut decoded {
            if self.codes.get(*operand).is_some() {
                *operand = self.decoded(world, node, *operand, body)?;
            }
        }
        let Some(small) = gives else {
            nodes::fact_mut::<Operands>(world, node, "a node without operands")?.0 = decoded;
            return Ok(());
        };
        let mut maker = self.maker(world, node, &dims, &[])?;
        let result = maker.made(op, &decoded, DType::F32);
        body.extend(maker.new);
        self.encode(world, node, result, small, body)
    }

    /// An access of a memory of packed elements.
    fn access_packed(
        &mut self,
        world: &mut World,
        node: Entity,
        elements: &ValueType,
        body: &mut Vec<Entity>,
    ) -> PassResult {
        let small = elements.dtype.and_then(SmallFloat::of);
        let small = small.ok_or(Bug::new("packed elements of whole bytes"))?;
        let row = self.row(world, &elements.dims, small.packing)?;
        match nodes::op(world, node)?.is_write() {
            true => self.write(world, node, &row, body),
            false => self.read(world, node, &row, body),
        }
    }

    /// Makes a node another one, whose result are codes.
    fn become_codes(&self, world: &mut World, node: Entity, op: Op, operands: &[Entity]) -> PassResult {
        nodes::fact_mut::<ValueType>(world, node, "a node without type")?.dtype = Some(DType::I32);
        world.entity_mut(node).insert((op, Operands(SmallVec::from_slice(operands))));
        Ok(())
    }

    /// What decodes a value of codes, and the operand that it takes.
    fn decoding(&self, codes: Entity) -> Result<(Decoding, Entity), Diagnostic> {
        if let Some(&(bytes, dim)) = self.halves.get(codes) {
            return Ok((Decoding { form: CodeForm::Bytes, along: Some(dim) }, bytes));
        }
        let small = self.codes.get(codes).copied().ok_or(Bug::new("a cast of what are no codes"))?;
        Ok((Decoding { form: CodeForm::Integers(small.dtype), along: None }, codes))
    }

    /// Makes a node the numbers of codes times their scales.
    fn decode_with(&self, world: &mut World, node: Entity, codes: Entity, scales: Entity) -> PassResult {
        let (mut decoding, operand) = self.decoding(codes)?;
        if let Op::Decode(own) = nodes::op(world, node)? {
            decoding.along = own.along.or(decoding.along);
        }
        world
            .entity_mut(node)
            .insert((Op::Decode(decoding), Operands(SmallVec::from_slice(&[operand, scales]))));
        Ok(())
    }

    /// The numbers of codes, in f32, which is exact.
    fn decoded(
        &self,
        world: &mut World,
        node: Entity,
        codes: Entity,
        body: &mut Vec<Entity>,
    ) -> Result<Entity, Diagnostic> {
        let dims = nodes::node(world, codes)?.ty.dims.clone();
        let small = self.codes.get(codes).copied().ok_or(Bug::new("a cast of what are no codes"))?;
        let with_scale = if self.has_conversions { Some(self.decoding(codes)?) } else { None };
        let mut maker = self.maker(world, node, &dims, &[])?;
        let number = match with_scale {
            Some((decoding, operand)) => {
                let one = maker.number(1.0, DType::F8E8M0);
                maker.made(Op::Decode(decoding), &[operand, one], DType::F32)
            }
            None => decoded(&mut maker, codes, small.format),
        };
        body.extend(maker.new);
        Ok(number)
    }

    /// Makes a node the codes of a value of any other dtype.
    fn encode(
        &self,
        world: &mut World,
        node: Entity,
        value: Entity,
        small: SmallFloat,
        body: &mut Vec<Entity>,
    ) -> PassResult {
        let mut number = value;
        let ValueType { dims, mut dtype } = nodes::node(world, value)?.ty.clone();
        if let Some(before) = self.codes.get(value) {
            if before.dtype == small.dtype {
                return self.become_codes(world, node, Op::Broadcast, &[value]);
            }
            number = self.decoded(world, node, value, body)?;
            dtype = Some(DType::F32);
        }
        let mut maker = self.maker(world, node, &dims, &[])?;
        if self.has_conversions && dtype != Some(DType::F64) {
            let wide = match dtype {
                Some(DType::F32) => number,
                _ => maker.converted(Conversion::Cast, number, DType::F32),
            };
            let codes = encoded_at_once(&mut maker, wide, small);
            body.extend(maker.new);
            return self.become_codes(world, node, Op::Convert(Conversion::Cast), &[codes]);
        }
        let [magnitude, sign] = encoded(&mut maker, (number, dtype), small.format);
        body.extend(maker.new);
        self.become_codes(world, node, Op::Binary(BinaryOp::Or), &[magnitude, sign])
    }

    /// Bytes become the codes of the elements in them, and the other way round.
    fn bitcast(
        &mut self,
        world: &mut World,
        node: Entity,
        value: Entity,
        body: &mut Vec<Entity>,
    ) -> PassResult {
        let ty = nodes::node(world, node)?.ty.clone();
        match (self.codes.get(value), self.codes.get(node)) {
            (Some(_), Some(_)) => self.become_codes(world, node, Op::Broadcast, &[value]),
            (Some(small), None) => {
                let dims = nodes::node(world, value)?.ty.dims.clone();
                let row = self.row(world, &dims, small.packing)?;
                let bytes = self.joined(world, node, value, &row, body)?;
                let cast = Op::Convert(Conversion::Cast);
                world.entity_mut(node).insert((cast, Operands(SmallVec::from_slice(&[bytes]))));
                Ok(())
            }
            (None, Some(small)) => {
                let row = self.row(world, &ty.dims, small.packing)?;
                self.become_halves(world, node, value, &row.symbol.into(), &[], body)
            }
            (None, None) => Ok(()),
        }
    }

    /// Makes a node the half of each byte of a value in which the element at `place` is; bytes may lie along
    /// pairs of elements.
    fn become_halves(
        &mut self,
        world: &mut World,
        node: Entity,
        bytes: Entity,
        place: &SymExpr,
        values: &[Entity],
        body: &mut Vec<Entity>,
    ) -> PassResult {
        let dims = nodes::node(world, node)?.ty.dims.clone();
        let is_along = nodes::node(world, bytes)?.ty.dims == dims;
        let dims_of_place = self.dims_of_place(world, place, &dims)?;
        let mut maker = self.maker(world, node, &dims_of_place, values)?;
        let count = maker.value_of(&(place.clone() % 2 * 4))?;
        body.extend(maker.new);
        let mut maker = self.maker(world, node, &dims, &[])?;
        let bytes = if is_along { bytes } else { maker.made(Op::Broadcast, &[bytes], DType::I8) };
        if let (false, Some(symbol)) = (is_along, place.as_symbol()) {
            let table = nodes::fact::<DimTable>(maker.world, self.root, "a kernel without dimensions")?;
            if let Some(dim) = table.find(symbol) {
                self.halves.insert(node, (bytes, dim));
            }
        }
        let wide = maker.converted(Conversion::Cast, bytes, DType::I32);
        body.extend(maker.new);
        self.become_codes(world, node, Op::Binary(BinaryOp::ShiftRight), &[wide, count])
    }

    /// What depends on one dimension alone is computed along it: the dimensions that a place is computed for.
    fn dims_of_place(&self, world: &World, place: &SymExpr, dims: &Dims) -> Result<Dims, Diagnostic> {
        let table = nodes::fact::<DimTable>(world, self.root, "a kernel without dimensions")?;
        let own = place.as_symbol().and_then(|symbol| table.find(symbol)).filter(|dim| dims.contains(dim));
        Ok(own.map_or_else(|| dims.clone(), |dim| SmallVec::from_slice(&[dim])))
    }

    /// Makes a node the elements at `place` of a memory of words: an element is in the word of its first bit
    /// and in that of its last one, which may be the same. `operands` and `coordinates` are those of a read,
    /// without the place in the row.
    fn become_bits_of_words(
        &self,
        world: &mut World,
        node: Entity,
        (operands, coordinates): (&[Entity], &[SymExpr]),
        place: &SymExpr,
        row: &PackedRow,
        body: &mut Vec<Entity>,
    ) -> PassResult {
        let dims = nodes::node(world, node)?.ty.dims.clone();
        let (together, bits) = (i64::from(row.packing.elements), i64::from(row.packing.bits()));
        let values = operands.split_last().map_or(&[][..], |(_, values)| values);
        let dims_of_place = self.dims_of_place(world, place, &dims)?;
        let mut maker = self.maker(world, node, &dims_of_place, values)?;
        let down = maker.value_of(&(place.clone() * bits % 32))?;
        let word = maker.number(32, DType::I32);
        let up = maker.binary(BinaryOp::Sub, word, down, DType::I32);
        // Words that are moved down have copies of their sign above.
        let one = maker.number(1, DType::I32);
        let count = maker.with(BinaryOp::Min, up, bits, DType::I32);
        let above = maker.binary(BinaryOp::ShiftLeft, one, count, DType::I32);
        let kept = maker.with(BinaryOp::Sub, above, 1, DType::I32);
        body.extend(maker.new);
        let mut maker = self.maker(world, node, &dims, &[])?;
        let [first, last] = [0, bits - 1].map(|bit| {
            let read = maker.made(Op::Read, operands, DType::I32);
            let in_unit = (place.clone() % together * bits + bit) / 32;
            let place = [place.clone() / together, in_unit];
            let coordinates = coordinates.iter().cloned().chain(place).collect();
            maker.world.entity_mut(read).insert(Mapping(coordinates));
            read
        });
        let low = maker.binary(BinaryOp::ShiftRight, first, down, DType::I32);
        let low = maker.binary(BinaryOp::And, low, kept, DType::I32);
        // Where the word is the same one, what it adds is above the element, or the element itself: a shift
        // by 32 is none.
        let high = maker.binary(BinaryOp::ShiftLeft, last, up, DType::I32);
        body.extend(maker.new);
        self.become_codes(world, node, Op::Binary(BinaryOp::Or), &[low, high])
    }

    /// A product takes the words of its factors: in registers elements of k lie as in memory.
    fn product(
        &mut self,
        world: &mut World,
        node: Entity,
        operands: &[Entity],
        body: &mut Vec<Entity>,
    ) -> PassResult {
        let mut words: SmallVec<[Entity; 2]> = SmallVec::new();
        let acc = nodes::node(world, *operands.get(2).ok_or(Bug::new("a product without accumulator"))?)?;
        let sum_dims = acc.ty.dims.clone();
        for &factor in operands.iter().take(2) {
            let Some(small) = self.codes.get(factor).copied() else {
                words.push(factor);
                continue;
            };
            let dims = nodes::node(world, factor)?.ty.dims.clone();
            let k = dims.iter().copied().find(|dim| !sum_dims.contains(dim));
            let k = k.ok_or(Bug::new("a product that sums over nothing"))?;
            let read = self.whole.get(factor).copied();
            words.push(match read {
                Some(read) if dims.last() == Some(&k) => read,
                Some(read)
                    if let Some(turned) = self.turned(world, read, (&dims, k, &sum_dims), small, body)? =>
                {
                    turned
                }
                _ => {
                    let row = self.units(world, k, small.packing)?.ok_or_else(|| {
                        let table = world.get::<DimTable>(self.root);
                        let name = table.map_or("k", |table| table.name(k));
                        let (dtype, bits) = (small.dtype, small.format.bits());
                        let units = match small.packing.elements {
                            2 => "bytes of two".to_owned(),
                            together => format!("blocks of {together}"),
                        };
                        let text = format!(
                            "{bits}-bit factors are multiplied in {units} along {name}, and no memory holds them so"
                        );
                        let help = format!("let a memory of {dtype} end with {name}, as `memory [M, {name}]`");
                        Diagnostic::invalid(text).at(self.place(world, node)).help(help)
                    })?;
                    let joined = self.joined(world, node, factor, &row, body)?;
                    let dims = nodes::node(world, joined)?.ty.dims.clone();
                    let mut maker = self.maker(world, node, &dims, &[])?;
                    let narrow = as_words(&mut maker, joined, small.packing);
                    body.extend(maker.new);
                    narrow
                }
            });
        }
        // Words do not say of which floats they are, and the instruction does.
        let geometry = nodes::fact::<Geometry>(world, self.root, "a kernel without geometry")?;
        let op = nodes::op(world, node)?;
        if let (Some(MmaChoice::Kernel), Some(MmaType::Instruction(mma))) = (op.product(), geometry.mma) {
            world.entity_mut(node).insert(op.with_instruction(MmaChoice::Explicit(mma)));
        }
        let mut operands = nodes::fact_mut::<Operands>(world, node, "a product without operands")?;
        operands.0[..2].copy_from_slice(&words);
        Ok(())
    }

    /// The read in whose value units lie along `k`, if reads of LDS turn such elements.
    fn turned(
        &mut self,
        world: &mut World,
        read: Entity,
        (dims, k, sum_dims): (&Dims, Dim, &Dims),
        small: SmallFloat,
        body: &mut Vec<Entity>,
    ) -> Result<Option<Entity>, Diagnostic> {
        if let Some(&(turned, _)) = self.turned.get(read).filter(|turned| turned.1 == k) {
            return Ok(Some(turned));
        }
        let factor = UnturnedFactor { read, dims, k, sum_dims, packing: small.packing };
        let Some(turned) = turned_read(world, self.root, &factor)? else { return Ok(None) };
        // Where the author reads it or, if that is outside of the region, once for each product: it leaves
        // the region later.
        match body.iter().rposition(|&other| other == read) {
            Some(at) => {
                body.insert(at + 1, turned);
                self.turned.insert(read, (turned, k));
            }
            None => body.push(turned),
        }
        Ok(Some(turned))
    }

    /// A read of a packed memory.
    fn read(
        &mut self,
        world: &mut World,
        node: Entity,
        row: &PackedRow,
        body: &mut Vec<Entity>,
    ) -> PassResult {
        let seen = nodes::node(world, node)?;
        let (mut operands, dims) = (seen.operands.0.clone(), seen.ty.dims.clone());
        let mapping = world.entity_mut(node).take::<Mapping>();
        let flags = world.entity_mut(node).take::<MemoryAccessFlags>();
        let is_whole = mapping.is_none();
        let mut whole = None;
        if is_whole || row.words.is_none() {
            let words_dims = if is_whole { row.dims_of_words(&dims) } else { dims.clone() };
            let mut maker = self.maker(world, node, &words_dims, &[])?;
            let read = maker.made(Op::Read, &operands, row.packing.word);
            body.extend(maker.new);
            if let Some(flags) = flags {
                world.entity_mut(read).insert(flags);
            }
            if let Some(tag) = world.entity_mut(node).take::<Tag>() {
                world.entity_mut(read).insert(tag);
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
                None => self.own_coordinates(world, node, (&dims, row), &mut operands, body)?,
            };
            return self.become_bits_of_words(world, node, (&operands, &coordinates), &place, row, body);
        };
        if let Some(mut coordinates) = coordinates {
            coordinates.push(place.clone() / i64::from(row.packing.elements));
            world.entity_mut(read).insert(Mapping(coordinates));
        }
        let values = operands.split_last().map_or(&[][..], |(_, values)| values);
        self.become_halves(world, node, read, &place, values, body)
    }

    /// The coordinates of a read without a mapping, but the last one; numbers of places go to `operands`, in
    /// front of the memory.
    fn own_coordinates(
        &self,
        world: &mut World,
        node: Entity,
        (dims, row): (&Dims, &PackedRow),
        operands: &mut SmallVec<[Entity; 4]>,
        body: &mut Vec<Entity>,
    ) -> Result<SmallVec<[SymExpr; 4]>, Diagnostic> {
        let leading: Dims = dims.iter().copied().filter(|dim| *dim != row.dim).collect();
        let memory = operands.pop().ok_or(Bug::new("a read of nothing"))?;
        let mut maker = self.maker(world, node, dims, &[])?;
        let geometry = nodes::fact::<Geometry>(maker.world, self.root, "a kernel without geometry")?;
        let symbols: DimSymbols = leading.iter().map(|&dim| geometry.dim(dim).symbol).collect();
        let mut coordinates = SmallVec::new();
        for (&dim, symbol) in leading.iter().zip(symbols) {
            coordinates.push(coordinate(&mut maker, dim, symbol, operands));
        }
        operands.push(memory);
        body.extend(maker.new);
        Ok(coordinates)
    }

    /// A write to a packed memory: of whole words.
    fn write(&self, world: &mut World, node: Entity, row: &PackedRow, body: &mut Vec<Entity>) -> PassResult {
        let seen = nodes::node(world, node)?;
        let (value, memory) = (seen.operands.at(0)?, seen.memory()?);
        if world.get::<Mapping>(node).is_some() {
            let name = &nodes::fact::<Name>(world, memory, "a memory without name")?.0;
            let shared = if row.words.is_some() { "word with others" } else { "byte with another one" };
            let text =
                format!("elements of `{name}` are written at coordinates, and each shares its {shared}");
            let help = "write to all of the memory without coordinates, or keep each number in a byte: give the \
                        memory a dtype of 8 bits, such as f8e4m3fn";
            return Err(Diagnostic::invalid(text).at(self.place(world, node)).help(help));
        }
        let words = self.joined(world, node, value, row, body)?;
        let dims = nodes::node(world, words)?.ty.dims.clone();
        let mut maker = self.maker(world, node, &dims, &[])?;
        let narrow = as_words(&mut maker, words, row.packing);
        body.extend(maker.new);
        nodes::fact_mut::<Operands>(world, node, "a write without operands")?.0[0] = narrow;
        Ok(())
    }

    /// The words of codes, as i32: the lowest bits of a unit are the first of its elements.
    fn joined(
        &self,
        world: &mut World,
        node: Entity,
        codes: Entity,
        row: &PackedRow,
        body: &mut Vec<Entity>,
    ) -> Result<Entity, Diagnostic> {
        let dims = nodes::node(world, codes)?.ty.dims.clone();
        let geometry = nodes::fact::<Geometry>(world, self.root, "a kernel without geometry")?;
        let unit = SymExpr::from(geometry.dim(row.units).symbol) * i64::from(row.packing.elements);
        let symbols: DimSymbols = dims.iter().map(|&dim| geometry.dim(dim).symbol).collect();
        let (together, bits) = (i64::from(row.packing.elements), i64::from(row.packing.bits()));
        let mut maker = self.maker(world, node, &dims, &[])?;
        // They go through LDS, where bytes take less room.
        let narrow = match encoded_bytes(maker.world, codes)? {
            Some(bytes) => bytes,
            None => maker.converted(Conversion::Cast, codes, DType::I8),
        };
        body.extend(maker.new);
        let shifts = self.shifts(world, node, row, body)?;
        let mut maker = self.maker(world, node, &row.dims_of_words(&dims), &[])?;
        let mut operands = SmallVec::new();
        let mut coordinates: SmallVec<[SymExpr; 4]> = SmallVec::new();
        for (&dim, &symbol) in dims.iter().zip(&symbols) {
            coordinates.push(match dim == row.dim {
                true => unit.clone(),
                false => coordinate(&mut maker, dim, symbol, &mut operands),
            });
        }
        let first = row.words.map(|words| {
            operands.push(maker.index(words));
            SymExpr::from(operand_symbol(operands.len() - 1)) * 32 / bits
        });
        operands.push(narrow);
        let at = dims.iter().position(|&dim| dim == row.dim);
        let element = |maker: &mut NodeMaker<'_>, number: i64| {
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
            maker.world.entity_mut(read).insert(Mapping(coordinates));
            maker.converted(Conversion::Cast, read, DType::I32)
        };
        let word = joined_word(&mut maker, &shifts, bits, element);
        body.extend(maker.new);
        Ok(word)
    }

    /// By how much each element of a word is shifted, the first one, which begins before the word or at its
    /// first bit, to the right; none where a unit is a byte.
    fn shifts(
        &self,
        world: &mut World,
        node: Entity,
        row: &PackedRow,
        body: &mut Vec<Entity>,
    ) -> Result<SmallVec<[Entity; 6]>, Diagnostic> {
        let mut shifts = SmallVec::new();
        let Some(words) = row.words else { return Ok(shifts) };
        let bits = i64::from(row.packing.bits());
        let mut maker = self.maker(world, node, &SmallVec::from_slice(&[words]), &[])?;
        let word = maker.index(words);
        let first_bit = maker.with(BinaryOp::Mul, word, 32, DType::I32);
        let before = maker.with(BinaryOp::Rem, first_bit, bits, DType::I32);
        shifts.push(before);
        for at in 1..WORD_ELEMENTS {
            let place = maker.number(at * bits, DType::I32);
            shifts.push(maker.binary(BinaryOp::Sub, place, before, DType::I32));
        }
        body.extend(maker.new);
        Ok(shifts)
    }

    /// An access of an LDS buffer that has a byte for each element.
    fn access_bytes(&self, world: &mut World, node: Entity, body: &mut Vec<Entity>) -> PassResult {
        let seen = nodes::node(world, node)?;
        let (op, operands, dims) = (*seen.op, seen.operands.0.clone(), seen.ty.dims.clone());
        if op.is_write() {
            let value = operands[0];
            let dims = nodes::node(world, value)?.ty.dims.clone();
            let mut maker = self.maker(world, node, &dims, &[])?;
            let narrow = maker.converted(Conversion::Cast, value, DType::I8);
            body.extend(maker.new);
            nodes::fact_mut::<Operands>(world, node, "a write without operands")?.0[0] = narrow;
            return Ok(());
        }
        let mut maker = self.maker(world, node, &dims, &[])?;
        let read = maker.made(Op::Read, &operands, DType::I8);
        body.extend(maker.new);
        if let Some(mapping) = world.entity_mut(node).take::<Mapping>() {
            world.entity_mut(read).insert(mapping);
        }
        self.become_codes(world, node, Op::Convert(Conversion::Cast), &[read])
    }
}

/// The own place along a dimension as a coordinate: its symbol or, of a number, the next operand of a read.
fn coordinate(
    maker: &mut NodeMaker<'_>,
    dim: Dim,
    symbol: Symbol,
    operands: &mut SmallVec<[Entity; 4]>,
) -> SymExpr {
    if symbol.value().is_none() {
        return symbol.into();
    }
    operands.push(maker.index(dim));
    operand_symbol(operands.len() - 1).into()
}

/// The codes of f32 numbers, in bytes.
fn encoded_at_once(maker: &mut NodeMaker<'_>, numbers: Entity, small: SmallFloat) -> Entity {
    // Of a NaN and a number the minimum is the number.
    let largest = f64::from(small.format.largest());
    let numbers = maker.with(BinaryOp::Min, numbers, largest, DType::F32);
    maker.made(Op::Encode(small.dtype), &[numbers], DType::I8)
}

/// The bytes that codes have been widened from, if they have been encoded at once.
fn encoded_bytes(world: &World, codes: Entity) -> Result<Option<Entity>, Diagnostic> {
    let seen = nodes::node(world, codes)?;
    let (Op::Convert(Conversion::Cast), &[bytes]) = (*seen.op, &seen.operands.0[..]) else { return Ok(None) };
    let is_encoded = matches!(nodes::op(world, bytes)?, Op::Encode(_));
    Ok(is_encoded.then_some(bytes))
}

/// i32 words in the dtype that memories have them in.
fn as_words(maker: &mut NodeMaker<'_>, words: Entity, packing: PackedUnit) -> Entity {
    if packing.word == DType::I32 {
        return words;
    }
    maker.converted(Conversion::Cast, words, packing.word)
}
