//! How the work of a compilation grows with the operations of a kernel, counted and not timed.

use std::fmt::Write as _;

use bevy_ecs::system::RunSystemOnce;

use super::compile::compile_uncached;
use crate::codegen::lower::lower;
use crate::codegen::lower::with_workspace;
use crate::codegen::machine::{MachineBody, joining_steps, live_steps};
use crate::codegen::target::Target;
use crate::ir::diagnostic::Kind;
use crate::ir::expr::Symbol;
use crate::ir::kernel::{Kernel, MAX_OPERATIONS};
use crate::ir::node::*;
use crate::ir::types::{AddressSpace, DType};
use crate::ir::walk;
use crate::passes::loops::expand::expand;
use crate::passes::options::Options;
use crate::passes::rewriting::simplify::merge_counted;
use crate::passes::workspace::Verify;

const HEAD: &str = "kernel k {
  workgroup M, 64, 0
  workgroup N, 64, 1
  wave M, 32
  wave N, 32
  a = memory [M, N] global f32
  c = memory [M, N] global f32
";

/// A chain of additions, the first of them in line 9.
fn chain(length: usize) -> String {
    let mut text = format!("{HEAD}  %v0 = read a\n");
    for at in 0..length {
        writeln!(text, "  %v{} = add %v{at}, %v0", at + 1).unwrap();
    }
    text + &format!("  write %v{length}, c\n}}\n")
}

/// Values that all use one other, and a sum of them.
fn star(points: usize) -> String {
    let mut text = format!("{HEAD}  %x = read a\n  %v0 = add %x, %x\n  %s0 = mul %x, %x\n");
    for at in 1..points {
        let before = at - 1;
        writeln!(text, "  %v{at} = add %v{before}, %x\n  %s{at} = mul %s{before}, %v{at}").unwrap();
    }
    text + &format!("  write %s{}, c\n}}\n", points - 1)
}

/// The same operation, distinguished by its tag alone.
fn tagged(count: usize) -> String {
    let mut text = HEAD.to_owned();
    for at in 0..count {
        writeln!(text, "  %v{at} = read a @t{at}\n  write %v{at}, c").unwrap();
    }
    text + "}\n"
}

/// Loops one after the other that do the same.
fn loops(count: usize) -> String {
    let mut text = HEAD.replace("  c =", "  tile K, 16\n  mma f32_16x16x16_f16\n  x = memory [M, K] shared f16\n  y = memory [N, K] shared f16\n  c =");
    text += "  %r0 = register [M, N] f32 0.0\n";
    for at in 0..count {
        writeln!(
            text,
            "  %r{} = iterate K (%p{at} = %r{at}) {{\n    %x{at} = read x\n    %y{at} = read y\n    %m{at} = mma %x{at}, %y{at}, %p{at}\n    yield %m{at}\n  }}",
            at + 1
        )
        .unwrap();
    }
    text + &format!("  write %r{count}, c\n}}\n")
}

fn options(k: i64) -> Options {
    let sizes = [("M", 512), ("N", 512), ("K", k)];
    let set = |options: Options, (name, size): (&str, i64)| options.set(Symbol::new(name), size);
    sizes.into_iter().fold(Options::new(Target::GFX942), set)
}

#[test]
fn merging_compares_a_node_with_its_likes_alone() {
    for (name, text) in
        [("chain", chain(8_000)), ("star", star(4_000)), ("tags", tagged(4_000)), ("loops", loops(1_000))]
    {
        let kernel = Kernel::parse(&text, "k.gsw").unwrap();
        with_workspace(|workspace| {
            workspace.load(&kernel, &options(512));
            workspace.run(Some("hoist_invariants"), Verify::Off, &mut Vec::new()).unwrap();
            let nodes = walk::nodes(&workspace.world, workspace.root).len();
            let compared = workspace.world.run_system_once(merge_counted).unwrap().unwrap();
            // Two values with one hash are rare, and no two are equal here.
            assert!(compared <= nodes / 20, "{name}: {compared} comparisons of {nodes} nodes");
        });
    }
}

#[test]
fn equal_values_are_still_merged() {
    let text = format!(
        "{HEAD}  %x = read a\n  %y = read a\n  %p = add %x, %y\n  %q = add %y, %x\n  %r = mul %p, %q\n  write %r, c\n}}\n"
    );
    let kernel = Kernel::parse(&text, "k.gsw").unwrap();
    with_workspace(|workspace| {
        workspace.load(&kernel, &options(512));
        workspace.run(Some("merge_common"), Verify::Off, &mut Vec::new()).unwrap();
        let world = &workspace.world;
        let count = |op: Op| {
            walk::nodes(world, workspace.root)
                .iter()
                .filter(|node| world.get::<Op>(**node) == Some(&op))
                .count()
        };
        assert_eq!((count(Op::Read), count(Op::Binary(BinaryOp::Add))), (1, 1));
    });
}

#[test]
fn too_many_operations_are_refused_where_the_first_of_them_stands() {
    // Two memories and a read come before the first addition.
    let line = 9 + MAX_OPERATIONS as u32 - 3;
    let faults = Kernel::parse(&chain(100_000), "k.gsw").err().unwrap();
    let [fault] = &faults[..] else { panic!("{faults:?}") };
    assert_eq!(fault.kind, Kind::Limit);
    assert_eq!(fault.message, "the kernel has more than 65536 operations");
    assert_eq!(fault.location.as_ref().map(|at| at.line), Some(line));
    // Text after it is not read.
    let text = chain(70_000).replace("  write", "  nonsense");
    let again = Kernel::parse(&text, "k.gsw").err().unwrap();
    let [again] = &again[..] else { panic!("{again:?}") };
    assert_eq!((again.kind, &again.message), (Kind::Limit, &fault.message));
    assert!(Kernel::parse(&chain(MAX_OPERATIONS - 4), "k.gsw").is_ok());
    assert!(Kernel::parse(&chain(MAX_OPERATIONS - 3), "k.gsw").is_err());
}

#[test]
fn tracing_too_many_operations_is_the_only_mistake_that_is_reported() {
    let [m, n] = ["M", "N"].map(Symbol::new);
    let traced = Kernel::trace("k", |w| {
        let memory =
            |w: &crate::ir::builder::Tracer, name| w.memory(name, [m, n], AddressSpace::Global, DType::F32);
        let (a, c) = (memory(w, "a"), memory(w, "c"));
        let first = w.read(a);
        let mut sum = first;
        for _ in 0..100_000 {
            sum += first;
        }
        let after = memory(w, "after");
        let [sum] = w.iterate(m, [sum], |_, [sum]| [sum]);
        w.write(sum, c);
        w.write(sum, after);
    });
    let fault = traced.err().unwrap();
    assert_eq!((fault.kind, &fault.message[..]), (Kind::Limit, "the kernel has more than 65536 operations"));
    assert!(fault.location.is_some_and(|at| at.file.ends_with("growth.rs")));
}

#[test]
fn expansion_is_judged_before_it_begins() {
    // One wave, 64 replicas of each value.
    let text = chain(5_000).replace("M, 64,", "M, 256,").replace("N, 64,", "N, 256,");
    let text = text.replace("  wave M, 32\n  wave N, 32\n", "");
    let kernel = Kernel::parse(&text, "k.gsw").unwrap();
    with_workspace(|workspace| {
        workspace.load(&kernel, &options(512));
        workspace.run(Some("arrange_lds"), Verify::Off, &mut Vec::new()).unwrap();
        let before = workspace.world.entities().len();
        let fault = expand(&mut workspace.world).unwrap_err();
        assert_eq!(
            (fault.kind, &fault.message[..]),
            (Kind::Limit, "the tiles of one wave take more than 65536 operations")
        );
        assert_eq!(workspace.world.entities().len(), before, "nothing has been made");
    });
}

#[test]
fn remainders_of_deeply_nested_loops_are_refused_and_not_copied_without_end() {
    let depth = 24;
    let mut text =
        "kernel k {\n  workgroup M, 64, 0\n  workgroup N, 64, 1\n  mma f32_16x16x16_f16\n".to_owned();
    for at in 0..depth {
        writeln!(
            text,
            "  tile K{at}, 16\n  x{at} = memory [M, K{at}] global f16\n  y{at} = memory [N, K{at}] global f16"
        )
        .unwrap();
    }
    text += "  c = memory [M, N] global f32\n  %r = register [M, N] f32 0.0\n";
    let mut before = "%r".to_owned();
    for at in 0..depth {
        writeln!(text, "  %s{at} = iterate K{at} (%p{at} = {before}) {{\n  %x{at} = read x{at}\n  %y{at} = read y{at}\n  %q{at} = mma %x{at}, %y{at}, %p{at}").unwrap();
        before = format!("%q{at}");
    }
    for at in (0..depth).rev() {
        writeln!(text, "  yield {before}\n  }}").unwrap();
        before = format!("%s{at}");
    }
    text += &format!("  write {before}, c\n}}\n");
    let kernel = Kernel::parse(&text, "k.gsw").unwrap();
    let set = |options: Options, at: usize| options.set(Symbol::new(&format!("K{at}")), 100);
    let fault = compile_uncached(&kernel, &(0..depth).fold(options(1), set), Verify::Off).unwrap_err();
    assert_eq!(fault.kind, Kind::Limit, "{fault}");
    assert!(fault.message.starts_with("the remainders of this kernel's loops take more than"), "{fault}");
}

#[test]
fn what_is_live_between_loops_is_found_in_steps_that_grow_with_the_code() {
    for (count, k) in [(100, 512), (400, 512), (400, 500)] {
        let kernel = Kernel::parse(&loops(count), "k.gsw").unwrap();
        with_workspace(|workspace| {
            workspace.load(&kernel, &options(k));
            workspace.run(None, Verify::Off, &mut Vec::new()).unwrap();
            let mut body = MachineBody::default();
            let lowered = lower(workspace, &mut body).unwrap();
            let steps = live_steps(&body, &lowered.fixed);
            assert!(steps <= 4 * body.insts.len(), "{steps} steps for {} instructions", body.insts.len());
        });
    }
}

#[test]
fn registers_of_many_loops_are_joined_in_steps_that_grow_with_the_code() {
    for text in [loops(100), loops(400), loops(800), chain(4_000), star(2_000)] {
        let kernel = Kernel::parse(&text, "k.gsw").unwrap();
        with_workspace(|workspace| {
            workspace.load(&kernel, &options(512));
            workspace.run(None, Verify::Off, &mut Vec::new()).unwrap();
            let mut body = MachineBody::default();
            let lowered = lower(workspace, &mut body).unwrap();
            let code = body.insts.len();
            let steps = joining_steps(&mut body, &lowered.fixed);
            assert!(steps <= 2 * code, "{steps} steps for {code} instructions");
        });
    }
}

/// The machine code of a kernel before allocation.
fn lowered(text: &str, k: i64) -> MachineBody {
    let kernel = Kernel::parse(text, "k.gsw").unwrap();
    with_workspace(|workspace| {
        workspace.load(&kernel, &options(k));
        workspace.run(None, Verify::Off, &mut Vec::new()).unwrap();
        let mut body = MachineBody::default();
        lower(workspace, &mut body).unwrap();
        body
    })
}

#[test]
fn elements_are_computed_where_they_stay() {
    let length = 1_000;
    let body = lowered(&chain(length), 512);
    // A wave's tile of 32 x 32 is 16 elements per lane; the rest is addresses.
    assert!(body.insts.len() < 16 * length + 200, "{} instructions", body.insts.len());
}

#[test]
fn more_memories_than_a_wave_can_reach_are_refused_before_the_work() {
    let refused = |count: usize, used: usize| {
        let mut text = "kernel k {\n  workgroup M, 16, 0\n  workgroup N, 16, 1\n".to_owned();
        for at in 0..count {
            writeln!(text, "  m{at} = memory [M, N] global f32").unwrap();
        }
        text += "  %v = register [M, N] f32 0.0\n";
        for at in 0..used {
            writeln!(text, "  write %v, m{at}").unwrap();
        }
        let kernel = Kernel::parse(&(text + "}\n"), "k.gsw").unwrap();
        with_workspace(|workspace| {
            workspace.load(&kernel, &options(512));
            workspace.run(Some("remove_dead"), Verify::Off, &mut Vec::new()).err()
        })
    };
    // 102 SGPRs and 64 lanes of 256 VGPRs, two for each address.
    assert!(refused(9_000, 8_243).is_none());
    let fault = refused(9_000, 8_244).unwrap();
    assert_eq!(fault.kind, Kind::Limit);
    assert_eq!(fault.message, "the kernel uses 8244 memories, and a wave has registers for 8243 addresses");
    assert_eq!(fault.location.as_ref().map(|at| at.line), Some(3 + 8_244));
}
