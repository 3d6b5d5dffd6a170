//! Remainders: a loop over a dimension that its tile does not divide becomes a loop over the whole tiles,
//! followed by a copy that runs at most once for the rest. Only the copy needs masks; the steady state is the
//! same as for a shape that divides.

use bevy_ecs::prelude::*;
use smallvec::{SmallVec, smallvec};

use super::loop_pieces::LoopPieces;
use crate::ir::diagnostic::Diagnostic;
use crate::ir::expr::ExprArena;
use crate::ir::node::*;
use crate::passes::PassResult;
use crate::passes::analysis::bind_symbols::bug;
use crate::passes::facts::{Expressions, Geometry, Remainder};
use crate::passes::kernel_editor::KernelEditor;

/// The pass itself; see the module. It copies loops that it looks at again, so it takes the whole world.
pub(crate) fn peel_remainders(world: &mut World) -> PassResult {
    LoopPieces::new(KernelEditor::new(world)?).divide(&mut peel)
}

/// Gives a loop its trips, and makes the copy that takes the rest, if there may be one.
fn peel(pieces: &mut LoopPieces<'_>, node: Entity) -> Result<SmallVec<[Entity; 2]>, Diagnostic> {
    let editor = &mut pieces.editor;
    let Op::Iterate(axis) = editor.op(node)? else { return Ok(smallvec![]) };
    // A loop that an earlier pass has divided has its trips.
    if editor.get::<Trip>(node).is_some() {
        return Ok(smallvec![]);
    }
    let geometry = editor.kernel::<Geometry>()?;
    let (size, tile) = (geometry.dim(axis).size, geometry.dim(axis).tiling.unwrap_or(1));
    let (chosen, steps) = (geometry.dim(axis).iterations, geometry.dim(axis).step);
    let mut expressions = editor.kernel_mut::<Expressions>()?;
    let arena = &mut expressions.0;
    let zero = arena.int(0);
    let tile = arena.int(i64::from(tile));
    let whole = arena.floor_div(size, tile).map_err(|e| bug(&e))?;
    let total = arena.ceil_div(size, tile).map_err(|e| bug(&e))?;
    let (start, end) = chosen.unwrap_or((zero, total));
    if whole == total {
        editor.attach(node, Trip { start, end });
        return Ok(smallvec![]);
    }
    // Of one iteration nothing is gained by a second loop without masks.
    if whole == zero || arena.range(total).at_most(1) {
        editor.attach(node, (Trip { start, end }, Remainder));
        return Ok(smallvec![]);
    }
    let (mut main, mut rest) = (Trip { start, end: whole }, Trip { start: whole, end });
    if let Some((first, step)) = steps {
        // Iterations whose tiles are whole come before the one that takes the last tile.
        let split = |arena: &mut ExprArena| {
            let tiles = arena.sub(whole, first)?;
            let tiles = arena.max(tiles, zero)?;
            let step = arena.int(i64::from(step));
            let count = arena.ceil_div(tiles, step)?;
            arena.min(count, end)
        };
        let split = split(arena).map_err(|e| bug(&e))?;
        (main, rest) = (Trip { start, end: split }, Trip { start: split, end });
    } else if chosen.is_some() {
        main = Trip {
            start: arena.min(start, whole).map_err(|e| bug(&e))?,
            end: arena.min(end, whole).map_err(|e| bug(&e))?,
        };
        rest = Trip {
            start: arena.max(start, whole).map_err(|e| bug(&e))?,
            end: arena.max(end, whole).map_err(|e| bug(&e))?,
        };
    }
    editor.attach(node, main);
    let copy = pieces.copy(node)?;
    pieces.editor.attach(copy, (rest, Remainder));
    Ok(smallvec![copy])
}

#[cfg(test)]
mod tests {
    use crate::codegen::target::Target;
    use crate::ir::kernel::Kernel;
    use crate::ir::verifier::distribution;
    use crate::passes::PIPELINE;
    use crate::passes::options::{Options, Schedule};
    use crate::passes::workspace::{Verify, with_workspace};

    /// All workgroups along N store the same to `b`, in a loop over a dimension that it has.
    const STORED: &str = "kernel stored {
  workgroup M, 16, 0
  workgroup N, 64, 1
  tile K, 16
  a = memory [M, K] global f32
  b = memory [M, K] global f32
  c = memory [M, N] global f32
  iterate K () {
    %x = read a
    write %x, b
  }
}";

    #[test]
    fn a_write_divided_among_loops_stays_one_write_after_every_pass() {
        let kernel = Kernel::parse(STORED, "stored.gsw").expect("all workgroups store the same value");
        for schedule in [Schedule::None, Schedule::Prefetch] {
            let options = Options::new(Target::GFX942)
                .set("M", 32)
                .set("N", 128)
                .set("K", 40)
                .schedule(schedule.clone());
            for pass in PIPELINE {
                with_workspace(|workspace| {
                    workspace.load(&kernel, &options);
                    workspace.run(Some(pass.name), Verify::AfterEachPass, &mut Vec::new()).unwrap();
                    let faults = distribution::check(&workspace.world, workspace.root);
                    assert!(faults.is_empty(), "{} with {schedule:?}: {}", pass.name, faults[0]);
                });
            }
        }
    }
}
