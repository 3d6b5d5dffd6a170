//! Products of block floats for chips without instructions for them, on request: each factor is converted and
//! multiplied with its scales, and an ordinary product takes it.
//!
//! Without the request a chip has to have the instruction, and nothing is done here.

use bevy_ecs::prelude::*;
use smallvec::SmallVec;

use super::choose_instructions::EMULATE;
use super::facts::{Geometry, Settings};
use super::node_maker::NodeMaker;
use super::{PassResult, kernel_entity};
use crate::codegen::target::Target;
use crate::ir::constraint::Constraint;
use crate::ir::diagnostic::{Diagnostic, Kind};
use crate::ir::kernel::{Constraints, Locations};
use crate::ir::layout::{MatrixShape, Mma, MmaType};
use crate::ir::node::*;
use crate::ir::nodes::{self, Bug};
use crate::ir::types::DType;
use crate::ir::walk::{self, NodeList};

/// In which dtypes factors are multiplied with their scales.
const DTYPES: [DType; 3] = [DType::Bf16, DType::F16, DType::F32];

/// The pass itself; see the module. It makes nodes in front of others, so it takes the whole world.
pub(crate) fn multiply_scales(world: &mut World) -> PassResult {
    let root = kernel_entity(world)?;
    let options = &nodes::fact::<Settings>(world, root, "a kernel without options")?.0;
    let target = options.target();
    let constraints = &nodes::fact::<Constraints>(world, root, "a kernel without constraints")?.0;
    let mut written = constraints.iter().filter_map(|(constraint, _)| {
        if let Constraint::Emulate(dtype) = constraint { Some(*dtype) } else { None }
    });
    let emulated = match options.emulated() {
        None if has_scales(target) => None,
        None => written.next(),
        asked => asked,
    };
    for region in walk::regions(world, root) {
        let mut body = Vec::new();
        for node in walk::body(world, region) {
            if let Op::ScaledMma(choice) = nodes::op(world, node)? {
                let origin = nodes::node(world, node)?.origin.0;
                let locations = nodes::fact::<Locations>(world, root, "a kernel without locations")?;
                judge(target, emulated).map_err(|fault| fault.at(locations.get(origin)))?;
                if let Some(dtype) = emulated {
                    emulate(world, root, node, (choice, dtype), &mut body)?;
                }
            }
            body.push(node);
        }
        walk::set_body(world, region, &body);
    }
    Ok(())
}

/// Whether a chip has any product with scales; which ones is judged with its instruction.
fn has_scales(target: Target) -> bool {
    Mma::all().any(|mma| target.scaled_matrix_instruction(mma).is_some())
}

/// A chip has to have products with scales, or to emulate them in a dtype that holds their factors.
fn judge(target: Target, emulated: Option<DType>) -> PassResult {
    match emulated {
        Some(dtype) if !DTYPES.contains(&dtype) => {
            let text = format!("factors are multiplied with their scales in {dtype}");
            let help =
                "emulate in bf16, f16 or f32: bf16 holds every scaled factor that is in the range of f32";
            return Err(Diagnostic::invalid(text).help(help));
        }
        None if !has_scales(target) => {}
        _ => return Ok(()),
    }
    let others = Target::ALL.iter().filter(|other| has_scales(**other));
    let others: Vec<&str> = others.map(|other| other.name).collect();
    let text = format!("{target} has no matrix instruction whose factors have scales for blocks of k");
    let help = format!("compile for {}, or {EMULATE}", others.join(" or "));
    Err(Diagnostic::new(Kind::Unsupported, text).help(help))
}

/// Makes a product with scales an ordinary one of factors of `dtype`.
fn emulate(
    world: &mut World,
    root: Entity,
    node: Entity,
    (choice, dtype): (MmaChoice, DType),
    body: &mut Vec<Entity>,
) -> PassResult {
    let seen = nodes::node(world, node)?;
    let (operands, origin) = (seen.operands.0.clone(), *seen.origin);
    let &[lhs, rhs, acc, lhs_scale, rhs_scale] = operands.as_slice() else {
        return Err(Bug::new("a product with scales that lacks some").into());
    };
    let mut factors: SmallVec<[Entity; 2]> = SmallVec::new();
    for (factor, scale) in [(lhs, lhs_scale), (rhs, rhs_scale)] {
        let dims = nodes::node(world, factor)?.ty.dims.clone();
        let mut maker = NodeMaker { world, root, dims, origin, values: &[], new: NodeList::new() };
        // Repeated as they are read: what has been computed would go through LDS for that.
        let scale = maker.made(Op::Broadcast, &[scale], DType::F8E8M0);
        let [factor, scale] = [factor, scale].map(|value| maker.converted(Conversion::Cast, value, dtype));
        factors.push(maker.binary(BinaryOp::Mul, factor, scale, dtype));
        body.extend(maker.new);
    }
    // An instruction that takes scales does not take these factors, and one of its shape does.
    let geometry = nodes::fact::<Geometry>(world, root, "a kernel without geometry")?;
    let edge = match (choice, geometry.mma) {
        (MmaChoice::Explicit(mma), _) | (MmaChoice::Kernel, Some(MmaType::Instruction(mma))) => Some(mma.m()),
        (MmaChoice::Shape(_) | MmaChoice::Kernel, _) => None,
    };
    let shape = MatrixShape::ALL.into_iter().find(|shape| edge == Some(shape.edge()));
    let choice = shape.map_or(choice, MmaChoice::Shape);
    factors.push(acc);
    world.entity_mut(node).insert((Op::Mma(choice), Operands(factors.into_iter().collect())));
    Ok(())
}
