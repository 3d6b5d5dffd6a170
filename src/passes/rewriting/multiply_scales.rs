//! Products of block floats for chips without instructions for them, on request: each factor is converted and
//! multiplied with its scales, and an ordinary product takes it.
//!
//! Every wave needs what others need, too. So the workgroup widens each tile once, a part of it in each lane,
//! and puts it into LDS, where the product reads it; factors and scales themselves go to registers. Where LDS
//! has no room for widened tiles, each wave widens what its own products take.
//!
//! Without the request a chip has to have the instruction, and nothing is done here.

use bevy_ecs::prelude::*;
use smallvec::SmallVec;

use super::choose_instructions::EMULATE;
use super::node_maker::NodeMaker;
use crate::codegen::target::Target;
use crate::ir::constraint::Constraint;
use crate::ir::diagnostic::{Diagnostic, Kind};
use crate::ir::kernel::{Constraints, Locations};
use crate::ir::layout::{MatrixShape, Mma, MmaType};
use crate::ir::node::*;
use crate::ir::nodes::{self, Bug, NodeBundle};
use crate::ir::types::{AddressSpace, DType};
use crate::ir::walk::{self, NodeList};
use crate::passes::facts::{Geometry, Settings};
use crate::passes::{PassResult, kernel_entity};

/// In which dtypes factors are multiplied with their scales.
const DTYPES: [DType; 3] = [DType::Bf16, DType::F16, DType::F32];

/// Which factors chips convert and multiply with their scales in one step: those whose instructions take a
/// pair, and any scale.
const CONVERTED: [DType; 3] = [DType::F4E2M1, DType::F8E4M3Fn, DType::F8E5M2];

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
    let mut staged = WidenedTiles { buffers: NodeList::new(), room: target.max_lds_per_workgroup };
    for region in walk::regions(world, root) {
        let mut body = Vec::new();
        for node in walk::body(world, region) {
            if let Op::ScaledMma(choice) = nodes::op(world, node)? {
                let origin = nodes::node(world, node)?.origin.0;
                let locations = nodes::fact::<Locations>(world, root, "a kernel without locations")?;
                judge(target, emulated).map_err(|fault| fault.at(locations.get(origin)))?;
                if let Some(dtype) = emulated {
                    let product = ScaledProduct { root, node, choice, dtype };
                    product.emulate(world, &mut staged, &mut body)?;
                }
            }
            body.push(node);
        }
        walk::set_body(world, region, &body);
    }
    nodes::fact_mut::<Body>(world, root, "a kernel without body")?.0.splice(0..0, staged.buffers);
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

/// LDS buffers of widened tiles, and the bytes of LDS that are left.
struct WidenedTiles {
    buffers: NodeList,
    room: u32,
}

impl WidenedTiles {
    /// Takes room for the tiles of values of one dtype, if there is enough.
    fn takes(&mut self, geometry: &Geometry, values: [&Dims; 2], dtype: DType) -> bool {
        let tile = |dims: &Dims| {
            let extents = geometry.workgroup_tile(dims)?;
            extents.iter().try_fold(dtype.bytes(), |all, &extent| all.checked_mul(extent))
        };
        let bytes = values.into_iter().try_fold(0u32, |all, dims| all.checked_add(tile(dims)?));
        let left = bytes.and_then(|bytes| self.room.checked_sub(bytes));
        self.room = left.unwrap_or(self.room);
        left.is_some()
    }
}

/// A product with scales, and the dtype in which its factors are multiplied with them.
struct ScaledProduct {
    root: Entity,
    node: Entity,
    choice: MmaChoice,
    dtype: DType,
}

impl ScaledProduct {
    /// Makes it an ordinary product.
    fn emulate(self, world: &mut World, staged: &mut WidenedTiles, body: &mut Vec<Entity>) -> PassResult {
        let ScaledProduct { root, node, choice, dtype } = self;
        let seen = nodes::node(world, node)?;
        let (operands, origin) = (seen.operands.0.clone(), *seen.origin);
        let &[lhs, rhs, acc, lhs_scale, rhs_scale] = operands.as_slice() else {
            return Err(Bug::new("a product with scales that lacks some").into());
        };
        let dims_of = |factor| Ok::<_, Bug>(nodes::node(world, factor)?.ty.dims.clone());
        let dims = [dims_of(lhs)?, dims_of(rhs)?];
        let sums = dims_of(acc)?;
        let options = &nodes::fact::<Settings>(world, root, "a kernel without options")?.0;
        let has_conversions = options.target().has_scaled_conversions();
        let geometry = nodes::fact::<Geometry>(world, root, "a kernel without geometry")?;
        let through_lds = staged.takes(geometry, [&dims[0], &dims[1]], dtype);
        let mut factors: SmallVec<[Entity; 3]> = SmallVec::new();
        for ([factor, scale], dims) in [[lhs, lhs_scale], [rhs, rhs_scale]].into_iter().zip(dims) {
            let along = dims.iter().copied().find(|dim| !sums.contains(dim));
            let own = nodes::node(world, factor)?.ty.dtype;
            let at_once = has_conversions && own.is_some_and(|dtype| CONVERTED.contains(&dtype));
            let mut maker = NodeMaker { world, root, dims, origin, values: &[], new: NodeList::new() };
            let mut product = match at_once {
                true => {
                    let decoding = Decoding { form: CodeForm::Elements, along };
                    maker.made(Op::Decode(decoding), &[factor, scale], dtype)
                }
                false => multiplied(&mut maker, [factor, scale], dtype),
            };
            if through_lds {
                product = stage(&mut maker, product, dtype, staged);
            }
            factors.push(product);
            body.extend(maker.new);
            if through_lds {
                for value in [factor, scale] {
                    read_straight(world, value)?;
                }
            }
        }
        // An instruction that takes scales does not take these factors, and one of its shape does.
        let geometry = nodes::fact::<Geometry>(world, root, "a kernel without geometry")?;
        let edge = match (choice, geometry.mma) {
            (MmaChoice::Explicit(mma), _) | (MmaChoice::Kernel, Some(MmaType::Instruction(mma))) => {
                Some(mma.m())
            }
            (MmaChoice::Shape(_) | MmaChoice::Kernel, _) => None,
        };
        let shape = MatrixShape::ALL.into_iter().find(|shape| edge == Some(shape.edge()));
        let choice = shape.map_or(choice, MmaChoice::Shape);
        factors.push(acc);
        world.entity_mut(node).insert((Op::Mma(choice), Operands(factors.into_iter().collect())));
        Ok(())
    }
}

/// A value times its scales. In f32 products are exact, and rounded once.
fn multiplied(maker: &mut NodeMaker, [value, scale]: [Entity; 2], dtype: DType) -> Entity {
    // Repeated as they are read: what has been computed would go through LDS for that.
    let repeated = maker.made(Op::Broadcast, &[scale], DType::F8E8M0);
    let [value, scale] = [value, repeated].map(|value| maker.converted(Conversion::Cast, value, DType::F32));
    let product = maker.binary(BinaryOp::Mul, value, scale, DType::F32);
    if dtype == DType::F32 { product } else { maker.converted(Conversion::Cast, product, dtype) }
}

/// The read of a value from an LDS buffer of its own, to which it is written.
fn stage(maker: &mut NodeMaker, value: Entity, dtype: DType, staged: &mut WidenedTiles) -> Entity {
    let ty = ValueType { dims: maker.dims.clone(), dtype: Some(dtype) };
    let buffer = NodeBundle { ty, ..NodeBundle::effect(Op::Allocate, maker.origin) };
    let buffer = buffer.spawn(maker.world, Space(AddressSpace::Shared));
    staged.buffers.push(buffer);
    maker.spawn(Op::Write, &[value, buffer], ValueType::unknown());
    maker.made(Op::Read, &[buffer], dtype)
}

/// Has the memory that a value is read from read without a way through LDS.
fn read_straight(world: &mut World, value: Entity) -> PassResult {
    let read = nodes::node(world, value)?;
    if *read.op != Op::Read {
        return Ok(());
    }
    let memory = read.memory()?;
    if nodes::op(world, memory)? == Op::Memory {
        nodes::fact_mut::<Space>(world, memory, "a memory without space")?.0 = AddressSpace::Global;
    }
    Ok(())
}
