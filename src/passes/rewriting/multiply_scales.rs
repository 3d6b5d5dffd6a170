//! Products of block floats for chips without instructions for them, on request: each factor is converted and
//! multiplied with its scales, and an ordinary product takes it.
//!
//! Every wave needs what others need, too. So the workgroup widens each tile once, a part of it in each lane,
//! and puts it into LDS, where the product reads it; factors and scales themselves go to registers. Where LDS
//! has no room for widened tiles, each wave widens what its own products take.
//!
//! Without the request a chip has to have the instruction, and nothing is done here.
//!
//! Where an author multiplies narrow floats with their scales, both cast to a wide dtype first, a chip that
//! does all of that in one step gets the same node as from such a product: factors of other dtypes than those
//! of `scaled_mma` are beside them then, as bf16 is.

use bevy_ecs::prelude::*;
use smallvec::SmallVec;

use super::choose_instructions::EMULATE;
use super::node_maker::NodeMaker;
use crate::codegen::target::Target;
use crate::ir::constraint::Constraint;
use crate::ir::diagnostic::{Diagnostic, Kind};
use crate::ir::kernel::{Constraints, DimTable};
use crate::ir::layout::{MatrixShape, Mma, MmaType};
use crate::ir::node::*;
use crate::ir::nodes::Bug;
use crate::ir::types::{AddressSpace, DType};
use crate::passes::PassResult;
use crate::passes::facts::{Geometry, Settings};
use crate::passes::kernel_editor::KernelEditor;

/// In which dtypes factors are multiplied with their scales.
const DTYPES: [DType; 3] = [DType::Bf16, DType::F16, DType::F32];

/// Which factors chips convert and multiply with their scales in one step: those whose instructions take a
/// pair, and any scale.
const CONVERTED: [DType; 3] = [DType::F4E2M1, DType::F8E4M3Fn, DType::F8E5M2];

/// The pass itself; see the module. It makes nodes in front of others, so it takes the whole world.
pub(crate) fn multiply_scales(world: &mut World) -> PassResult {
    let mut editor = KernelEditor::new(world)?;
    let options = &editor.kernel::<Settings>()?.0;
    let target = options.target();
    let constraints = &editor.kernel::<Constraints>()?.0;
    let mut written = constraints.iter().filter_map(|(constraint, _)| {
        if let Constraint::Emulate(dtype) = constraint { Some(*dtype) } else { None }
    });
    let emulated = match options.emulated() {
        None if has_scales(target) => None,
        None => written.next(),
        asked => asked,
    };
    let mut room = TileRoom(target.max_lds_per_workgroup);
    let at_once = target.has_scaled_conversions();
    editor.rewrite(|editor, node| {
        if at_once && editor.op(node)? == Op::Binary(BinaryOp::Mul) {
            return multiply_at_once(editor, node);
        }
        let Op::ScaledMma(choice) = editor.op(node)? else { return Ok(()) };
        judge(target, emulated).map_err(|fault| fault.at(editor.location(node)))?;
        match emulated {
            Some(dtype) => ScaledProduct { node, choice, dtype }.emulate(editor, &mut room),
            None => Ok(()),
        }
    })
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

/// The bytes of LDS that widened tiles have left.
struct TileRoom(u32);

impl TileRoom {
    /// Takes room for the tiles of values of one dtype, if there is enough.
    fn takes(&mut self, geometry: &Geometry, values: [&Dims; 2], dtype: DType) -> bool {
        let tile = |dims: &Dims| {
            let extents = geometry.workgroup_tile(dims)?;
            extents.iter().try_fold(dtype.bytes(), |all, &extent| all.checked_mul(extent))
        };
        let bytes = values.into_iter().try_fold(0u32, |all, dims| all.checked_add(tile(dims)?));
        let left = bytes.and_then(|bytes| self.0.checked_sub(bytes));
        self.0 = left.unwrap_or(self.0);
        left.is_some()
    }
}

/// A product with scales, and the dtype in which its factors are multiplied with them.
struct ScaledProduct {
    node: Entity,
    choice: MmaChoice,
    dtype: DType,
}

impl ScaledProduct {
    /// Makes it an ordinary product.
    fn emulate(self, editor: &mut KernelEditor<'_>, room: &mut TileRoom) -> PassResult {
        let ScaledProduct { node, choice, dtype } = self;
        let operands = editor.node(node)?.operands.0.clone();
        let &[lhs, rhs, acc, lhs_scale, rhs_scale] = operands.as_slice() else {
            return Err(Bug::new("a product with scales that lacks some").into());
        };
        let (dims, sums) = ([editor.dims(lhs)?, editor.dims(rhs)?], editor.dims(acc)?);
        let has_conversions = editor.kernel::<Settings>()?.0.target().has_scaled_conversions();
        let through_lds = room.takes(editor.kernel()?, [&dims[0], &dims[1]], dtype);
        let mut factors: SmallVec<[Entity; 3]> = SmallVec::new();
        for ([factor, scale], dims) in [[lhs, lhs_scale], [rhs, rhs_scale]].into_iter().zip(dims) {
            let along = dims.iter().copied().find(|dim| !sums.contains(dim));
            let own = editor.node(factor)?.ty.dtype;
            let at_once = has_conversions && own.is_some_and(|dtype| CONVERTED.contains(&dtype));
            let mut maker = editor.maker(&dims);
            let mut product = match at_once {
                true => {
                    let decoding = Decoding { form: CodeForm::Elements, along };
                    maker.made(Op::Decode(decoding), &[factor, scale], dtype)
                }
                false => multiplied(&mut maker, [factor, scale], dtype),
            };
            if through_lds {
                product = stage(&mut maker, product, dtype);
                for value in [factor, scale] {
                    read_straight(editor, value)?;
                }
            }
            factors.push(product);
        }
        // An instruction that takes scales does not take these factors, and one of its shape does.
        let edge = match (choice, editor.kernel::<Geometry>()?.mma) {
            (MmaChoice::Explicit(mma), _) | (MmaChoice::Kernel, Some(MmaType::Instruction(mma))) => {
                Some(mma.m())
            }
            (MmaChoice::Shape(_) | MmaChoice::Kernel, _) => None,
        };
        let shape = MatrixShape::ALL.into_iter().find(|shape| edge == Some(shape.edge()));
        let choice = shape.map_or(choice, MmaChoice::Shape);
        factors.push(acc);
        editor.turn_into(node, Op::Mma(choice), &factors);
        Ok(())
    }
}

/// Makes a product of narrow floats and their scales, both cast, one step. Its exponents have to be those of
/// the scales: a dtype with fewer, as f16 is, would have rounded a scale before.
fn multiply_at_once(editor: &mut KernelEditor<'_>, node: Entity) -> PassResult {
    let product = editor.node(node)?;
    let (dtype, dims) = (product.ty.dtype, product.ty.dims.clone());
    let &[one, other] = product.operands.0.as_slice() else { return Ok(()) };
    if !matches!(dtype, Some(DType::F32 | DType::Bf16)) {
        return Ok(());
    }
    for [factor, scale] in [[one, other], [other, one]] {
        let (Some(factor), Some(scale)) = (cast_of(editor, factor)?, cast_of(editor, scale)?) else {
            continue;
        };
        let [factor_type, scale_type] = [editor.node(factor)?.ty.clone(), editor.node(scale)?.ty.clone()];
        let is_narrow = factor_type.dtype.is_some_and(|dtype| CONVERTED.contains(&dtype));
        if !is_narrow || factor_type.dims != dims || scale_type.dtype != Some(DType::F8E8M0) {
            continue;
        }
        let table = editor.kernel::<DimTable>()?;
        let blocks = scale_type.dims.iter().filter_map(|&dim| table.scaled_from(dim));
        let Some((along, _)) = { blocks }.find(|(base, _)| dims.contains(base)) else { continue };
        let decoding = Decoding { form: CodeForm::Elements, along: Some(along) };
        editor.turn_into(node, Op::Decode(decoding), &[factor, scale]);
        return Ok(());
    }
    Ok(())
}

/// What a value is a cast of, if it is one.
fn cast_of(editor: &KernelEditor<'_>, value: Entity) -> Result<Option<Entity>, Bug> {
    let node = editor.node(value)?;
    if *node.op == Op::Convert(Conversion::Cast) { Ok(Some(node.operand(0)?)) } else { Ok(None) }
}

/// A value times its scales. In f32 products are exact, and rounded once.
fn multiplied(maker: &mut NodeMaker<'_, '_>, [value, scale]: [Entity; 2], dtype: DType) -> Entity {
    // Repeated as they are read: what has been computed would go through LDS for that.
    let repeated = maker.made(Op::Broadcast, &[scale], DType::F8E8M0);
    let [value, scale] = [value, repeated].map(|value| maker.converted(Conversion::Cast, value, DType::F32));
    let product = maker.binary(BinaryOp::Mul, value, scale, DType::F32);
    if dtype == DType::F32 { product } else { maker.converted(Conversion::Cast, product, dtype) }
}

/// The read of a value from an LDS buffer of its own, to which it is written.
fn stage(maker: &mut NodeMaker<'_, '_>, value: Entity, dtype: DType) -> Entity {
    let buffer = maker.editor.add_buffer(ValueType { dims: maker.dims.clone(), dtype: Some(dtype) });
    maker.spawn(Op::Write, &[value, buffer], ValueType::unknown());
    maker.made(Op::Read, &[buffer], dtype)
}

/// Has the memory that a value is read from read without a way through LDS.
fn read_straight(editor: &mut KernelEditor<'_>, value: Entity) -> PassResult {
    let read = editor.node(value)?;
    if *read.op != Op::Read {
        return Ok(());
    }
    let memory = read.memory()?;
    if editor.op(memory)? == Op::Memory {
        editor.attach(memory, Space(AddressSpace::Global));
    }
    Ok(())
}
