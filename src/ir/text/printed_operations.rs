//! The operations as the printer writes them: a word, what belongs to the operation itself, and its operands.

use bevy_ecs::prelude::Entity;

use super::constraints::mma_text;
use super::controls::write_control;
use super::printer::{Printer, write_constant};
use super::symbolic::{Level, write_expr_of_values, write_symbol};
use crate::ir::access_flags::MemoryAccessFlags;
use crate::ir::expr::{SymExpr, Symbol};
use crate::ir::layout::Dim;
use crate::ir::mapping::{Mapping, operand_number};
use crate::ir::memory_layout::{DebugLog, Strides};
use crate::ir::node::*;
use crate::ir::op::{AlongDimOp, ConstantOp, ContractionOp, DeclarationOp, ElementWiseOp, OpFamily, OrderOp};

impl Printer<'_> {
    /// An operation without a region, after the name of its result.
    pub(super) fn operation(&mut self, node: Entity, op: Op) {
        let unknown = ValueType::unknown();
        let ty = self.world.get::<ValueType>(node).unwrap_or(&unknown);
        match (op.family(), self.world.get::<DebugLog>(node)) {
            (OpFamily::Declaration(_), Some(_)) => return self.log(ty),
            (OpFamily::Constant(ConstantOp::Register(constant)), _) if *ty == unknown => {
                self.out.push_str("constant ");
                return write_constant(&mut self.out, constant);
            }
            _ => self.out.push_str(op.row().word),
        }
        match op.family() {
            OpFamily::Declaration(declaration) => self.declaration(node, declaration, ty),
            OpFamily::Constant(constant) => self.constant_value(constant, ty),
            OpFamily::Access(_) => self.access(node, op, ty),
            OpFamily::ElementWise(element_wise) => self.element_wise(node, element_wise, ty),
            OpFamily::Contraction(contraction) => self.product(node, contraction),
            OpFamily::AlongDim(along_dim) => self.along_dim(node, along_dim),
            OpFamily::Order(order) => self.order(node, order),
            OpFamily::Rearrangement(_) | OpFamily::Region(_) | OpFamily::Carried(_) => {
                self.operand_list(node)
            }
        }
    }

    /// The values that a node uses, after a space.
    fn operand_list(&mut self, node: Entity) {
        let operands = self.operands(node);
        if !operands.is_empty() {
            self.out.push(' ');
            self.values(operands);
        }
    }

    fn spaced_dim(&mut self, word: &str, dim: Dim) {
        self.out.push_str(word);
        self.out.push(' ');
        self.dim(dim);
    }

    fn dtype(&mut self, ty: &ValueType) {
        if let Some(dtype) = ty.dtype {
            self.write(format_args!(" {}", dtype.name()));
        }
    }

    fn log(&mut self, ty: &ValueType) {
        self.out.push_str("debug_log");
        if !ty.dims.is_empty() {
            self.out.push(' ');
            self.shape(&ty.dims);
        }
        self.dtype(ty);
    }

    fn declaration(&mut self, node: Entity, declaration: DeclarationOp, ty: &ValueType) {
        match declaration {
            DeclarationOp::Scalar => {}
            DeclarationOp::Memory | DeclarationOp::Allocate => {
                self.out.push(' ');
                self.shape(&ty.dims);
            }
        }
        if let (DeclarationOp::Memory, Some(space)) = (declaration, self.world.get::<Space>(node)) {
            self.write(format_args!(" {}", space.0.name()));
        }
        self.dtype(ty);
        if let Some(strides) = self.world.get::<Strides>(node) {
            self.strides(strides);
        }
    }

    fn constant_value(&mut self, op: ConstantOp, ty: &ValueType) {
        self.out.push(' ');
        match op {
            ConstantOp::Register(constant) => {
                self.shape(&ty.dims);
                self.dtype(ty);
                self.out.push(' ');
                self.constant(constant, ty.dtype);
            }
            ConstantOp::SelfIndex(dim) | ConstantOp::Size(dim) | ConstantOp::Iteration(dim) => self.dim(dim),
            ConstantOp::WorkgroupId(axis) => self.write(format_args!("{axis}")),
        }
    }

    fn access(&mut self, node: Entity, op: Op, ty: &ValueType) {
        match Mapping::of(self.world, node) {
            Some(mapping) => self.mapped(op, self.operands(node), mapping, &ty.dims),
            None => self.operand_list(node),
        }
        if let Some(flags) = self.world.get::<MemoryAccessFlags>(node) {
            flags.words().for_each(|word| self.write(format_args!(" {word}")));
        }
    }

    /// `x at [n, k] as [M, K]`: a mapping after the value that is written, if there is one, and the memory.
    fn mapped(&mut self, op: Op, operands: &[Entity], mapping: &Mapping, dims: &[Dim]) {
        let written = op.values_in_front().min(operands.len());
        let (values, others) = operands.split_at(written);
        let Some((&memory, others)) = others.split_last() else { return };
        self.out.push(' ');
        for &value in values {
            self.value(value);
            self.out.push_str(", ");
        }
        self.value(memory);
        let mut names = Vec::new();
        for &other in others {
            let end = self.out.len();
            self.value(other);
            names.push(SymExpr::from(Symbol::new(&self.out[end..])));
            self.out.truncate(end);
        }
        let named = mapping.replaced(&|symbol| names.get(operand_number(symbol)?).cloned());
        self.out.push_str(" at [");
        for (at, coordinate) in named.0.iter().enumerate() {
            self.out.push_str(if at == 0 { "" } else { ", " });
            write_expr_of_values(&mut self.out, coordinate, Level::Sum);
        }
        self.out.push(']');
        if !op.is_write() {
            self.out.push_str(" as ");
            self.shape(dims);
        }
    }

    fn element_wise(&mut self, node: Entity, op: ElementWiseOp, ty: &ValueType) {
        match op {
            ElementWiseOp::Compare(predicate) => self.write(format_args!(" {}", predicate.word())),
            ElementWiseOp::Decode(decoding) => self.write(format_args!(" {}", decoding.form.word())),
            ElementWiseOp::Encode(dtype) => self.write(format_args!(" {}", dtype.name())),
            ElementWiseOp::Unary(_)
            | ElementWiseOp::Binary(_)
            | ElementWiseOp::Ternary(_)
            | ElementWiseOp::Select
            | ElementWiseOp::Convert(_)
            | ElementWiseOp::Broadcast => {}
        }
        self.operand_list(node);
        match op {
            ElementWiseOp::Convert(_) => self.dtype(ty),
            ElementWiseOp::Decode(decoding) => {
                if let Some(dim) = decoding.along {
                    self.spaced_dim(" along", dim);
                }
                self.dtype(ty);
            }
            ElementWiseOp::Broadcast => {
                self.out.push(' ');
                self.shape(&ty.dims);
            }
            ElementWiseOp::Unary(_)
            | ElementWiseOp::Binary(_)
            | ElementWiseOp::Ternary(_)
            | ElementWiseOp::Compare(_)
            | ElementWiseOp::Select
            | ElementWiseOp::Encode(_) => {}
        }
    }

    fn product(&mut self, node: Entity, op: ContractionOp) {
        match op.choice() {
            MmaChoice::Explicit(mma) => self.write(format_args!(" {}", mma_text(mma))),
            MmaChoice::Shape(shape) => self.write(format_args!(" {shape}")),
            MmaChoice::Kernel => {}
        }
        match self.operands(node) {
            // A factor and its scales stand together.
            &[lhs, rhs, acc, lhs_scale, rhs_scale] => {
                self.out.push(' ');
                self.values(&[lhs, lhs_scale, rhs, rhs_scale, acc]);
            }
            _ => self.operand_list(node),
        }
    }

    fn along_dim(&mut self, node: Entity, op: AlongDimOp) {
        self.operand_list(node);
        let (dim, parts) = match op {
            AlongDimOp::Reduce(reduction) => (reduction.dim, reduction.parts),
            AlongDimOp::Scan(scan) => (scan.dim, scan.by_wave),
            AlongDimOp::Sort(sort) => (sort.dim, None),
        };
        self.spaced_dim(" over", dim);
        if let Some(parts) = parts {
            self.spaced_dim(" by", parts);
        }
    }

    fn order(&mut self, node: Entity, op: OrderOp) {
        match op {
            OrderOp::Barrier => {}
            OrderOp::Control(control) => write_control(&mut self.out, control),
            OrderOp::SetSymbol(symbol) => {
                self.out.push(' ');
                write_symbol(&mut self.out, symbol.name());
                self.out.push(',');
            }
        }
        self.operand_list(node);
    }
}
