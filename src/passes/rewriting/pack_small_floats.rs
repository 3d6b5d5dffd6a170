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

use super::node_maker::NodeMaker;
use super::packed_reads::PackedReads;
use super::packed_rows::PackedRow;
use super::small_float_codes::{become_codes, decoded, encoded};
use crate::ir::diagnostic::Diagnostic;
use crate::ir::layout::Dim;
use crate::ir::mapping::Mapping;
use crate::ir::node::{Name, *};
use crate::ir::node_map::{NodeMap, NodeSet};
use crate::ir::nodes::Bug;
use crate::ir::op::OpClass;
use crate::ir::types::{DType, PackedUnit};
use crate::passes::PassResult;
use crate::passes::facts::{PackedElements, Settings};
use crate::passes::kernel_editor::KernelEditor;
use crate::small_float::SmallFormat;

/// The pass itself; see the module. It makes nodes in front of others, so it takes the whole world.
pub(crate) fn pack_small_floats(world: &mut World) -> PassResult {
    let mut editor = KernelEditor::new(world)?;
    let mut packer = SmallFloatPacker {
        codes: NodeMap::default(),
        bytes: NodeSet::default(),
        reads: PackedReads::default(),
        turned: NodeMap::default(),
        has_conversions: editor.kernel::<Settings>()?.0.target().has_scaled_conversions(),
    };
    for node in editor.nodes() {
        let seen = editor.node(node)?;
        let Some(small) = seen.ty.dtype.and_then(SmallFloat::of) else { continue };
        match seen.op.row().class == OpClass::Declaration {
            true => packer.declare(&mut editor, node, small)?,
            false => packer.codes.insert(node, small),
        }
    }
    editor.rewrite(|editor, node| packer.node(editor, node))
}

/// A dtype of several elements in a unit.
#[derive(Copy, Clone)]
pub(super) struct SmallFloat {
    pub(super) dtype: DType,
    pub(super) format: SmallFormat,
    pub(super) packing: PackedUnit,
}

impl SmallFloat {
    fn of(dtype: DType) -> Option<SmallFloat> {
        Some(SmallFloat { dtype, format: SmallFormat::of(dtype)?, packing: dtype.packing()? })
    }
}

pub(super) struct SmallFloatPacker {
    /// Values that have become codes, or will.
    pub(super) codes: NodeMap<SmallFloat>,
    /// LDS buffers of the author, which have a byte for each element.
    bytes: NodeSet,
    pub(super) reads: PackedReads,
    /// For reads of units those that turn them, and the dimension that a product sums over.
    pub(super) turned: NodeMap<(Entity, Dim)>,
    /// Whether the chip has instructions for decoding and encoding.
    has_conversions: bool,
}

impl SmallFloatPacker {
    /// Makes a memory one of words, or a buffer one of bytes.
    fn declare(&mut self, editor: &mut KernelEditor<'_>, node: Entity, small: SmallFloat) -> PassResult {
        let seen = editor.node(node)?;
        let (is_memory, own) = (*seen.op == Op::Memory, seen.ty.clone());
        if is_memory {
            let dims = PackedRow::last(editor, &own.dims, small.packing)?.dims_of_words(&own.dims);
            let ty = ValueType { dims, dtype: Some(small.packing.word) };
            editor.attach(node, (ty, PackedElements(own)));
        } else {
            self.bytes.insert(node);
            editor.attach(node, ValueType { dtype: Some(DType::I8), ..own });
        }
        Ok(())
    }

    /// Says a node without such dtypes; what it needs comes in front of it.
    fn node(&mut self, editor: &mut KernelEditor<'_>, node: Entity) -> PassResult {
        let seen = editor.node(node)?;
        let (op, operands, dtype) = (*seen.op, seen.operands.0.clone(), seen.ty.dtype);
        if op.is_access() {
            let memory = seen.memory()?;
            if let Some(PackedElements(elements)) = editor.get::<PackedElements>(memory).cloned() {
                return self.access_packed(editor, node, &elements);
            }
            if self.bytes.contains(memory) {
                return access_bytes(editor, node);
            }
        }
        let gives = self.codes.get(node).copied();
        if gives.is_none() && !operands.iter().any(|&operand| self.codes.get(operand).is_some()) {
            return Ok(());
        }
        match (op, &operands[..], gives) {
            (Op::Register(constant), _, Some(small)) => {
                let code = constant.bits(small.dtype)? as i64;
                become_codes(editor, node, Op::Register(Constant::Integer(code)), &[])
            }
            (Op::Convert(Conversion::Bitcast), &[value], _) => self.bitcast(editor, node, value),
            (Op::Convert(Conversion::Cast), &[value], Some(small)) => self.encode(editor, node, value, small),
            (Op::Convert(Conversion::Cast), &[value], None)
                if self.has_conversions && matches!(dtype, Some(DType::F32 | DType::F16 | DType::Bf16)) =>
            {
                let one = editor.maker_like(value)?.number(1.0, DType::F8E8M0);
                self.decode_with(editor, node, value, one)
            }
            (Op::Decode(_), &[value, scale], None) => self.decode_with(editor, node, value, scale),
            // Casts to the dtype that codes have numbers in.
            (Op::Convert(Conversion::Cast), &[value], None) if dtype == Some(DType::F32) => {
                let number = self.decoded(editor, value)?;
                editor.turn_into(node, Op::Broadcast, &[number]);
                Ok(())
            }
            _ if op.is_product() => self.product(editor, node, &operands),
            _ if op.row().class == OpClass::Region || op.row().class == OpClass::Order => Ok(()),
            // What moves values.
            _ if op.is_carried() || op.is_access() || op == Op::Broadcast => {
                become_codes(editor, node, op, &operands)
            }
            (Op::Select, ..) => become_codes(editor, node, op, &operands),
            _ => self.compute(editor, node, gives),
        }
    }

    /// Lets a node compute with decoded operands, and encodes its result if it gives codes.
    fn compute(
        &mut self,
        editor: &mut KernelEditor<'_>,
        node: Entity,
        gives: Option<SmallFloat>,
    ) -> PassResult {
        let seen = editor.node(node)?;
        let (op, mut decoded) = (*seen.op, seen.operands.0.clone());
        for operand in &mut decoded {
            if self.codes.get(*operand).is_some() {
                *operand = self.decoded(editor, *operand)?;
            }
        }
        let Some(small) = gives else {
            editor.turn_into(node, op, &decoded);
            return Ok(());
        };
        let result = editor.maker_like(node)?.made(op, &decoded, DType::F32);
        self.encode(editor, node, result, small)
    }

    /// An access of a memory of packed elements.
    fn access_packed(
        &mut self,
        editor: &mut KernelEditor<'_>,
        node: Entity,
        elements: &ValueType,
    ) -> PassResult {
        let small = elements.dtype.and_then(SmallFloat::of);
        let small = small.ok_or(Bug::new("packed elements of whole bytes"))?;
        let row = PackedRow::last(editor, &elements.dims, small.packing)?;
        match editor.op(node)?.is_write() {
            true => write(editor, node, &row),
            false => self.reads.read(editor, node, &row),
        }
    }

    /// What decodes a value of codes, and the operand that it takes.
    fn decoding(&self, codes: Entity) -> Result<(Decoding, Entity), Bug> {
        if let Some(&(bytes, dim)) = self.reads.halves.get(codes) {
            return Ok((Decoding { form: CodeForm::Bytes, along: Some(dim) }, bytes));
        }
        let small = self.codes.get(codes).ok_or(Bug::new("a cast of what are no codes"))?;
        Ok((Decoding { form: CodeForm::Integers(small.dtype), along: None }, codes))
    }

    /// Makes a node the numbers of codes times their scales.
    fn decode_with(
        &self,
        editor: &mut KernelEditor<'_>,
        node: Entity,
        codes: Entity,
        scales: Entity,
    ) -> PassResult {
        let (mut decoding, operand) = self.decoding(codes)?;
        if let Op::Decode(own) = editor.op(node)? {
            decoding.along = own.along.or(decoding.along);
        }
        editor.turn_into(node, Op::Decode(decoding), &[operand, scales]);
        Ok(())
    }

    /// The numbers of codes, in f32, which is exact.
    fn decoded(&self, editor: &mut KernelEditor<'_>, codes: Entity) -> Result<Entity, Bug> {
        let small = self.codes.get(codes).ok_or(Bug::new("a cast of what are no codes"))?;
        let mut maker = editor.maker_like(codes)?;
        if !self.has_conversions {
            return Ok(decoded(&mut maker, codes, small.format));
        }
        let (decoding, operand) = self.decoding(codes)?;
        let one = maker.number(1.0, DType::F8E8M0);
        Ok(maker.made(Op::Decode(decoding), &[operand, one], DType::F32))
    }

    /// Makes a node the codes of a value of any other dtype.
    fn encode(
        &self,
        editor: &mut KernelEditor<'_>,
        node: Entity,
        value: Entity,
        small: SmallFloat,
    ) -> PassResult {
        let (mut number, mut dtype) = (value, editor.node(value)?.ty.dtype);
        if let Some(before) = self.codes.get(value) {
            if before.dtype == small.dtype {
                return become_codes(editor, node, Op::Broadcast, &[value]);
            }
            (number, dtype) = (self.decoded(editor, value)?, Some(DType::F32));
        }
        let mut maker = editor.maker_like(value)?;
        if self.has_conversions && dtype != Some(DType::F64) {
            let wide = match dtype {
                Some(DType::F32) => number,
                _ => maker.converted(Conversion::Cast, number, DType::F32),
            };
            let codes = encoded_at_once(&mut maker, wide, small);
            return become_codes(editor, node, Op::Convert(Conversion::Cast), &[codes]);
        }
        let [magnitude, sign] = encoded(&mut maker, (number, dtype), small.format);
        become_codes(editor, node, Op::Binary(BinaryOp::Or), &[magnitude, sign])
    }

    /// Bytes become the codes of the elements in them, and the other way round.
    fn bitcast(&mut self, editor: &mut KernelEditor<'_>, node: Entity, value: Entity) -> PassResult {
        match (self.codes.get(value), self.codes.get(node)) {
            (Some(_), Some(_)) => become_codes(editor, node, Op::Broadcast, &[value]),
            (Some(small), None) => {
                let row = PackedRow::last(editor, &editor.dims(value)?, small.packing)?;
                let bytes = row.joined(editor, value)?;
                editor.turn_into(node, Op::Convert(Conversion::Cast), &[bytes]);
                Ok(())
            }
            (None, Some(small)) => {
                let row = PackedRow::last(editor, &editor.dims(node)?, small.packing)?;
                self.reads.become_halves(editor, node, value, &row.symbol.into(), (&[], &[]))
            }
            (None, None) => Ok(()),
        }
    }
}

/// A write to a packed memory: of whole words.
fn write(editor: &mut KernelEditor<'_>, node: Entity, row: &PackedRow) -> PassResult {
    let seen = editor.node(node)?;
    let (value, memory) = (seen.operand(0)?, seen.memory()?);
    if editor.get::<Mapping>(node).is_some() {
        let name = &editor.fact::<Name>(memory, "a memory without name")?.0;
        let shared = if row.words.is_some() { "word with others" } else { "byte with another one" };
        let text = format!("elements of `{name}` are written at coordinates, and each shares its {shared}");
        let help = "write to all of the memory without coordinates, or keep each number in a byte: give the \
                    memory a dtype of 8 bits, such as f8e4m3fn";
        return Err(Diagnostic::invalid(text).at(editor.location(node)).help(help));
    }
    let words = row.words_of(editor, value)?;
    Ok(editor.set_operand(node, 0, words)?)
}

/// An access of an LDS buffer that has a byte for each element.
fn access_bytes(editor: &mut KernelEditor<'_>, node: Entity) -> PassResult {
    let seen = editor.node(node)?;
    let (op, operands) = (*seen.op, seen.operands.0.clone());
    if op.is_write() {
        let value = operands[0];
        let narrow = editor.maker_like(value)?.converted(Conversion::Cast, value, DType::I8);
        return Ok(editor.set_operand(node, 0, narrow)?);
    }
    let read = editor.maker_like(node)?.made(Op::Read, &operands, DType::I8);
    if let Some(mapping) = editor.take::<Mapping>(node) {
        editor.attach(read, mapping);
    }
    become_codes(editor, node, Op::Convert(Conversion::Cast), &[read])
}

/// The codes of f32 numbers, in bytes.
fn encoded_at_once(maker: &mut NodeMaker<'_, '_>, numbers: Entity, small: SmallFloat) -> Entity {
    // Of a NaN and a number the minimum is the number.
    let largest = f64::from(small.format.largest());
    let numbers = maker.with(BinaryOp::Min, numbers, largest, DType::F32);
    maker.made(Op::Encode(small.dtype), &[numbers], DType::I8)
}
