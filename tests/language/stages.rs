//! Kernels after every pass: their text reads back as the same kernel, and a compilation that goes on from it
//! makes the same object.

use bevy_ecs::component::Mutable;
use bevy_ecs::prelude::{Component, Entity, World};
use groundswell::author::{Predicate, ReductionOp};
use groundswell::compile::PIPELINE;
use groundswell::compile::Verify;
use groundswell::compile::compile_uncached;
use groundswell::internals::expr::Expr;
use groundswell::internals::facts::{Bounds, Expansion, Geometry, LdsBuffer, LogicalBody};
use groundswell::internals::layout::{Dim, Layout, Source};
use groundswell::internals::node::{Body, Op, Operands, Placement, Trip, ValueType};
use groundswell::internals::walk;
use groundswell::internals::with_workspace;
use groundswell::internals::{KernelResults, run_compared};
use groundswell::kernels::{Form, Gemm as Product, ScaleOrder, Waves, block_float_gemm};
use groundswell::options::{GlobalToShared, Schedule};
use groundswell::prelude::*;
use groundswell::text::Detail;
use groundswell_testing::kernels::{Case, Extent, Gemm, PLAIN, all, gemm};
use groundswell_testing::schedules::ALL as SCHEDULES;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

/// The kernel's text after a pass.
fn text_after(kernel: &Kernel, options: &Options, pass: &str) -> Result<String, Diagnostic> {
    with_workspace(|workspace| {
        workspace.load(kernel, options);
        workspace.run(Some(pass), Verify::Off, &mut Vec::new())?;
        Ok(workspace.text(Detail::Stage))
    })
}

/// Checks a kernel after every pass. What cannot be compiled is not looked at.
fn check(name: &str, kernel: &Kernel, options: &Options, every: usize) {
    let Ok(whole) = compile_uncached(kernel, options, Verify::Off) else { return };
    // Which passes are looked at depends on the kernel, so that all of them are with some.
    for pass in PIPELINE.iter().skip(name.len() % every).step_by(every) {
        let what = format!("{name} after {}", pass.name);
        let text = text_after(kernel, options, pass.name).unwrap_or_else(|fault| panic!("{what}: {fault}"));
        let again = match Kernel::parse(&text, "the printed text") {
            Ok(again) => again,
            Err(faults) => {
                panic!("{what}:\n{text}\n{}", faults.into_iter().map(|f| f.to_string()).collect::<String>())
            }
        };
        assert_eq!(again.stage(), Some(pass.name), "{what}");
        let twice = again.text(Detail::Stage);
        assert!(twice == text, "{what}:\n{text}\nreads as\n{twice}");
        let resumed = compile_uncached(&again, options, Verify::Off);
        let resumed = resumed.unwrap_or_else(|fault| panic!("{what}: {fault}\n{text}"));
        assert!(resumed.code() == whole.code(), "{what}: other code\n{text}");
        assert!(resumed.object() == whole.object(), "{what}: another object");
        let (one, other) = (resumed.report(), whole.report());
        assert_eq!(one.lds_accesses, other.lds_accesses, "{what}");
        assert_eq!(
            (one.schedule_applied, &one.schedule_why),
            (other.schedule_applied, &other.schedule_why),
            "{what}"
        );
        // Facts are printed without the author's places, too.
        let full = again.text(Detail::Full);
        let read =
            Kernel::parse(&full, "the printed text").unwrap_or_else(|faults| panic!("{what}: {faults:?}"));
        assert!(read.text(Detail::Full) == full, "{what}");
    }
}

#[test]
fn kernels_of_many_forms_read_back_after_every_pass() {
    for (at, Case { name, kernel, options }) in all().into_iter().enumerate() {
        check(&name, &kernel, &options.schedule(SCHEDULES[at % SCHEDULES.len()].clone()), 4);
    }
}

#[test]
fn scheduled_loops_read_back_after_every_pass() {
    let dynamic = Gemm { sizes: [Extent::Dynamic, Extent::Dynamic, Extent::Dynamic], ..PLAIN };
    let ragged = Gemm { sizes: [Extent::Static(100), Extent::Static(72), Extent::Static(200)], ..PLAIN };
    let waves = Gemm { block: [128, 128, 64], waves: [2, 4], sizes: [Extent::Static(256); 3], ..PLAIN };
    for (name, form) in [("plain", PLAIN), ("dynamic", dynamic), ("ragged", ragged), ("waves", waves)] {
        let Case { kernel, options, .. } = gemm(name, &form);
        for schedule in SCHEDULES {
            let options = options.clone().schedule(schedule.clone());
            check(&format!("{name} {schedule:?}"), &kernel, &options, 1);
            check(
                &format!("{name} {schedule:?}, loaded to LDS"),
                &kernel,
                &options.global_to_shared(GlobalToShared::Fitting),
                1,
            );
        }
    }
}

/// gfx950 has reads of LDS that turn the tiles of both factors.
#[test]
fn tiles_that_reads_turn_read_back_after_every_pass() {
    let kernel = Product::any_shape().form(Form::AtB).kernel().unwrap();
    let sizes = [("M", 100), ("N", 72), ("K", 200), ("BLOCK_M", 64), ("BLOCK_N", 64), ("BLOCK_K", 32)];
    let options = sizes.iter().fold(Options::new(Target::GFX950), |o, &(name, size)| o.set(name, size));
    assert!(text_after(&kernel, &options, "expand").unwrap().contains("!transposing(M*4)"));
    for schedule in SCHEDULES {
        for loads in [GlobalToShared::Off, GlobalToShared::Fitting] {
            let options = options.clone().schedule(schedule.clone()).global_to_shared(loads);
            let name = format!("turned {schedule:?} {loads:?}");
            check(&name, &kernel, &options, 1);
            compare(&name, &kernel, &options);
        }
    }
}

#[test]
fn sizes_stand_in_the_text() {
    let Case { kernel, options, .. } = gemm("plain", &PLAIN);
    let text = text_after(&kernel, &options, "expand").unwrap();
    assert!(text.starts_with("kernel gemm after expand {"), "{text}");
    let unknown = text.replacen("after expand", "after expnad", 1);
    let kernel = Kernel::parse(&unknown, "k.gsw").unwrap();
    let fault = compile_uncached(&kernel, &options, Verify::Off).expect_err("there is no such pass");
    assert!(fault.to_string().contains("`expnad`"), "{fault}");
}

/// Sizes for dimensions that are open until launch.
fn open(_: Symbol) -> Option<i64> {
    Some(72)
}

/// Runs all passes of a kernel and compares what it means after each.
fn compare(name: &str, kernel: &Kernel, options: &Options) {
    if compile_uncached(kernel, options, Verify::Off).is_err() {
        return;
    }
    let meaning =
        KernelResults::of(kernel, options, &open, 1).unwrap_or_else(|fault| panic!("{name}: {fault}"));
    let result = with_workspace(|workspace| {
        workspace.load(kernel, options);
        run_compared(workspace, &meaning, None, &mut |_, _, _| {})
            .map_err(|fault| format!("{fault}\n{}", workspace.text(Detail::Full)))
    });
    result.unwrap_or_else(|fault| panic!("{name}: {fault}"));
}

#[test]
fn every_pass_keeps_what_scheduled_loops_mean() {
    let ragged = Gemm {
        block: [32, 32, 32],
        sizes: [Extent::Static(50), Extent::Static(31), Extent::Static(150)],
        ..PLAIN
    };
    let dynamic = Gemm { sizes: [Extent::Static(32), Extent::Dynamic, Extent::Dynamic], ..ragged.clone() };
    for (name, form) in [("ragged", ragged), ("dynamic", dynamic)] {
        let Case { kernel, options, .. } = gemm(name, &form);
        for schedule in SCHEDULES {
            let options = options.clone().schedule(schedule.clone());
            compare(&format!("{name} {schedule:?}"), &kernel, &options);
        }
    }
    let whole = Gemm {
        block: [64, 64, 32],
        waves: [2, 4],
        sizes: [Extent::Static(64), Extent::Static(64), Extent::Static(128)],
        ..PLAIN
    };
    let Case { kernel, options, .. } = gemm("whole", &whole);
    compare("ping-pong", &kernel, &options.clone().schedule(Schedule::PingPong));
    let options = options.schedule(Schedule::Prefetch).global_to_shared(GlobalToShared::Fitting);
    compare("loaded to LDS", &kernel, &options);
    let deep = Gemm { block: [64, 64, 64], waves: [2, 2], ..whole };
    let Case { kernel, options, .. } = gemm("deep", &deep);
    for loads in [GlobalToShared::Off, GlobalToShared::Fitting] {
        let options = options.clone().schedule(Schedule::Interleaved).global_to_shared(loads);
        compare("interleaved", &kernel, &options);
        check("interleaved", &kernel, &options, 1);
    }
}

/// A mistake of a pass: its name, and what it does to the kernel.
struct Planted {
    pass: &'static str,
    what: &'static str,
    /// False if there was nothing to do it to.
    plant: fn(&mut World, Entity) -> bool,
}

/// Nodes that a test accepts, in program order, and logical ones before them.
fn find(world: &World, root: Entity, test: impl Fn(&Op) -> bool) -> Vec<Entity> {
    let logical = world.get::<LogicalBody>(root).map(|logical| walk::nodes_of_list(world, &logical.0));
    let all = logical.into_iter().flatten().chain(walk::nodes(world, root));
    all.filter(|node| world.get::<Op>(*node).is_some_and(&test)).collect()
}

/// Changes a component of the first of `nodes` that has one.
fn change<C: Component<Mutability = Mutable>>(
    world: &mut World,
    nodes: &[Entity],
    change: impl Fn(&mut C) -> bool,
) -> bool {
    nodes.iter().any(|&node| world.get_mut::<C>(node).is_some_and(|mut component| change(&mut component)))
}

/// Exchanges the strides of two digits of a layout's source, or doubles the only one.
fn disturb(placement: &mut Placement, source: Source) -> bool {
    let mut modes = placement.0.modes().to_vec();
    let at: Vec<usize> = (0..modes.len())
        .filter(|&at| modes[at].source == source && modes[at].dim.is_some() && modes[at].extent > 1)
        .collect();
    match at[..] {
        [] => return false,
        [one] => modes[one].stride = 0,
        [one, .., other] => {
            (modes[one].stride, modes[other].stride) = (modes[other].stride, modes[one].stride)
        }
    }
    Layout::new(modes).map(|layout| placement.0 = layout).is_ok()
}

fn is_read(op: &Op) -> bool {
    *op == Op::Read
}

fn is_write(op: &Op) -> bool {
    *op == Op::Write
}

fn is_loop(op: &Op) -> bool {
    matches!(op, Op::Iterate(_))
}

fn is_mma(op: &Op) -> bool {
    matches!(op, Op::Mma(_))
}

/// Takes the first of some nodes out of the region that holds it.
fn take_out(world: &mut World, root: Entity, nodes: &[Entity]) -> bool {
    nodes.iter().any(|&node| {
        let Some(region) = walk::region_of(world, root, node) else { return false };
        change::<Body>(world, &[region], |body| {
            body.0.retain(|&other| other != node);
            true
        })
    })
}

/// Accesses of LDS.
fn of_lds(world: &World, nodes: Vec<Entity>) -> Vec<Entity> {
    let is_lds = |node: &Entity| {
        let memory = world.get::<Operands>(*node).and_then(|operands| operands.0.last().copied());
        memory.and_then(|memory| world.get::<Op>(memory)) == Some(&Op::Allocate)
    };
    nodes.into_iter().filter(is_lds).collect()
}

#[rustfmt::skip]
const PLANTED: &[Planted] = &[
    Planted { pass: "bind_symbols", what: "a size is one too small", plant: |world, root| {
        change::<Geometry>(world, &[root], |g| g.dims[Dim(0)].static_size.as_mut().map(|size| *size -= 1).is_some())
    } },
    Planted { pass: "bind_symbols", what: "a workgroup too few", plant: |world, root| {
        change::<Geometry>(world, &[root], |g| { g.grid[0] = Expr::ONE; true })
    } },
    Planted { pass: "infer_types", what: "a product has the dims of its factor", plant: |world, root| {
        let (mma, read) = (find(world, root, is_mma), find(world, root, is_read));
        let ty = world.get::<ValueType>(read[0]).cloned().unwrap();
        change::<ValueType>(world, &mma, |own| { *own = ty.clone(); true })
    } },
    Planted { pass: "multiply_scales", what: "a scale is added", plant: |world, root| {
        let scaled = find(world, root, |op| *op == Op::Binary(BinaryOp::Mul));
        change::<Op>(world, &scaled[..1], |op| { *op = Op::Binary(BinaryOp::Add); true })
    } },
    Planted { pass: "choose_instructions", what: "a product forgets what it adds to", plant: |world, root| {
        let (mma, zero) = (find(world, root, is_mma), find(world, root, |op| matches!(op, Op::Register(_)))[0]);
        change::<Operands>(world, &mma, |operands| { operands.0[2] = zero; true })
    } },
    Planted { pass: "type_logs", what: "the sum is logged and not its part", plant: |world, root| {
        let (writes, sum) = (find(world, root, is_write), find(world, root, |op| matches!(op, Op::IterArg(_)))[0]);
        change::<Operands>(world, &writes, |operands| { operands.0[0] = sum; true })
    } },
    Planted { pass: "repeat_blocks", what: "the blocks of another memory are repeated", plant: |world, root| {
        let (memories, reads) = (find(world, root, |op| *op == Op::Memory), find(world, root, is_read));
        let [_, scales, biases, ..] = memories[..] else { return false };
        reads.iter().filter(|&&read| change::<Operands>(world, &[read], |operands| {
            let is_scale = operands.0[..] == [scales];
            if is_scale { operands.0[0] = biases; }
            is_scale
        })).count() > 0
    } },
    Planted { pass: "pack_small_floats", what: "each element takes the first half of its byte", plant: |world, root| {
        let shifts = find(world, root, |op| *op == Op::Binary(BinaryOp::ShiftRight));
        let &[shift, ..] = &shifts[..] else { return false };
        change::<Op>(world, &[shift], |op| { *op = Op::Binary(BinaryOp::Or); true })
    } },
    Planted { pass: "sort_rows", what: "an exchange keeps the smaller one twice", plant: |world, root| {
        let exchanges = find(world, root, |op| matches!(op, Op::Reduce(reduction) if reduction.op == ReductionOp::Max));
        change::<Op>(world, &exchanges, |op| {
            let Op::Reduce(reduction) = op else { return false };
            reduction.op = ReductionOp::Min;
            true
        })
    } },
    Planted { pass: "stage_values", what: "the wrong value is written", plant: |world, root| {
        let (read, writes) = (find(world, root, is_read)[0], of_lds(world, find(world, root, is_write)));
        change::<Operands>(world, &writes, |operands| { operands.0[0] = read; true })
    } },
    Planted { pass: "hoist_invariants", what: "a read leaves its loop", plant: |world, root| {
        let (reads, loops) = (find(world, root, is_read), find(world, root, is_loop));
        let read = reads[0];
        take_out(world, root, &[read]) && change::<Body>(world, &[root], |body| {
            let at = body.0.iter().position(|node| *node == loops[0]).unwrap();
            body.0.insert(at, read);
            true
        })
    } },
    Planted { pass: "merge_common", what: "two values become one that are not the same", plant: |world, root| {
        let binary = find(world, root, |op| matches!(op, Op::Binary(_)));
        change::<Operands>(world, &binary, |operands| { operands.0[1] = operands.0[0]; true })
    } },
    Planted { pass: "remove_dead", what: "the write is dead", plant: |world, root| {
        let writes = find(world, root, is_write);
        take_out(world, root, &writes)
    } },
    Planted { pass: "assign_layouts", what: "lanes of a factor in another order", plant: |world, root| {
        let reads = find(world, root, is_read);
        change::<Placement>(world, &reads, |placement| disturb(placement, Source::Lane))
    } },
    Planted { pass: "assign_layouts", what: "two waves store the same rows", plant: |world, root| {
        let writes = find(world, root, is_write);
        change::<Placement>(world, &writes, |placement| disturb(placement, Source::Wave))
    } },
    Planted { pass: "find_in_place", what: "what is asked of the accesses is done to them", plant: |world, root| {
        let writes = find(world, root, is_write);
        take_out(world, root, &writes)
    } },
    Planted { pass: "carry_parts", what: "lanes are joined otherwise", plant: |world, root| {
        let joins = find(world, root, |op| matches!(op, Op::Reduce(reduction) if reduction.parts.is_none()));
        change::<Op>(world, &joins, |op| {
            let Op::Reduce(reduction) = op else { return false };
            reduction.op = ReductionOp::Min;
            true
        })
    } },
    Planted { pass: "split_reductions", what: "waves fold their parts otherwise", plant: |world, root| {
        let parts = find(world, root, |op| matches!(op, Op::Reduce(reduction) if reduction.parts.is_some()));
        change::<Op>(world, &parts, |op| {
            let Op::Reduce(reduction) = op else { return false };
            reduction.op = ReductionOp::Min;
            true
        })
    } },
    Planted { pass: "fold_places", what: "the wrong value is selected", plant: |world, root| {
        let binary = find(world, root, |op| matches!(op, Op::Binary(_)));
        change::<Operands>(world, &binary, |operands| { operands.0[1] = operands.0[0]; true })
    } },
    Planted { pass: "divide_masked_loops", what: "the tiles without masks are not visited", plant: |world, root| {
        let loops = find(world, root, is_loop);
        change::<Trip>(world, &loops[..1], |trip| { trip.start = trip.end; true })
    } },
    Planted { pass: "find_seldom_masks", what: "a mask shows what it hid", plant: |world, root| {
        let comparisons = find(world, root, |op| matches!(op, Op::Compare(_)));
        change::<Op>(world, &comparisons, |op| { *op = Op::Compare(Predicate::Gt); true })
    } },
    Planted { pass: "narrow_broadcasts", what: "maxima are minima", plant: |world, root| {
        let maxima = find(world, root, |op| *op == Op::Binary(BinaryOp::Max));
        change::<Op>(world, &maxima, |op| { *op = Op::Binary(BinaryOp::Min); true })
    } },
    Planted { pass: "scale_maxima", what: "a scale keeps its sign", plant: |world, root| {
        let magnitudes = find(world, root, |op| *op == Op::Unary(UnaryOp::Abs));
        change::<Op>(world, &magnitudes, |op| { *op = Op::Unary(UnaryOp::Neg); true })
    } },
    Planted { pass: "contract_products", what: "a factor twice", plant: |world, root| {
        let binary = find(world, root, |op| matches!(op, Op::Binary(_)));
        change::<Operands>(world, &binary, |operands| { operands.0[0] = operands.0[1]; true })
    } },
    Planted { pass: "find_padded_factors", what: "a product adds to nothing", plant: |world, root| {
        let constants = find(world, root, |op| matches!(op, Op::Register(_)));
        change::<Op>(world, &constants, |op| { *op = Op::Register(2.0.into()); true })
    } },
    Planted { pass: "find_unit_factors", what: "a product adds to something", plant: |world, root| {
        let constants = find(world, root, |op| matches!(op, Op::Register(_)));
        change::<Op>(world, &constants, |op| { *op = Op::Register(3.0.into()); true })
    } },
    Planted { pass: "find_plain_roundings", what: "a sum begins with something", plant: |world, root| {
        let constants = find(world, root, |op| matches!(op, Op::Register(_)));
        change::<Op>(world, &constants, |op| { *op = Op::Register(5.0.into()); true })
    } },
    Planted { pass: "mask_folds", what: "padding counts", plant: |world, root| {
        let masks = find(world, root, |op| matches!(op, Op::Compare(_)));
        change::<Op>(world, &masks, |op| { *op = Op::Compare(Predicate::Le); true })
    } },
    Planted { pass: "promote_to_lds", what: "a tile is never written to LDS", plant: |world, root| {
        let writes = of_lds(world, find(world, root, is_write));
        take_out(world, root, &writes)
    } },
    Planted { pass: "distribute_loads", what: "lanes load what others load too", plant: |world, root| {
        let reads = find(world, root, is_read);
        let writes = of_lds(world, find(world, root, is_write));
        change::<Placement>(world, &reads, |placement| disturb(placement, Source::Lane))
            && change::<Placement>(world, &writes, |placement| disturb(placement, Source::Register))
    } },
    Planted { pass: "peel_remainders", what: "the loop ends an iteration early", plant: |world, root| {
        let loops = find(world, root, is_loop);
        let end = loops.iter().filter_map(|&node| world.get::<Trip>(node)).next().map(|trip| trip.start).unwrap();
        change::<Trip>(world, &loops, |trip| { trip.end = end; true })
    } },
    Planted { pass: "peel_remainders", what: "the rest begins at the first tile", plant: |world, root| {
        let loops = find(world, root, is_loop);
        change::<Trip>(world, &loops[1..], |trip| { trip.start = Expr::ZERO; true })
    } },
    Planted { pass: "mark_bounds", what: "nothing is masked", plant: |world, root| {
        let reads = find(world, root, is_read);
        reads.iter().rev().any(|&read| change::<Bounds>(world, &[read], |bounds| {
            let any = !bounds.masks.is_empty();
            bounds.masks.clear();
            any
        }))
    } },
    Planted { pass: "mark_bounds", what: "a write is said to stay inside", plant: |world, root| {
        let writes = find(world, root, is_write);
        change::<Bounds>(world, &writes, |bounds| { bounds.leaves.clear(); bounds.masks.clear(); true })
    } },
    Planted { pass: "load_to_lds", what: "a tile comes from the other matrix's place", plant: |world, root| {
        let loads = find(world, root, |op| *op == Op::GlobalToShared);
        change::<Placement>(world, &loads, |placement| disturb(placement, Source::Lane))
    } },
    Planted { pass: "arrange_lds", what: "rows overlap", plant: |world, root| {
        let buffers = find(world, root, |op| *op == Op::Allocate);
        change::<LdsBuffer>(world, &buffers, |buffer| { buffer.pitch /= 2; true })
    } },
    Planted { pass: "expand", what: "a replica twice", plant: |world, root| {
        let reads = of_lds(world, find(world, root, is_read));
        reads.iter().any(|&read| change::<Expansion>(world, &[read], |expansion| {
            let moved = expansion.replica > 0;
            expansion.replica = 0;
            moved
        }))
    } },
    Planted { pass: "expand", what: "the same slice of k again", plant: |world, root| {
        let mma = find(world, root, is_mma);
        mma.iter().any(|&mma| change::<Expansion>(world, &[mma], |expansion| {
            let moved = expansion.slice > 0;
            expansion.slice = 0;
            moved
        }))
    } },
    Planted { pass: "expand", what: "a product takes another one's factor", plant: |world, root| {
        let mma = find(world, root, is_mma);
        let pieces: Vec<Entity> = mma.into_iter().filter(|&node| world.get::<Expansion>(node).is_some()).collect();
        let lhs: Vec<Entity> = pieces.iter().map(|&node| world.get::<Operands>(node).unwrap().0[0]).collect();
        let other = lhs.iter().copied().find(|&node| node != lhs[0]).unwrap();
        change::<Operands>(world, &pieces, |operands| { operands.0[0] = other; true })
    } },
    Planted { pass: "schedule_loops", what: "a load belongs to another iteration", plant: |world, root| {
        let reads = find(world, root, is_read);
        reads.iter().rev().any(|&read| change::<Expansion>(world, &[read], |expansion| {
            let ahead = expansion.iteration.ahead > 0;
            expansion.iteration.ahead -= u32::from(ahead);
            ahead
        }))
    } },
    Planted { pass: "schedule_loops", what: "the steady state runs once more", plant: |world, root| {
        let loops = find(world, root, is_loop);
        let whole = loops.iter().filter_map(|&node| world.get::<Trip>(node)).map(|trip| trip.end).next().unwrap();
        let steady: Vec<Entity> = loops.into_iter().filter(|&node| world.get::<Expansion>(node).is_some()).collect();
        change::<Trip>(world, &steady, |trip| { trip.end = whole; true })
    } },
    Planted { pass: "allocate_lds", what: "two tiles at one place", plant: |world, root| {
        let buffers = find(world, root, |op| *op == Op::Allocate);
        let first = world.get::<LdsBuffer>(buffers[0]).unwrap().offset;
        change::<LdsBuffer>(world, &buffers[1..], |buffer| { buffer.offset = first; true })
    } },
    Planted { pass: "place_barriers", what: "the first barrier is missing", plant: |world, root| {
        let barriers = find(world, root, |op| *op == Op::Barrier);
        take_out(world, root, &barriers)
    } },
    Planted { pass: "place_barriers", what: "the last barrier is missing", plant: |world, root| {
        let mut barriers = find(world, root, |op| *op == Op::Barrier);
        barriers.reverse();
        take_out(world, root, &barriers)
    } },
];

/// Sums of rows, of which two waves have parts, and which lanes do not cover exactly.
fn sums_of_rows() -> (Kernel, Options) {
    let [m, n] = symbols(["M", "N"]);
    let kernel = Kernel::trace("sums", |w| {
        w.distribute([workgroup(m, 2, 0), wave(n, 128)]);
        let a = w.memory("a", [m, n], Global, F32);
        let b = w.memory("b", [m], Global, F32);
        w.write(w.read(a).sum(n), b);
    });
    (kernel.unwrap(), Options::new(Target::GFX942).set(m, 4).set(n, 200))
}

/// Sums of columns, whose rows a loop takes and lanes share.
fn sums_of_columns() -> (Kernel, Options) {
    let [m, n] = symbols(["M", "N"]);
    let kernel = Kernel::trace("sums", |w| {
        w.distribute([tile(m, 32), workgroup(n, 16, 0)]);
        let a = w.memory("a", [m, n], Global, F32);
        let b = w.memory("b", [n], Global, F32);
        let zero = w.register([n], F32, 0.0);
        let [sum] = w.iterate(m, [zero], |w, [sum]| [sum + w.read(a).sum(m)]);
        w.write(sum, b);
    });
    (kernel.unwrap(), Options::new(Target::GFX942).set(m, 50).set(n, 20))
}

/// Powers of scaled products less the largest of their column, under fast math.
fn softmax_of_products() -> (Kernel, Options) {
    let [m, n, k] = symbols(["M", "N", "K"]);
    let kernel = Kernel::trace("softmax", |w| {
        w.distribute([tile(n, 16), workgroup(m, 16, 0)]);
        let scale = w.scalar("scale", F32);
        let rows = w.read(w.memory("rows", [m, k], Global, F16));
        let columns = w.memory("columns", [n, k], Global, F16);
        let result = w.memory("result", [m], Global, F32);
        let zero = w.register([m], F32, 0.0);
        let [sum] = w.iterate(n, [zero], |w, [sum]| {
            let products = w.mma(w.read(columns), rows, w.register([n, m], F32, 0.0)) * scale;
            [sum + (products - products.max(n)).exp2().sum(n)]
        });
        w.write(sum, result);
    });
    (kernel.unwrap(), Options::new(Target::GFX942).set(m, 16).set(n, 32).set(k, 16).fast_math())
}

/// Exponentials of rows whose elements are read from back to front.
fn reversed_rows() -> (Kernel, Options) {
    let [m, n] = symbols(["M", "N"]);
    let kernel = Kernel::trace("reversed", |w| {
        w.distribute([workgroup(m, 2, 0)]);
        let [a, b] = ["a", "b"].map(|name| w.memory(name, [m, n], Global, F32));
        let last = Coordinate::from(w.size(n)) - 1;
        w.write(w.read(a).exp().at((m, last - n), [m, n]), b);
    });
    (kernel.unwrap(), Options::new(Target::GFX942).set(m, 4).set(n, 20))
}

/// Rows in order.
fn sorted_rows() -> (Kernel, Options) {
    let [m, n] = symbols(["M", "N"]);
    let kernel = Kernel::trace("sorted", |w| {
        w.distribute([workgroup(m, 2, 0)]);
        let [a, b] = ["a", "b"].map(|name| w.memory(name, [m, n], Global, F32));
        w.write(w.read(a).sort(n), b);
    });
    (kernel.unwrap(), Options::new(Target::GFX942).set(m, 4).set(n, 13))
}

/// Rows with a scale and a bias for each block of them.
fn scaled_rows() -> (Kernel, Options) {
    let [m, k] = symbols(["M", "K"]);
    let kernel = Kernel::trace("scaled", |w| {
        w.distribute([workgroup(m, 2, 0)]);
        let x = w.memory("x", [m, k], Global, F32);
        let [scales, biases] = ["scales", "biases"].map(|name| w.memory(name, [m, k.scaled(4)], Global, F32));
        let y = w.memory("y", [m, k], Global, F32);
        w.write(w.read(x) * w.read(scales) + w.read(biases), y);
    });
    (kernel.unwrap(), Options::new(Target::GFX942).set(m, 4).set(k, 18))
}

/// A product of block floats for a chip that has none.
fn product_of_blocks() -> (Kernel, Options) {
    let kernel =
        block_float_gemm([F8E4M3Fn; 2], ScaleOrder::Rows, MatrixShape::M16x16.into(), Waves::new(1, 1))
            .unwrap();
    let sizes = [("M", 16), ("N", 16), ("K", 200), ("BLOCK_M", 16), ("BLOCK_N", 16), ("BLOCK_K", 128)];
    let options = sizes.into_iter().fold(Options::new(Target::GFX942), |o, (name, size)| o.set(name, size));
    (kernel, options)
}

/// Rows of 4-bit floats, which are halved.
fn packed_rows() -> (Kernel, Options) {
    let [m, k] = symbols(["M", "K"]);
    let kernel = Kernel::trace("packed", |w| {
        w.distribute([workgroup(m, 2, 0)]);
        let [x, y] = ["x", "y"].map(|name| w.memory(name, [m, k], Global, F4E2M1));
        w.write(w.read(x) * 0.5, y);
    });
    (kernel.unwrap(), Options::new(Target::GFX942).set(m, 4).set(k, 17))
}

/// Causal attention of more keys than a tile, over two workgroups.
fn causal_attention() -> (Kernel, Options) {
    let text = include_str!("../files/divide_masked_loops/causal.gsw");
    let written = text.split("; ---").next().unwrap_or(text);
    let kernel = Kernel::parse(written, "causal.gsw").unwrap();
    (kernel, Options::new(Target::GFX942).set("M", 128).set("N", 128).set("D", 16))
}

/// Sums of rows that a loop adds up, and logs.
fn logged_sums() -> (Kernel, Options) {
    let [m, n] = symbols(["M", "N"]);
    let kernel = Kernel::trace("logged", |w| {
        w.distribute([workgroup(m, 2, 0), tile(n, 16)]);
        let a = w.memory("a", [m, n], Global, F32);
        let b = w.memory("b", [m], Global, F32);
        let zero = w.register([m], F32, 0.0);
        let [sum] = w.iterate(n, [zero], |w, [sum]| {
            let part = w.read(a).sum(n);
            w.debug_log_iterations(part, "parts", [(n, 3)]);
            [sum + part]
        });
        w.write(sum, b);
    });
    (kernel.unwrap(), Options::new(Target::GFX942).set(m, 4).set(n, 40))
}

#[test]
fn planted_faults_are_named_after_their_pass() {
    let form = Gemm {
        block: [64, 32, 32],
        waves: [2, 2],
        sizes: [Extent::Static(100), Extent::Static(31), Extent::Static(108)],
        epilogue: |_, x, _| (x + 1.0) * (x - 0.5),
        ..PLAIN
    };
    let Case { kernel, options, .. } = gemm("planted", &form);
    let options = options.schedule(Schedule::Prefetch);
    let meaning = KernelResults::of(&kernel, &options, &open, 1).unwrap();
    let whole = Gemm { sizes: [Extent::Static(64), Extent::Static(32), Extent::Static(128)], ..form };
    let direct = gemm("direct", &whole);
    let direct_options =
        direct.options.schedule(Schedule::Prefetch).global_to_shared(GlobalToShared::Fitting);
    let direct_meaning = KernelResults::of(&direct.kernel, &direct_options, &open, 1).unwrap();
    let (sums, sums_options) = sums_of_rows();
    let sums_meaning = KernelResults::of(&sums, &sums_options, &open, 1).unwrap();
    let (carried, carried_options) = sums_of_columns();
    let carried_meaning = KernelResults::of(&carried, &carried_options, &open, 1).unwrap();
    let (softmax, softmax_options) = softmax_of_products();
    let softmax_meaning = KernelResults::of(&softmax, &softmax_options, &open, 1).unwrap();
    let (logged, logged_options) = logged_sums();
    let logged_meaning = KernelResults::of(&logged, &logged_options, &open, 1).unwrap();
    let (reversed, reversed_options) = reversed_rows();
    let reversed_meaning = KernelResults::of(&reversed, &reversed_options, &open, 1).unwrap();
    let (sorted, sorted_options) = sorted_rows();
    let sorted_meaning = KernelResults::of(&sorted, &sorted_options, &open, 1).unwrap();
    let (packed, packed_options) = packed_rows();
    let packed_meaning = KernelResults::of(&packed, &packed_options, &open, 1).unwrap();
    let (scaled, scaled_options) = scaled_rows();
    let scaled_meaning = KernelResults::of(&scaled, &scaled_options, &open, 1).unwrap();
    let (blocks, blocks_options) = product_of_blocks();
    let blocks_meaning = KernelResults::of(&blocks, &blocks_options, &open, 1).unwrap();
    let (causal, causal_options) = causal_attention();
    let causal_meaning = KernelResults::of(&causal, &causal_options, &open, 1).unwrap();
    let mut wrong = Vec::new();
    for Planted { pass, what, plant } in PLANTED {
        let (kernel, options, meaning) = match *pass {
            "load_to_lds" => (&direct.kernel, &direct_options, &direct_meaning),
            "type_logs" => (&logged, &logged_options, &logged_meaning),
            "pack_small_floats" => (&packed, &packed_options, &packed_meaning),
            "multiply_scales" => (&blocks, &blocks_options, &blocks_meaning),
            "repeat_blocks" => (&scaled, &scaled_options, &scaled_meaning),
            "sort_rows" => (&sorted, &sorted_options, &sorted_meaning),
            "stage_values" => (&reversed, &reversed_options, &reversed_meaning),
            "scale_maxima" => (&softmax, &softmax_options, &softmax_meaning),
            "divide_masked_loops" | "find_seldom_masks" | "narrow_broadcasts" => {
                (&causal, &causal_options, &causal_meaning)
            }
            "carry_parts" => (&carried, &carried_options, &carried_meaning),
            "split_reductions" | "mask_folds" => (&sums, &sums_options, &sums_meaning),
            _ => (&kernel, &options, &meaning),
        };
        let mut planted = false;
        let result = with_workspace(|workspace| {
            workspace.load(kernel, options);
            run_compared(workspace, meaning, None, &mut |after, world, root| {
                if after == *pass {
                    planted = plant(world, root);
                }
            })
        });
        let named = result.err().map(|fault| fault.message);
        let expected = format!("pass {pass} changed what the kernel means");
        if !planted || !named.as_ref().is_some_and(|named| named.starts_with(&expected)) {
            wrong.push(format!("{pass}: {what} (planted: {planted}): {named:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(PLANTED.len() >= 20);
    for pass in PIPELINE {
        assert!(PLANTED.iter().any(|planted| planted.pass == pass.name), "no fault of {}", pass.name);
    }
}

/// Numbers of a text that tests replace, and what by.
const NUMBERS: [&str; 6] = ["0", "1", "3", "17", "4096", "4294967295"];

/// A text with one mistake: a number is another, or an attribute or a line is missing.
fn mistaken(text: &str, random: &mut StdRng) -> String {
    let digits: Vec<(usize, usize)> = {
        let is_digit = |at: &usize| text.as_bytes()[*at].is_ascii_digit();
        let starts =
            (1..text.len()).filter(|at| is_digit(at) && !text.as_bytes()[at - 1].is_ascii_alphanumeric());
        starts.map(|at| (at, (at..text.len()).take_while(is_digit).count())).collect()
    };
    let attributes: Vec<usize> = text.match_indices('!').map(|found| found.0).collect();
    match random.random_range(0..8) {
        0 => {
            let lines: Vec<&str> = text.lines().collect();
            let gone = random.random_range(0..lines.len());
            let left = lines.iter().enumerate().filter(|(at, _)| *at != gone);
            left.map(|(_, line)| format!("{line}\n")).collect()
        }
        1 | 2 if !attributes.is_empty() => {
            let start = attributes[random.random_range(0..attributes.len())];
            let end = text[start..].find([')', '\n']).map_or(text.len(), |end| start + end + 1);
            format!("{}\n{}", &text[..start], &text[end..])
        }
        _ => {
            let (at, count) = digits[random.random_range(0..digits.len())];
            let number = NUMBERS[random.random_range(0..NUMBERS.len())];
            format!("{}{number}{}", &text[..at], &text[at + count..])
        }
    }
}

#[test]
fn texts_that_say_nonsense_are_refused_or_compiled() {
    let small = Gemm {
        block: [32, 32, 32],
        sizes: [Extent::Static(50), Extent::Dynamic, Extent::Static(150)],
        ..PLAIN
    };
    let Case { kernel, options, .. } = gemm("small", &small);
    let options = options.schedule(Schedule::Prefetch);
    let mut random = StdRng::seed_from_u64(13);
    let mut read = 0;
    for pass in PIPELINE {
        let text = text_after(&kernel, &options, pass.name).unwrap();
        for _ in 0..20 {
            let text = mistaken(&text, &mut random);
            let result = std::panic::catch_unwind(|| {
                Kernel::parse(&text, "mistaken")
                    .map(|kernel| compile_uncached(&kernel, &options, Verify::Off).is_ok())
            });
            match result {
                Ok(Ok(_)) => read += 1,
                Ok(Err(_)) => {}
                Err(_) => panic!("after {}:\n{text}", pass.name),
            }
        }
    }
    assert!(read > 100, "{read} texts were read: the mistakes are too large to be interesting");
}
