//! The part of the verifier that runs once every result has a dtype: the types of a node and of its operands
//! must agree with the rules of types.
//!
//! The result of element-wise operations and of reductions has the dimensions that the rule gives in any
//! order, others have them in this one. A loop's argument, its yield and its result have the type of its
//! initial value.

use bevy_ecs::prelude::*;
use smallvec::SmallVec;

use super::Verifier;
use crate::ir::facts::TurnedUnits;
use crate::ir::kernel::DimTable;
use crate::ir::mapping::Mapping;
use crate::ir::node::*;
use crate::ir::op::{
    AlongDimOp, CarriedOp, ConstantOp, ElementWiseOp, NodeRole, OpClass, OpFamily, ResultType,
};
use crate::ir::type_rules::{BrokenRule, TypeFault, TypeRules, TypedAccess, TypedNode, WrittenBy, same_dims};
use crate::ir::types::DType;

pub(super) fn check(verifier: &mut Verifier) {
    let Some(dims) = verifier.world.get::<DimTable>(verifier.root) else { return };
    let rules = TypeRules { dims, written_by: WrittenBy::Passes };
    for at in 0..verifier.order.len() {
        let node = verifier.order[at];
        if let Some(text) = disagreement(verifier, rules, node) {
            verifier.bug(node, text);
        }
    }
}

/// What is wrong with the types of a node. Operands that are missing or of the wrong kind have been reported
/// already.
fn disagreement(verifier: &Verifier, rules: TypeRules, node: Entity) -> Option<String> {
    let (op, operands, ty) = verifier.node(node)?;
    if op.row().class == OpClass::Region {
        return region_disagreement(verifier, rules, node);
    }
    let typed = TypedNode {
        op: *op,
        stated: ty,
        operands: operand_types(verifier, *op, operands)?,
        access: typed_access(verifier, node, *op, operands),
    };
    let fault = match rules.result(&typed) {
        Ok(Some(result)) if op.row().gives == NodeRole::Value && !agrees(*op, &result, ty) => None,
        Ok(_) => return None,
        Err(fault) if fault.broken == BrokenRule::Operands => return None,
        Err(fault) => Some(fault),
    };
    Some(Complaint { rules, node: typed, fault }.text())
}

/// The types that the rule of a node is about.
fn operand_types<'w>(
    verifier: &Verifier<'w>,
    op: Op,
    operands: &Operands,
) -> Option<SmallVec<[&'w ValueType; 5]>> {
    let of = |node: Entity| verifier.node(node).map(|parts| parts.2);
    if let (OpFamily::Carried(CarriedOp::LoopResult(number)), &[owner]) = (op.family(), &operands.0[..]) {
        let (_, Operands(initial), _) = verifier.node(owner)?;
        return Some(SmallVec::from_elem(of(*initial.get(number as usize)?)?, 1));
    }
    operands.0.iter().map(|&operand| of(operand)).collect()
}

fn typed_access<'w>(verifier: &Verifier<'w>, node: Entity, op: Op, operands: &Operands) -> TypedAccess<'w> {
    if !op.is_access() || op.copies() {
        return TypedAccess::default();
    }
    let accessed = operands.0.last().and_then(|&memory| verifier.node(memory));
    TypedAccess {
        mapping: Mapping::of(verifier.world, node),
        turned: TurnedUnits::of(verifier.world, node),
        in_lds: accessed.is_some_and(|(op, ..)| *op == Op::Allocate),
    }
}

/// True if a type is the one that the rule gives.
fn agrees(op: Op, result: &ValueType, ty: &ValueType) -> bool {
    let row = op.row();
    let in_any_order = match row.result {
        ResultType::Joined | ResultType::Condition | ResultType::Chosen | ResultType::Reduced => true,
        ResultType::OfOperand(_) => row.class == OpClass::ElementWise,
        ResultType::None
        | ResultType::Declared
        | ResultType::Converted(_)
        | ResultType::Repeated
        | ResultType::Carried => false,
    };
    result == ty || in_any_order && result.dtype == ty.dtype && same_dims(&result.dims, &ty.dims)
}

/// The fault of a region's condition or of what it carries, if there is one.
fn region_disagreement(verifier: &Verifier, rules: TypeRules, node: Entity) -> Option<String> {
    let (op, Operands(operands), _) = verifier.node(node)?;
    let of = |node: Entity| verifier.node(node).map(|parts| parts.2);
    if let Some(condition) = op.condition(operands)
        && rules.condition(*op, of(condition)?).is_err()
    {
        return Some(format!("runs under a condition that is {}", show(rules, of(condition)?)));
    }
    let (body, Yields(yields)) = (verifier.world.get::<Body>(node)?, verifier.world.get::<Yields>(node)?);
    let values = op.handed_on(yields);
    if let Some(&again) = yields.get(values.len())
        && rules.condition(*op, of(again)?).is_err()
    {
        return Some(format!("goes on under a condition that is {}", show(rules, of(again)?)));
    }
    let carried = op.initial(operands).iter().zip(&body.0).zip(values).enumerate();
    carried.into_iter().find_map(|(number, ((&initial, &argument), &yielded))| {
        let (initial, argument, yielded) = (of(initial)?, of(argument)?, of(yielded)?);
        [argument, yielded].into_iter().find_map(|ty| rules.handed_on(*op, initial, ty).err())?;
        let [initial, argument, yielded] = [initial, argument, yielded].map(|ty| show(rules, ty));
        Some(format!(
            "carries {initial} as value {number}, but its argument is {argument} and it yields {yielded}"
        ))
    })
}

fn show(rules: TypeRules, ty: &ValueType) -> String {
    let dims: Vec<_> = ty.dims.iter().map(|&dim| rules.dims.name(dim)).collect();
    format!("{}[{}]", ty.dtype.map_or("?", DType::name), dims.join(", "))
}

/// A node whose types break a rule; without a fault its own type is another one than the rule gives.
struct Complaint<'a> {
    rules: TypeRules<'a>,
    node: TypedNode<'a>,
    fault: Option<TypeFault>,
}

impl Complaint<'_> {
    fn text(&self) -> String {
        let own = self.show(self.node.stated);
        match self.node.op.family() {
            OpFamily::Constant(ConstantOp::Register(_)) => format!("is {own}, but {}", self.fault_text()),
            OpFamily::Constant(ConstantOp::SelfIndex(dim)) => {
                format!("is {own}, and not i32 along {}", self.rules.dims.name(dim))
            }
            OpFamily::Constant(_) => format!("is {own}, and not i32[]"),
            OpFamily::Access(_) => self.access(),
            OpFamily::ElementWise(op) => self.element_wise(op),
            OpFamily::Rearrangement(_) => format!("is {own}, but rearranges {}", self.operand(0)),
            OpFamily::Contraction(_) => self.product(),
            OpFamily::AlongDim(op) => {
                let (what, dim) = match op {
                    AlongDimOp::Reduce(reduction) => ("reduces", reduction.dim),
                    AlongDimOp::Scan(scan) => ("sums up", scan.dim),
                    AlongDimOp::Sort(sort) => ("sorts", sort.dim),
                };
                let along = self.rules.dims.name(dim);
                format!("is {own}, but {what} {} along {along}", self.operand(0))
            }
            OpFamily::Carried(_) => format!("is {own}, but the carried value is {}", self.operand(0)),
            OpFamily::Order(_) => format!("sets a symbol to {}", self.operand(0)),
            OpFamily::Declaration(_) | OpFamily::Region(_) => self.fault_text().to_owned(),
        }
    }

    fn show(&self, ty: &ValueType) -> String {
        show(self.rules, ty)
    }

    fn operand(&self, at: usize) -> String {
        self.node.operands.get(at).map_or_else(String::new, |ty| self.show(ty))
    }

    fn fault_text(&self) -> &str {
        self.fault.as_ref().map_or("its rule gives another type", |fault| &fault.diagnostic.message)
    }

    fn access(&self) -> String {
        let Some((&memory, values)) = self.node.operands.split_last() else { return String::new() };
        let (own, memory_text) = (self.show(self.node.stated), self.show(memory));
        if self.node.access.mapping.is_some() {
            return format!("is no access: {}", self.fault_text());
        }
        if self.node.op.is_write() {
            let fits =
                |value: &&&ValueType| value.dtype == memory.dtype && same_dims(&value.dims, &memory.dims);
            let wrong = values.iter().find(|value| !fits(value)).or(values.first());
            let wrong = wrong.map_or_else(String::new, |ty| self.show(ty));
            return format!("writes {wrong} to a memory that is {memory_text}");
        }
        let has = if self.node.access.turned.is_some() { "turns units of" } else { "its memory is" };
        format!("is {own}, but {has} {memory_text}")
    }

    fn product(&self) -> String {
        let [lhs, rhs, acc] = [0, 1, 2].map(|at| self.operand(at));
        match &self.fault {
            None => format!("is {}, but its accumulator is {acc}", self.show(self.node.stated)),
            Some(fault) if fault.broken == BrokenRule::Scales => {
                format!("has scales that do not fit: {}", self.fault_text())
            }
            Some(_) => format!("multiplies {lhs} and {rhs} into {acc}"),
        }
    }

    fn element_wise(&self, op: ElementWiseOp) -> String {
        let own = self.show(self.node.stated);
        let all = || listed(self.node.operands.iter().map(|ty| self.show(ty)));
        let is_of_dtypes = self.fault.as_ref().is_some_and(|fault| fault.broken == BrokenRule::Dtypes);
        match (op, self.node.op.row().result) {
            (ElementWiseOp::Decode(_), _) => {
                format!("is {own}, but decodes {} by {}", self.operand(0), self.operand(1))
            }
            (ElementWiseOp::Encode(dtype), _) => {
                format!("is {own}, but encodes {} as {dtype}", self.operand(0))
            }
            (_, ResultType::Converted(_) | ResultType::Repeated) => {
                format!("cannot make {own} from {}", all())
            }
            (_, ResultType::Chosen) if is_of_dtypes => {
                let [condition, yes, no] = [0, 1, 2].map(|at| self.operand(at));
                format!("chooses by {condition} between {yes} and {no}")
            }
            _ if is_of_dtypes => format!("is not defined for {}", all()),
            _ => {
                let verb = if self.node.operands.len() == 1 { "operand is" } else { "operands are" };
                format!("is {own}, but its {verb} {}", all())
            }
        }
    }
}

/// `a`, `a and b`, `a, b and c`.
fn listed(parts: impl Iterator<Item = String>) -> String {
    let mut parts: Vec<String> = parts.collect();
    let last = parts.pop().unwrap_or_default();
    if parts.is_empty() { last } else { format!("{} and {last}", parts.join(", ")) }
}
