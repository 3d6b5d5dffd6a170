//! Matrix instructions of products for which the kernel says a shape: once the chip, the types of the factors
//! and the tiles are known, each product gets the instruction of the chip that takes the most of its k, of
//! those that divide the k of a wave. What the author wrote out stays as it is.
//!
//! `mma 16x16` (`MmaType::Shape`) is what ready kernels say, so that they are the same for all chips;
//! nothing after this pass knows of shapes.

use bevy_ecs::prelude::*;

use crate::codegen::target::Target;
use crate::ir::diagnostic::{Diagnostic, Kind};
use crate::ir::kernel::{KernelName, Locations};
use crate::ir::layout::{MatrixShape, Mma, MmaType};
use crate::ir::node::*;
use crate::ir::nodes::Bug;
use crate::ir::type_rules::contraction::MmaDims;
use crate::ir::types::DType;
use crate::ir::walk::{self, NodeList};
use crate::passes::PassResult;
use crate::passes::facts::{Geometry, Settings};

/// The pass itself; see the module.
pub(crate) fn choose_instructions(
    kernel: Single<(&Body, &Locations, &Geometry, &Settings), With<KernelName>>,
    bodies: Query<&Body>,
    types: Query<&ValueType>,
    mut nodes: Query<(&mut Op, &Operands, &Origin)>,
) -> PassResult {
    let (body, locations, geometry, settings) = *kernel;
    let mut order = NodeList::new();
    walk::preorder(body, &|node| bodies.get(node).ok(), &mut order);
    for &node in &order {
        let (mut op, operands, origin) = nodes.get_mut(node)?;
        let Some(choice) = op.product() else { continue };
        let shape = match (choice, geometry.mma) {
            (MmaChoice::Shape(shape), _) | (MmaChoice::Kernel, Some(MmaType::Shape(shape))) => shape,
            (MmaChoice::Explicit(_) | MmaChoice::Kernel, _) => continue,
        };
        let ty = |at: usize| Ok::<_, Diagnostic>(types.get(operands.at(at)?)?);
        let [lhs, rhs, acc] = [ty(0)?, ty(1)?, ty(2)?];
        let MmaDims { k: [k, _], .. } = MmaDims::of(lhs, rhs, acc).map_err(Diagnostic::bug)?;
        let inputs = lhs.dtype.zip(rhs.dtype).ok_or(Bug::new("a product of factors without dtypes"))?;
        let scales = if op.takes_scales() { Scales::OfBlocks } else { Scales::None };
        let extent = geometry.dim(k.dim).wave_extent();
        let chosen = instruction(settings.0.target(), (shape, scales), inputs.into(), extent);
        let chosen = chosen.map_err(|fault| fault.at(locations.get(origin.0)))?;
        *op = op.with_instruction(MmaChoice::Explicit(chosen));
    }
    Ok(())
}

/// How a chip without scales multiplies block floats.
pub(super) const EMULATE: &str = "let it multiply the factors with their scales and take a product of bf16 (or \
                                  f16, or f32): `emulate bf16` in the kernel, or as an option";

/// Whether a product's factors have scales.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum Scales {
    None,
    /// One for each block of k.
    OfBlocks,
}

/// The instruction of a chip that takes the most of k, and divides the `extent` of it that a wave has at a
/// time. If none does, it is the one that takes the least, which the author is told of later.
fn instruction(
    target: Target,
    (shape, scales): (MatrixShape, Scales),
    inputs: [DType; 2],
    extent: Option<u32>,
) -> Result<Mma, Diagnostic> {
    let of = move |target: Target, mma| match scales {
        Scales::None => target.matrix_instruction(mma),
        Scales::OfBlocks => target.scaled_matrix_instruction(mma),
    };
    let has = |target: Target| shape.instructions(inputs).filter(move |&mma| of(target, mma).is_some());
    let divides = |mma: &Mma| extent.is_some_and(|extent| extent.is_multiple_of(mma.k()));
    let deepest = has(target).filter(divides).max_by_key(|mma| mma.k());
    deepest.or_else(|| has(target).min_by_key(|mma| mma.k())).ok_or_else(|| {
        let [left, right] = inputs;
        let factors = if left == right { left.to_string() } else { format!("{left} and {right}") };
        let with = match scales {
            Scales::None => "",
            Scales::OfBlocks => " with scales",
        };
        let text = format!("{target} has no matrix instruction of {shape} that multiplies {factors}{with}");
        let others: Vec<&str> = Target::ALL
            .iter()
            .filter(|other| has(**other).next().is_some())
            .map(|other| other.name)
            .collect();
        let others = match others.as_slice() {
            [] => String::new(),
            others => format!("compile for {}, or ", others.join(" or ")),
        };
        Diagnostic::new(Kind::Unsupported, text).help(match scales {
            Scales::None => format!("{others}cast to a dtype that the chip multiplies"),
            Scales::OfBlocks => format!("{others}{EMULATE}"),
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_deepest_instruction_that_divides_k_is_chosen() {
        use DType::{F16, F32, F64, I8};
        let name = |target: Target, shape, dtype, extent| {
            instruction(target, (shape, Scales::None), [dtype; 2], extent).map(Mma::name).unwrap_or("none")
        };
        let (small, large) = (MatrixShape::M16x16, MatrixShape::M32x32);
        assert_eq!(name(Target::GFX942, small, F16, Some(64)), "F32_16x16x16_F16");
        assert_eq!(name(Target::GFX950, small, F16, Some(64)), "F32_16x16x32_F16");
        assert_eq!(name(Target::GFX950, small, F16, Some(48)), "F32_16x16x16_F16");
        assert_eq!(name(Target::GFX950, large, F16, Some(8)), "F32_32x32x8_F16");
        assert_eq!(name(Target::GFX950, large, I8, Some(96)), "I32_32x32x32_I8");
        assert_eq!(name(Target::GFX90A, small, I8, Some(64)), "I32_16x16x16_I8");
        assert_eq!(name(Target::GFX942, small, F64, Some(4)), "F64_16x16x4_F64");
        // Neither divides: the shallowest one is named in the message.
        assert_eq!(name(Target::GFX950, small, F16, Some(24)), "F32_16x16x16_F16");
        assert_eq!(name(Target::GFX950, small, F32, None), "F32_16x16x4_F32");
        assert_eq!(name(Target::GFX942, large, F64, Some(4)), "none");
        assert_eq!(name(Target::GFX90A, small, DType::F8E5M2, Some(64)), "none");
    }
}
