//! Numbers of `f4e2m1`, said with other operations: from here on there is no such dtype.
//!
//! - A memory `[.., K]` becomes the bytes `[.., K/2]`, each of which holds two elements ([`PackedElements`]
//!   says what its user sees). A read is one of bytes, and each element takes its half; a write brings the
//!   two elements of a byte together by way of coordinates. LDS buffers of the author have a byte for each
//!   element.
//! - A value becomes codes: i32 elements, of which the lowest four bits count. What moves values without
//!   looking at them moves codes; a cast is arithmetic on their bits; everything else is computed in f32, as
//!   that of other narrow floats is.

use bevy_ecs::prelude::*;
use smallvec::SmallVec;

use super::facts::{Geometry, PackedElements};
use super::node_maker::NodeMaker;
use super::{PassResult, kernel_entity};
use crate::ir::access_flags::MemoryAccessFlags;
use crate::ir::diagnostic::{Diagnostic, Location};
use crate::ir::expr::{SymExpr, Symbol};
use crate::ir::kernel::{DimTable, Locations};
use crate::ir::layout::Dim;
use crate::ir::mapping::{Mapping, operand_symbol};
use crate::ir::node::{Name, *};
use crate::ir::node_map::{NodeMap, NodeSet};
use crate::ir::nodes::{self, Bug};
use crate::ir::op::OpClass;
use crate::ir::types::DType;
use crate::ir::walk::{self, NodeList};

/// The pass itself; see the module. It makes nodes in front of others, so it takes the whole world.
pub(crate) fn pack_f4e2m1(world: &mut World) -> PassResult {
    let root = kernel_entity(world)?;
    let mut packer =
        F4Packer { root, codes: NodeSet::default(), bytes: NodeSet::default(), whole: NodeMap::default() };
    for node in walk::nodes(world, root) {
        let seen = nodes::node(world, node)?;
        if seen.ty.dtype != Some(DType::F4E2M1) {
            continue;
        }
        match seen.op.row().class == OpClass::Declaration {
            true => packer.declare(world, node)?,
            false => packer.codes.insert(node),
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

struct F4Packer {
    root: Entity,
    /// Values that have become codes, or will.
    codes: NodeSet,
    /// LDS buffers of the author, which have a byte for each element.
    bytes: NodeSet,
    /// For codes that are read element after element the read of their bytes.
    whole: NodeMap<Entity>,
}

/// What a packed memory is accessed along.
struct PackedRow {
    /// The last dimension of its elements.
    dim: Dim,
    /// That of its bytes.
    pairs: Dim,
    symbol: Symbol,
}

impl F4Packer {
    /// Makes a memory or a buffer one of bytes.
    fn declare(&mut self, world: &mut World, node: Entity) -> PassResult {
        let own = nodes::node(world, node)?.ty.clone();
        let mut ty = ValueType { dims: own.dims.clone(), dtype: Some(DType::I8) };
        if nodes::op(world, node)? == Op::Memory {
            let row = self.row(world, &own.dims)?;
            if let Some(last) = ty.dims.last_mut() {
                *last = row.pairs;
            }
            world.entity_mut(node).insert(PackedElements(own));
        } else {
            self.bytes.insert(node);
        }
        *nodes::fact_mut::<ValueType>(world, node, "a memory without type")? = ty;
        Ok(())
    }

    /// The last of some dimensions, which elements lie along in bytes.
    fn row(&self, world: &World, dims: &Dims) -> Result<PackedRow, Diagnostic> {
        let row = match dims.last() {
            Some(&dim) => self.pairs(world, dim)?,
            None => None,
        };
        row.ok_or_else(|| Diagnostic::bug("packed elements along a dimension without pairs"))
    }

    /// A dimension that elements lie along in bytes, if some memory has such bytes.
    fn pairs(&self, world: &World, dim: Dim) -> Result<Option<PackedRow>, Diagnostic> {
        let table = nodes::fact::<DimTable>(world, self.root, "a kernel without dimensions")?;
        let row = || {
            let symbol = *table.0.get(dim)?;
            Some(PackedRow { dim, pairs: table.find(symbol.scaled(2))?, symbol })
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

    /// Says a node without `f4e2m1`; what it needs goes to `body`, in front of it.
    fn node(&mut self, world: &mut World, node: Entity, body: &mut Vec<Entity>) -> PassResult {
        let seen = nodes::node(world, node)?;
        let (op, operands, ty) = (*seen.op, seen.operands.0.clone(), seen.ty.clone());
        if op.is_access() {
            let memory = nodes::node(world, node)?.memory()?;
            if let Some(PackedElements(elements)) = world.get::<PackedElements>(memory).cloned() {
                let row = self.row(world, &elements.dims)?;
                return match op.is_write() {
                    true => self.write(world, node, &row, body),
                    false => self.read(world, node, &row, body),
                };
            }
            if self.bytes.contains(memory) {
                return self.access_bytes(world, node, body);
            }
        }
        let gives_codes = self.codes.contains(node);
        if !gives_codes && !operands.iter().any(|&operand| self.codes.contains(operand)) {
            return Ok(());
        }
        match (op, &operands[..]) {
            (Op::Register(constant), _) => {
                let code = constant.bits(DType::F4E2M1)? as i64;
                self.become_codes(world, node, Op::Register(Constant::Integer(code)), &[])
            }
            (Op::Convert(Conversion::Bitcast), &[value]) => self.bitcast(world, node, value, body),
            (Op::Convert(Conversion::Cast), &[value]) if gives_codes => self.encode(world, node, value, body),
            // Casts to the dtype that codes have numbers in.
            (Op::Convert(Conversion::Cast), &[value]) if ty.dtype == Some(DType::F32) => {
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
            (Op::Select, _) => self.become_codes(world, node, op, &operands),
            _ => {
                let mut decoded = operands.clone();
                for operand in &mut decoded {
                    if self.codes.contains(*operand) {
                        *operand = self.decoded(world, node, *operand, body)?;
                    }
                }
                if !gives_codes {
                    nodes::fact_mut::<Operands>(world, node, "a node without operands")?.0 = decoded;
                    return Ok(());
                }
                let mut maker = self.maker(world, node, &ty.dims, &[])?;
                let result = maker.made(op, &decoded, DType::F32);
                body.extend(maker.new);
                self.encode(world, node, result, body)
            }
        }
    }

    /// Makes a node another one, whose result are codes.
    fn become_codes(&self, world: &mut World, node: Entity, op: Op, operands: &[Entity]) -> PassResult {
        nodes::fact_mut::<ValueType>(world, node, "a node without type")?.dtype = Some(DType::I32);
        world.entity_mut(node).insert((op, Operands(SmallVec::from_slice(operands))));
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
        let mut maker = self.maker(world, node, &dims, &[])?;
        let number = decoded(&mut maker, codes);
        body.extend(maker.new);
        Ok(number)
    }

    /// Makes a node the codes of a value of any other dtype.
    fn encode(&self, world: &mut World, node: Entity, value: Entity, body: &mut Vec<Entity>) -> PassResult {
        let ValueType { dims, dtype } = nodes::node(world, value)?.ty.clone();
        if self.codes.contains(value) {
            return self.become_codes(world, node, Op::Broadcast, &[value]);
        }
        let mut maker = self.maker(world, node, &dims, &[])?;
        let [magnitude, sign] = match dtype {
            Some(DType::F32) => encoded(&mut maker, value, &SINGLE),
            Some(DType::F64) => {
                let parts = encoded(&mut maker, value, &DOUBLE);
                parts.map(|part| maker.converted(Conversion::Cast, part, DType::I32))
            }
            _ => {
                let wide = maker.converted(Conversion::Cast, value, DType::F32);
                encoded(&mut maker, wide, &SINGLE)
            }
        };
        body.extend(maker.new);
        self.become_codes(world, node, Op::Binary(BinaryOp::Or), &[magnitude, sign])
    }

    /// Bytes become the codes of the elements in them, and the other way round.
    fn bitcast(&self, world: &mut World, node: Entity, value: Entity, body: &mut Vec<Entity>) -> PassResult {
        let ty = nodes::node(world, node)?.ty.clone();
        match (self.codes.contains(value), self.codes.contains(node)) {
            (true, true) => self.become_codes(world, node, Op::Broadcast, &[value]),
            (true, false) => {
                let dims = nodes::node(world, value)?.ty.dims.clone();
                let row = self.row(world, &dims)?;
                let bytes = self.joined(world, node, value, &row, body)?;
                let cast = Op::Convert(Conversion::Cast);
                world.entity_mut(node).insert((cast, Operands(SmallVec::from_slice(&[bytes]))));
                Ok(())
            }
            (false, _) => {
                let row = self.row(world, &ty.dims)?;
                self.become_halves(world, node, value, &row.symbol.into(), &[], body)
            }
        }
    }

    /// Makes a node the half of each byte of a value in which the element at `place` is; bytes may lie along
    /// pairs of elements.
    fn become_halves(
        &self,
        world: &mut World,
        node: Entity,
        bytes: Entity,
        place: &SymExpr,
        values: &[Entity],
        body: &mut Vec<Entity>,
    ) -> PassResult {
        let dims = nodes::node(world, node)?.ty.dims.clone();
        let is_along = nodes::node(world, bytes)?.ty.dims == dims;
        let table = nodes::fact::<DimTable>(world, self.root, "a kernel without dimensions")?;
        let own = place.as_symbol().and_then(|symbol| table.find(symbol)).filter(|dim| dims.contains(dim));
        // What depends on one dimension alone is computed along it.
        let dims_of_place = own.map_or_else(|| dims.clone(), |dim| SmallVec::from_slice(&[dim]));
        let mut maker = self.maker(world, node, &dims_of_place, values)?;
        let count = maker.value_of(&(place.clone() % 2 * 4))?;
        body.extend(maker.new);
        let mut maker = self.maker(world, node, &dims, &[])?;
        let bytes = if is_along { bytes } else { maker.made(Op::Broadcast, &[bytes], DType::I8) };
        let wide = maker.converted(Conversion::Cast, bytes, DType::I32);
        body.extend(maker.new);
        self.become_codes(world, node, Op::Binary(BinaryOp::ShiftRight), &[wide, count])
    }

    /// A product takes the bytes of its factors: in a register two elements of k are one byte, as in memory.
    fn product(
        &self,
        world: &mut World,
        node: Entity,
        operands: &[Entity],
        body: &mut Vec<Entity>,
    ) -> PassResult {
        let mut bytes: SmallVec<[Entity; 2]> = SmallVec::new();
        let acc = nodes::node(world, *operands.get(2).ok_or(Bug::new("a product without accumulator"))?)?;
        let sum_dims = acc.ty.dims.clone();
        for &factor in operands.iter().take(2) {
            let dims = nodes::node(world, factor)?.ty.dims.clone();
            let k = dims.iter().copied().find(|dim| !sum_dims.contains(dim));
            let k = k.ok_or(Bug::new("a product that sums over nothing"))?;
            let read = self.whole.get(factor).copied();
            bytes.push(match read {
                Some(read) if dims.last() == Some(&k) => read,
                _ => {
                    let row = self.pairs(world, k)?.ok_or_else(|| {
                        let table = world.get::<DimTable>(self.root);
                        let name = table.map_or("k", |table| table.name(k));
                        let text = format!("4-bit factors are multiplied in bytes of two along {name}, and no memory holds them so");
                        let help = format!("let a memory of f4e2m1 end with {name}, as `memory [M, {name}]`");
                        Diagnostic::invalid(text).at(self.place(world, node)).help(help)
                    })?;
                    let joined = self.joined(world, node, factor, &row, body)?;
                    let dims = nodes::node(world, joined)?.ty.dims.clone();
                    let mut maker = self.maker(world, node, &dims, &[])?;
                    let narrow = maker.converted(Conversion::Cast, joined, DType::I8);
                    body.extend(maker.new);
                    narrow
                }
            });
        }
        let mut operands = nodes::fact_mut::<Operands>(world, node, "a product without operands")?;
        operands.0[..2].copy_from_slice(&bytes);
        Ok(())
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
        let (operands, mut dims) = (seen.operands.0.clone(), seen.ty.dims.clone());
        let values = &operands[..operands.len() - 1];
        let mapping = world.entity_mut(node).take::<Mapping>();
        if let (None, Some(last)) = (&mapping, dims.last_mut()) {
            *last = row.pairs;
        }
        let mut maker = self.maker(world, node, &dims, &[])?;
        let read = maker.made(Op::Read, &operands, DType::I8);
        body.extend(maker.new);
        let mut place = SymExpr::from(row.symbol);
        if mapping.is_none() {
            self.whole.insert(node, read);
        }
        if let Some(Mapping(mut coordinates)) = mapping {
            if let Some(last) = coordinates.last_mut() {
                place = last.clone();
                *last = last.clone() / 2;
            }
            world.entity_mut(read).insert(Mapping(coordinates));
        }
        if let Some(flags) = world.entity_mut(node).take::<MemoryAccessFlags>() {
            world.entity_mut(read).insert(flags);
        }
        if let Some(tag) = world.entity_mut(node).take::<Tag>() {
            world.entity_mut(read).insert(tag);
        }
        self.become_halves(world, node, read, &place, values, body)
    }

    /// A write to a packed memory: of whole bytes.
    fn write(&self, world: &mut World, node: Entity, row: &PackedRow, body: &mut Vec<Entity>) -> PassResult {
        let seen = nodes::node(world, node)?;
        let (value, memory) = (seen.operands.at(0)?, seen.memory()?);
        if world.get::<Mapping>(node).is_some() {
            let name = &nodes::fact::<Name>(world, memory, "a memory without name")?.0;
            let text = format!(
                "elements of `{name}` are written at coordinates, and each shares its byte with another one"
            );
            let help = "write to all of the memory without coordinates, or keep each number in a byte: give the \
                        memory a dtype of 8 bits, such as f8e4m3fn";
            return Err(Diagnostic::invalid(text).at(self.place(world, node)).help(help));
        }
        let bytes = self.joined(world, node, value, row, body)?;
        let dims = nodes::node(world, bytes)?.ty.dims.clone();
        let mut maker = self.maker(world, node, &dims, &[])?;
        let narrow = maker.converted(Conversion::Cast, bytes, DType::I8);
        body.extend(maker.new);
        nodes::fact_mut::<Operands>(world, node, "a write without operands")?.0[0] = narrow;
        Ok(())
    }

    /// The bytes of codes, as i32: elements `2i` and `2i + 1` along the row are in byte `i`.
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
        let pair = SymExpr::from(geometry.dim(row.pairs).symbol);
        let symbols: SmallVec<[Symbol; 4]> = dims.iter().map(|&dim| geometry.dim(dim).symbol).collect();
        let mut maker = self.maker(world, node, &dims, &[])?;
        // They go through LDS, where bytes take less room.
        let narrow = maker.converted(Conversion::Cast, codes, DType::I8);
        if let Some(last) = maker.dims.iter_mut().find(|dim| **dim == row.dim) {
            *last = row.pairs;
        }
        let mut operands = NodeList::new();
        let mut coordinates = SmallVec::new();
        for (&dim, &symbol) in dims.iter().zip(&symbols) {
            coordinates.push(match symbol.value() {
                _ if dim == row.dim => pair.clone() * 2,
                None => symbol.into(),
                Some(_) => {
                    operands.push(maker.index(dim));
                    operand_symbol(operands.len() - 1).into()
                }
            });
        }
        operands.push(narrow);
        let at = dims.iter().position(|&dim| dim == row.dim);
        let [low, high] = [0i64, 1].map(|half| {
            let read = maker.made(Op::Read, &operands, DType::I8);
            let mut coordinates = coordinates.clone();
            if let Some(place) = at.and_then(|at| coordinates.get_mut(at)) {
                *place = pair.clone() * 2 + half;
            }
            maker.world.entity_mut(read).insert(Mapping(coordinates));
            maker.converted(Conversion::Cast, read, DType::I32)
        });
        let low = maker.with(BinaryOp::And, low, 15, DType::I32);
        let high = maker.with(BinaryOp::ShiftLeft, high, 4, DType::I32);
        let bytes = maker.binary(BinaryOp::Or, low, high, DType::I32);
        body.extend(maker.new);
        Ok(bytes)
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

/// Codes as f32.
fn decoded(maker: &mut NodeMaker<'_>, codes: Entity) -> Entity {
    // With exponent and fraction in their places the number is off by a power of two.
    let magnitude = maker.with(BinaryOp::And, codes, 7, DType::I32);
    let in_place = maker.with(BinaryOp::ShiftLeft, magnitude, 22, DType::I32);
    let small = maker.converted(Conversion::Bitcast, in_place, DType::F32);
    let number = maker.with(BinaryOp::Mul, small, 2f64.powi(126), DType::F32);
    let bits = maker.converted(Conversion::Bitcast, number, DType::I32);
    let sign = maker.with(BinaryOp::And, codes, 8, DType::I32);
    let sign = maker.with(BinaryOp::ShiftLeft, sign, 28, DType::I32);
    let signed = maker.binary(BinaryOp::Or, bits, sign, DType::I32);
    maker.converted(Conversion::Bitcast, signed, DType::F32)
}

/// A float that codes are made from.
struct WideFloat {
    dtype: DType,
    /// The integer of its size.
    bits: DType,
    /// Bits of its fraction.
    fraction: u32,
    /// The bias of its exponent.
    bias: i64,
}

const SINGLE: WideFloat = WideFloat { dtype: DType::F32, bits: DType::I32, fraction: 23, bias: 127 };
const DOUBLE: WideFloat = WideFloat { dtype: DType::F64, bits: DType::I64, fraction: 52, bias: 1023 };

/// The codes that are nearest to numbers: their lowest three bits and the sign, as integers of the float's
/// size.
fn encoded(maker: &mut NodeMaker<'_>, value: Entity, of: &WideFloat) -> [Entity; 2] {
    let &WideFloat { dtype, bits, fraction, bias } = of;
    let magnitude = maker.made(Op::Unary(UnaryOp::Abs), &[value], dtype);
    // Of a NaN and 6 the minimum is 6.
    let magnitude = maker.with(BinaryOp::Min, magnitude, 6.0, dtype);
    let own = maker.converted(Conversion::Bitcast, magnitude, bits);
    // Numbers below 1 are as far apart as those below 2.
    let normal = maker.with(BinaryOp::Max, own, bias << fraction, bits);
    let exponent = maker.with(BinaryOp::And, normal, !0 << fraction, bits);
    // The sum with a number so much larger is rounded where the code has its last bit, which is then the last
    // bit of the sum.
    let larger = maker.with(BinaryOp::Add, exponent, i64::from(fraction - 1) << fraction, bits);
    let larger = maker.converted(Conversion::Bitcast, larger, dtype);
    let sum = maker.binary(BinaryOp::Add, magnitude, larger, dtype);
    let steps = maker.converted(Conversion::Bitcast, sum, bits);
    // Each exponent above the bias has two codes, and twice the bias is 2 less than a multiple of 8.
    let exponents = maker.with(BinaryOp::ShiftRight, exponent, i64::from(fraction - 1), bits);
    let code = maker.binary(BinaryOp::Add, steps, exponents, bits);
    let code = maker.with(BinaryOp::Add, code, 2, bits);
    let code = maker.with(BinaryOp::And, code, 7, bits);
    // The sign of a NaN is nobody's: arithmetic makes NaNs of either.
    let signed = maker.with(BinaryOp::Min, value, 6.0, dtype);
    let own = maker.converted(Conversion::Bitcast, signed, bits);
    let sign = maker.with(BinaryOp::ShiftRight, own, i64::from(bits.bits()) - 4, bits);
    [code, maker.with(BinaryOp::And, sign, 8, bits)]
}
