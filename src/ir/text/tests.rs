//! Printing and parsing against the tracing builder: one kernel, whichever way it is written.

use bevy_ecs::prelude::{Component, Entity, World};
use proptest::prelude::*;

use super::*;
use crate::ir::builder::{Tracer, Value};
use crate::ir::constraint::{
    Constraint, assume_at_least, assume_at_most, assume_divisible, cached_order, grouped_order, iterations,
    reorder, tile, wave, workgroup, xcd_order,
};
use crate::ir::diagnostic::Diagnostic;
use crate::ir::expr::{Expr, SymExpr, Symbol, symbols};
use crate::ir::facts::{DimGeometry, Expressions, Geometry, KernelStage};
use crate::ir::kernel::{Constraints, DimTable, KernelName};
use crate::ir::layout::{Layout, MatrixShape, Mma, MmaType, Mode, Source};
use crate::ir::node::*;
use crate::ir::types::{AddressSpace, DType};

fn parse(text: &str) -> Kernel {
    Kernel::parse(text, "test.gsw").unwrap_or_else(|faults| panic!("{text}\n{}", listing(&faults)))
}

fn listing(faults: &[Diagnostic]) -> String {
    faults.iter().map(|fault| format!("{fault}\n")).collect()
}

fn faults(text: &str) -> Vec<Diagnostic> {
    Kernel::parse(text, "test.gsw").err().into_iter().flatten().collect()
}

/// The places and messages of all faults.
fn places(text: &str) -> Vec<(u32, u32, String)> {
    let place = |fault: Diagnostic| {
        let at = fault.location.expect("every fault of the parser has a place");
        (at.line, at.column, fault.message)
    };
    faults(text).into_iter().map(place).collect()
}

/// Everything about a kernel but its locations, entity by entity.
fn dump(kernel: &Kernel) -> Vec<String> {
    fn column<C: Component + std::fmt::Debug>(world: &World, node: Entity) -> String {
        world.get::<C>(node).map_or(String::new(), |c| format!(" {c:?}"))
    }
    let world = &kernel.world;
    let mut nodes: Vec<Entity> = world.iter_entities().map(|e| e.id()).collect();
    nodes.sort();
    let line = |&node: &Entity| {
        let constraints =
            world.get::<Constraints>(node).map(|c| c.0.iter().map(|c| &c.0).collect::<Vec<_>>());
        format!("{node} {constraints:?}")
            + &column::<Op>(world, node)
            + &column::<Operands>(world, node)
            + &column::<ValueType>(world, node)
            + &column::<Tag>(world, node)
            + &column::<Name>(world, node)
            + &column::<Space>(world, node)
            + &column::<Body>(world, node)
            + &column::<Yields>(world, node)
            + &column::<DimTable>(world, node)
            + &column::<KernelName>(world, node)
    };
    nodes.iter().map(line).collect()
}

fn gemm() -> Kernel {
    let [m, n, k, bm] = symbols(["M", "N", "K", "BLOCK_M"]);
    Kernel::trace("gemm", |w| {
        w.distribute([
            workgroup(m, bm, 0),
            tile(k, 32),
            wave(m, bm / 2),
            assume_divisible(k, 32),
            assume_at_least(k, 64),
        ]);
        w.mma_type(Mma::F32_16x16x16_F16);
        let a = w.memory("a", [m, k], AddressSpace::Shared, DType::F16);
        let b = w.memory("b", [n, k], AddressSpace::Shared, DType::F16);
        let c = w.memory("c", [m, n], AddressSpace::Global, DType::F32);
        let zero = w.register([m, n], DType::F32, 0.0);
        let [acc] = w.iterate(k, [zero], |w, [acc]| {
            let a = w.read(a).tag("read_a");
            let b = w.read(b).tag("read b");
            [w.mma(a, b, acc.tag("acc"))]
        });
        let scaled = acc.tag("sum") * 2.0 + 1;
        let positive = w.select(scaled.greater(0.0), scaled, -scaled);
        w.write(positive.cast(DType::F32), c);
    })
    .expect("the kernel has no mistakes")
}

const GEMM: &str = "\
kernel gemm {
  workgroup M, BLOCK_M, 0
  tile K, 32
  wave M, BLOCK_M // 2
  assume K % 32 == 0
  assume K >= 64
  mma f32_16x16x16_f16
  a = memory [M, K] shared f16
  b = memory [N, K] shared f16
  c = memory [M, N] global f32
  %0 = register [M, N] f32 0.0
  %1 @sum = iterate K (%2 @acc = %0) {
    %3 = read a @read_a
    %4 = read b @\"read b\"
    %5 = mma %3, %4, %2
    yield %5
  }
  %6 = constant 2.0
  %7 = mul %1, %6
  %8 = constant 1
  %9 = add %7, %8
  %10 = constant 0.0
  %11 = compare gt %9, %10
  %12 = neg %9
  %13 = select %11, %9, %12
  %14 = cast %13 f32
  write %14, c
}
";

#[test]
fn a_traced_kernel_prints_as_its_author_would_write_it() {
    assert_eq!(gemm().text(Detail::Source), GEMM);
    assert_eq!(gemm().to_string(), GEMM);
}

#[test]
fn identity_has_no_tags() {
    let identity = gemm().text(Detail::Identity);
    assert!(!identity.contains('@'), "{identity}");
    assert_eq!(parse(&identity).identity(), gemm().identity());
    assert_eq!(parse(GEMM).identity(), gemm().identity());
    assert_ne!(parse(&GEMM.replace("2.0", "2.5")).identity(), gemm().identity());
}

#[test]
fn parsing_builds_the_world_that_tracing_builds() {
    assert_eq!(dump(&parse(GEMM)), dump(&gemm()));
}

#[test]
fn nodes_point_to_their_lines() {
    let kernel = parse(GEMM);
    let locations = kernel.world.get::<crate::ir::kernel::Locations>(kernel.root).unwrap();
    let place =
        |node: Entity| locations.get(kernel.world.get::<Origin>(node).unwrap().0).unwrap().to_string();
    let last = *kernel.body().last().unwrap();
    assert_eq!(place(last), "test.gsw:27:3");
    assert_eq!(place(kernel.body()[0]), "test.gsw:8:3");
    let constraint = kernel.world.get::<Constraints>(kernel.root).unwrap().0[1].1;
    assert_eq!(locations.get(constraint).unwrap().to_string(), "test.gsw:3:3");
}

#[test]
fn full_detail_adds_facts_as_attributes_and_parses() {
    let mut kernel = gemm();
    let read =
        kernel.world.query::<(Entity, &Op)>().iter(&kernel.world).find(|(_, op)| **op == Op::Read).unwrap().0;
    let [m, k] = [0, 1].map(crate::ir::layout::Dim);
    let layout =
        Layout::new([Mode::new(Source::Lane, 16, m, 1), Mode::new(Source::Register, 4, k, 1)]).unwrap();
    let ty = ValueType { dims: Dims::from_slice(&[m, k]), dtype: Some(DType::F16) };
    kernel.world.entity_mut(read).insert((Placement(layout), ty));
    assert_eq!(kernel.text(Detail::Full), GEMM, "no pass has seen it");
    let symbols = kernel.world.get::<DimTable>(kernel.root).unwrap().0.clone();
    let size = Expr::ONE;
    let dims = symbols.values().map(|&symbol| DimGeometry::new(symbol, size, Some(1))).collect();
    let geometry =
        Geometry { dims, waves: [1; 3], grid: [size; 3].into_iter().collect(), ..Geometry::default() };
    let facts = (KernelStage("some_pass".into()), Expressions::default(), geometry);
    kernel.world.entity_mut(kernel.root).insert(facts);
    let full = kernel.text(Detail::Full);
    let line = "    %3 = read a @read_a !type([M, K] f16)\n      !placement(lane M*16:1, register K*4:1)\n";
    assert!(full.contains(line), "{full}");
    let again = parse(&full);
    assert_eq!((again.stage(), again.text(Detail::Source)), (Some("some_pass"), full));
}

#[test]
fn names_that_are_no_identifiers_are_quoted() {
    let odd = Symbol::new("block; \"m\"\n");
    let kernel = Kernel::trace("odd", |w| {
        w.distribute([tile(odd, odd + 1)]);
        w.memory("a", [odd], AddressSpace::Global, DType::F32);
    })
    .unwrap();
    let text = kernel.to_string();
    assert!(text.contains(r#"tile "block; \"m\"\n", "block; \"m\"\n" + 1"#), "{text}");
    assert_eq!(dump(&parse(&text)), dump(&kernel));
}

#[test]
fn a_hand_written_kernel_may_use_names_numbers_and_long_lines() {
    let text = "; a comment\n\nkernel k { tile N, 4\n a = memory [N\n]".replace("\n]", "]")
        + " global f32\n %x = read a ; here\n %y = mul 2.0,\n  %x\n %z, _ = iterate N (%i = %x, _ = %y) {\n yield %i, %i }\n write %z, a @out }";
    let expected = "\
kernel k {
  tile N, 4
  a = memory [N] global f32
  %0 = read a
  %1 = constant 2.0
  %2 = mul %1, %0
  %3, _ = iterate N (%4 = %0, %5 = %2) {
    yield %4, %4
  }
  write %3, a @out
}
";
    assert_eq!(parse(&text).to_string(), expected);
    assert_eq!(parse(expected).to_string(), expected);
}

#[test]
fn buffers_and_barriers_read_back() {
    let text = "\
kernel k {
  %0 = allocate [M, K] f16
  barrier @fence
  %1 = read %0
  %2 = mma f32_32x32x8_f16 %1, %1, %1
  write %2, %0
}
";
    assert_eq!(parse(text).to_string(), text);
}

const CONTROLS: &str = "\
kernel k {
  barrier @fence
  workgroup_barrier
  conditional_barrier ge 4 @late
  conditional_barrier lt waves / 2
  conditional_barrier ne waves / 1
  set_wave_priority 3
  scheduling_barrier
  wait_for_loads 62
  wait_for_shared 14
  iterate K () {
    set_wave_priority 0
    wait_for_loads 0
    wait_for_shared 0
  }
}
";

#[test]
fn control_operations_read_back() {
    assert_eq!(parse(CONTROLS).to_string(), CONTROLS);
    let short = CONTROLS.replace("waves / 1", "waves");
    assert_eq!(parse(&short).to_string(), CONTROLS);
}

#[test]
fn control_operations_are_traced_as_they_are_written() {
    let [k] = symbols(["K"]);
    let traced = Kernel::trace("k", |w| {
        let hardware = w.get_hardware_constraint();
        let waves = hardware.waves_per_block;
        w.shared_memory_barrier();
        w.workgroup_barrier();
        w.conditional_barrier(hardware.wave_id.greater_equal(4));
        w.conditional_barrier(hardware.wave_id.less(waves / 2));
        w.conditional_barrier(hardware.wave_id.not_equal(waves));
        w.set_wave_priority(3);
        w.scheduling_barrier();
        w.wait_for_loads(62);
        w.wait_for_shared(14);
        w.iterate(k, [], |w, []| {
            w.set_wave_priority(0);
            w.wait_for_loads(0);
            w.wait_for_shared(0);
            []
        });
    })
    .expect("the kernel has no mistakes");
    let untagged = CONTROLS.replace(" @fence", "").replace(" @late", "");
    assert_eq!(traced.to_string(), untagged);
    assert_eq!(dump(&parse(&untagged)), dump(&traced));
    let wrong = [
        Kernel::trace("k", |w| w.set_wave_priority(4)),
        Kernel::trace("k", |w| w.wait_for_loads(63)),
        Kernel::trace("k", |w| w.wait_for_shared(15)),
        Kernel::trace("k", |w| w.conditional_barrier(w.get_hardware_constraint().wave_id.less(-2))),
    ];
    let messages = wrong.map(|kernel| kernel.expect_err("the kernel has a mistake").message);
    let expected = [
        "4 is not a priority of a wave",
        "a wait cannot leave 63 loads under way",
        "a wait cannot leave 15 accesses of LDS under way",
        "no wave's number is compared with this",
    ];
    assert_eq!(messages, expected);
}

#[test]
fn numbers_of_control_operations_are_in_range() {
    let text = "\
kernel k {
  set_wave_priority 4
  set_wave_priority -1
  wait_for_loads 300
  conditional_barrier lt waves / 0
  conditional_barrier lt -1
  conditional_barrier 4
  %x = workgroup_barrier
  set_wave_prioriti 1
}
";
    let expected = [
        (2, 21, "4 is not a priority of a wave"),
        (3, 21, "-1 is not a priority of a wave"),
        (4, 18, "a wait cannot leave 300 loads under way"),
        (5, 26, "no wave's number is compared with this"),
        (6, 26, "no wave's number is compared with this"),
        (7, 23, "expected a predicate, found `4`"),
        (8, 8, "`workgroup_barrier` has no result"),
        (9, 3, "no statement starts with `set_wave_prioriti`"),
    ];
    assert_eq!(places(text), expected.map(|(line, column, text)| (line, column, text.to_owned())));
}

#[test]
fn faults_stand_at_the_words_they_are_about() {
    let text = "\
kernel k {
  a = memory [M, M] global f32
  %x = raed a
  %y = add %x, %nope
  %x = read a
  write %y
}
";
    let expected = [
        (2, 14, "dimension M occurs twice in one shape"),
        (3, 8, "there is no operation `raed`"),
        (4, 16, "`%nope` is not defined"),
        (5, 3, "`%x` is defined twice"),
        (6, 11, "expected `,`, found the end of the line"),
    ];
    assert_eq!(places(text), expected.map(|(line, column, text)| (line, column, text.to_owned())));
}

#[test]
fn faults_are_reported_up_to_a_limit() {
    let text = format!("kernel k {{\n{}}}\n", "  nonsense\n".repeat(1000));
    assert_eq!(faults(&text).len(), 20);
}

#[test]
fn hostile_depth_is_a_fault_and_not_an_overflow() {
    let kernel = |constraint: &str| format!("kernel k {{\n tile K, {constraint}\n}}\n");
    let n = 100_000;
    for deep in [
        "(".repeat(n) + "K" + &")".repeat(n),
        "-".repeat(n) + "K",
        "K + ".repeat(n) + "K",
        "min(".repeat(n) + "K" + &", K)".repeat(n),
    ] {
        assert_eq!(faults(&kernel(&deep)).len(), 1);
    }
    let loops = format!("kernel k {{\n{}", "iterate K () {\n".repeat(n));
    assert!(!faults(&loops).is_empty());
    let closed = format!("kernel k {{\n{}{}}}\n", "iterate K () {\n".repeat(n), "}\n".repeat(n));
    assert_eq!(faults(&closed)[0].message, "loops are nested more than 100 deep");
}

#[test]
fn too_many_dimensions_are_a_fault() {
    let lines: String = (0..300).map(|i| format!(" m{i} = memory [D{i}] global f32\n")).collect();
    let faults = faults(&format!("kernel k {{\n{lines}}}\n"));
    assert_eq!(faults[0].message, "a kernel has at most 256 dimensions");
    assert_eq!(faults[0].location.as_ref().unwrap().line, 258);
}

/// One step of a random kernel. Numbers choose among the existing values.
#[derive(Clone, Debug)]
enum Step {
    Constant(u64),
    Register(f64),
    Integers(i32),
    Read(u8),
    Write(u8, u8),
    Unary(u8, u8),
    Binary(u8, u8, u8),
    WithNumber(u8, u64),
    Compare(u8, u8, u8),
    Select(u8, u8, u8),
    Cast(u8, u8),
    Mma(Option<u8>, u8, u8, u8),
    Tag(u8, String),
    Loop(u8, Vec<u8>, Vec<Step>),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    use Step::*;
    let b = any::<u8>;
    let leaf = prop_oneof![
        any::<u64>().prop_map(Constant),
        any::<f64>().prop_map(Register),
        any::<i32>().prop_map(Integers),
        b().prop_map(Read),
        (b(), b()).prop_map(|(a, c)| Write(a, c)),
        (b(), b()).prop_map(|(a, c)| Unary(a, c)),
        (b(), b(), b()).prop_map(|(a, c, d)| Binary(a, c, d)),
        (b(), any::<u64>()).prop_map(|(a, x)| WithNumber(a, x)),
        (b(), b(), b()).prop_map(|(a, c, d)| Compare(a, c, d)),
        (b(), b(), b()).prop_map(|(a, c, d)| Select(a, c, d)),
        (b(), b()).prop_map(|(a, c)| Cast(a, c)),
        (any::<Option<u8>>(), b(), b(), b()).prop_map(|(m, a, c, d)| Mma(m, a, c, d)),
        (b(), ".{0,6}|[a-z_]{1,6}").prop_map(|(a, tag)| Tag(a, tag)),
    ];
    let step = leaf.prop_recursive(3, 40, 8, move |inner| {
        let body = prop::collection::vec(inner, 0..8);
        (any::<u8>(), prop::collection::vec(any::<u8>(), 0..4), body)
            .prop_map(|(a, init, body)| Loop(a, init, body))
    });
    prop::collection::vec(step, 0..12)
}

fn pick<T: Copy>(list: &[T], at: u8) -> T {
    list[at as usize % list.len()]
}

fn dtypes(at: u8) -> DType {
    pick(&DType::all().collect::<Vec<_>>(), at)
}

const DIMS: [&str; 5] = ["M", "N", "K", "a dim", "48"];

/// Traces steps over the values so far, of which there is always one.
fn trace_steps(
    w: &Tracer,
    memories: &[crate::ir::builder::MemoryRef],
    values: &mut Vec<Value>,
    steps: &[Step],
) {
    let [m, n, ..] = symbols(DIMS);
    for step in steps {
        let value = |at: &u8| pick(values, *at);
        let new = match step {
            Step::Constant(bits) => value(&0) - f64::from_bits(*bits),
            Step::Register(x) => w.register([m, n], DType::F32, *x),
            Step::Integers(x) => w.register([n], DType::I32, f64::from(*x)),
            Step::Read(a) => w.read(pick(memories, *a)),
            Step::Write(a, b) => {
                w.write(value(a), pick(memories, *b));
                continue;
            }
            Step::Unary(op, a) => match op % 6 {
                0 => -value(a),
                1 => value(a).abs(),
                2 => value(a).exp2(),
                3 => value(a).log2(),
                4 => value(a).sqrt(),
                _ => value(a).reciprocal(),
            },
            Step::Binary(op, a, b) => match op % 6 {
                0 => value(a) + value(b),
                1 => value(a) - value(b),
                2 => value(a) * value(b),
                3 => value(a) / value(b),
                4 => value(a).minimum(value(b)),
                _ => value(a).maximum(value(b)),
            },
            Step::WithNumber(a, x) => value(a) * (*x as i32),
            Step::Compare(op, a, b) => match op % 6 {
                0 => value(a).equal(value(b)),
                1 => value(a).not_equal(value(b)),
                2 => value(a).less(value(b)),
                3 => value(a).less_equal(value(b)),
                4 => value(a).greater(value(b)),
                _ => value(a).greater_equal(value(b)),
            },
            Step::Select(a, b, c) => w.select(value(a), value(b), value(c)),
            Step::Cast(a, dtype) => value(a).cast(dtypes(*dtype)),
            Step::Mma(None, a, b, c) => w.mma(value(a), value(b), value(c)),
            Step::Mma(Some(mma), a, b, c) => {
                w.mma_with(pick(&mma_types(), *mma), value(a), value(b), value(c))
            }
            Step::Tag(a, tag) => {
                value(a).tag(tag);
                continue;
            }
            Step::Loop(dim, init, body) => {
                let axis = pick(&symbols(DIMS), *dim);
                let init: Vec<Value> = init.iter().map(value).collect();
                let outer = values.clone();
                let inner = |w: &Tracer, args: &[Value]| {
                    let mut values = outer.clone();
                    values.extend(args);
                    trace_steps(w, memories, &mut values, body);
                    *values.last().expect("there is always a value")
                };
                match *init {
                    [] => {
                        w.iterate(axis, [], |w, []| {
                            inner(w, &[]);
                            []
                        });
                    }
                    [a] => values.extend(w.iterate(axis, [a], |w, [a]| [inner(w, &[a])])),
                    [a, b, ..] => values.extend(w.iterate(axis, [a, b], |w, [a, b]| [inner(w, &[a, b]), a])),
                }
                continue;
            }
        };
        values.push(new);
    }
}

fn exprs() -> impl Strategy<Value = SymExpr> {
    let leaf = prop_oneof![
        any::<i64>().prop_map(SymExpr::from),
        (-3i64..40).prop_map(SymExpr::from),
        "[A-Z_]{1,2}|min|.{0,3}".prop_map(|name| Symbol::new(&name).into()),
    ];
    leaf.prop_recursive(6, 40, 2, |inner| {
        (0..9u8, inner.clone(), inner).prop_map(|(op, a, b)| match op {
            0 => a + b,
            1 => a - b,
            2 => a * b,
            3 => a / b,
            4 => a % b,
            5 => a.min(b),
            6 => a.max(b),
            7 => a.ceil_div(b),
            _ => -a,
        })
    })
}

/// Every matrix instruction and every shape.
fn mma_types() -> Vec<MmaType> {
    Mma::all().map(MmaType::from).chain(MatrixShape::ALL.map(MmaType::from)).collect()
}

fn constraints() -> impl Strategy<Value = Constraint> {
    prop_oneof![
        (exprs(), exprs(), 0..5u32).prop_map(|(a, b, axis)| workgroup(a, b, axis)),
        (exprs(), 0..5u32).prop_map(|(a, axis)| reorder(axis, a)),
        (exprs(), exprs(), exprs()).prop_map(|(a, b, c)| iterations(a, b, c)),
        any::<u32>().prop_map(grouped_order),
        any::<u32>().prop_map(xcd_order),
        Just(cached_order()),
        (exprs(), exprs()).prop_map(|(a, b)| tile(a, b)),
        (exprs(), exprs()).prop_map(|(a, b)| wave(a, b)),
        (exprs(), 1..=u32::MAX).prop_map(|(a, by)| assume_divisible(a, by)),
        (exprs(), any::<i64>()).prop_map(|(a, least)| assume_at_least(a, least)),
        (exprs(), any::<i64>()).prop_map(|(a, most)| assume_at_most(a, most)),
        any::<u8>().prop_map(|at| Constraint::Emulate(pick(&DType::all().collect::<Vec<_>>(), at))),
        any::<u8>().prop_map(|at| Constraint::MmaType(pick(&mma_types(), at))),
    ]
}

fn kernels() -> impl Strategy<Value = Kernel> {
    // The steps would write to memories that the workgroups along such a dimension share.
    let spreads = |constraint: &Constraint| match constraint {
        Constraint::Workgroup { dim, .. } => dim.as_dimension().is_some_and(|s| DIMS.contains(&s.name())),
        _ => false,
    };
    let constraint = constraints().prop_filter("a dimension of the memories", move |c| !spreads(c));
    (prop::collection::vec(constraint, 0..5), steps()).prop_map(|(constraints, steps)| {
        let [m, n, k, odd, number] = symbols(DIMS);
        Kernel::trace("random", |w| {
            w.distribute(constraints);
            let memories = [
                w.memory("a", [m, k], AddressSpace::Shared, DType::F16),
                w.memory("memory", [n], AddressSpace::Global, DType::Bf16),
                w.memory("tile", [m, n, odd], AddressSpace::Global, DType::I32),
                w.memory("scalar", [number, n], AddressSpace::Global, DType::F32),
            ];
            let scalars = [w.scalar("alpha", DType::F32), w.scalar("register", DType::I32)];
            let mut values = vec![scalars[0], scalars[1], w.read(memories[0])];
            trace_steps(w, &memories, &mut values, &steps);
        })
        .expect("the kernel has no mistakes")
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn random_kernels_read_back_whole(kernel in kernels()) {
        for detail in [Detail::Source, Detail::Identity] {
            let text = kernel.text(detail);
            let again = Kernel::parse(&text, "random.gsw").map_err(|f| TestCaseError::fail(listing(&f) + &text))?;
            prop_assert_eq!(&again.text(detail), &text);
            prop_assert!(again.identity() == kernel.identity());
            if detail == Detail::Source {
                prop_assert_eq!(dump(&again), dump(&kernel));
            }
        }
    }

    #[test]
    fn expressions_read_back_as_the_same_tree(e in exprs()) {
        let mut text = String::new();
        symbolic::write_expr(&mut text, &e, symbolic::Level::Sum);
        let again = symbolic::expr(&mut cursor::Cursor::new(&text, "expr"));
        prop_assert_eq!(again.as_ref().ok(), Some(&e), "{}", text);
    }

    #[test]
    fn mutated_text_never_panics(kernel in kernels(), edits in prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>(), 0..5u8, any::<char>()), 1..8)) {
        const WORDS: [&str; 22] = ["%", "%1", "@", "\"", "(", ")", "[", "]", "{", "}", "\n", ",", "=", "iterate K (", "yield", "_", "nan(0x", "-", "1e999", "99999999999999999999", "mma", "//"];
        let mut text: Vec<char> = kernel.to_string().chars().collect();
        for (from, to, kind, c) in edits {
            let (from, to) = (from.index(text.len() + 1), to.index(text.len() + 1));
            let (from, to) = (from.min(to), from.max(to));
            match kind {
                0 => text.drain(from..to.min(from + 20)).for_each(drop),
                1 => text.insert(from, c),
                2 => { let copy = text[from..to.min(from + 60)].to_vec(); text.splice(to..to, copy); }
                3 => text.truncate(to.max(text.len() / 2)),
                _ => { let word = WORDS[c as usize % WORDS.len()]; text.splice(from..from, word.chars()); }
            }
        }
        let text: String = text.into_iter().collect();
        match Kernel::parse(&text, "mutated.gsw") {
            Ok(kernel) => {
                let printed = kernel.to_string();
                let again = Kernel::parse(&printed, "printed.gsw").map_err(|f| TestCaseError::fail(listing(&f) + &printed))?;
                prop_assert_eq!(again.to_string(), printed);
            }
            Err(faults) => {
                prop_assert!(!faults.is_empty());
                prop_assert!(faults.iter().all(|fault| fault.location.is_some()));
            }
        }
    }

    #[test]
    fn any_text_is_parsed_or_refused(text in "\\PC{0,80}|(kernel k \\{\n)([%@a-z0-9 ,=\\[\\](){}\n\"\\\\-]{0,80})") {
        let _ = Kernel::parse(&text, "any.gsw");
    }

    #[test]
    fn floats_read_back_bit_by_bit(bits in any::<u64>()) {
        for bits in [bits, bits & 0x800f_ffff_ffff_ffff, bits | 0x7ff0_0000_0000_0000, bits & 0xfff0_0000_0000_0000] {
            let kernel = Kernel::trace("float", |w| {
                w.register([Symbol::new("M")], DType::F32, f64::from_bits(bits));
            })
            .expect("the kernel has no mistakes");
            let again = parse(&kernel.to_string());
            match again.world.get::<Op>(again.body()[0]) {
                Some(Op::Register(Constant::Float(value))) => prop_assert_eq!(value.to_bits(), bits),
                other => prop_assert!(false, "{:?}", other),
            }
        }
    }
}
