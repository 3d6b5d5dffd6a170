//! Each invariant broken in a world of its own, and what the verifier says.

use smallvec::smallvec;
use std::sync::Arc;

use super::*;
use crate::ir::builder::Tracer;
use crate::ir::constraint::{tile, workgroup};
use crate::ir::expr::symbols;
use crate::ir::kernel::Kernel;
use crate::ir::layout::{Layout, Mode, Source};
use crate::ir::types::AddressSpace::Global;
use crate::ir::types::DType::{self, F16, F32, I1, I8, I32};

const M: Dim = Dim(0);
const N: Dim = Dim(1);
const K: Dim = Dim(2);

/// A matrix product in a loop over K. The node numbered `i` was written on line `i`.
struct Sample {
    world: World,
    root: Entity,
    lines: u32,
    a: Entity,
    b: Entity,
    c: Entity,
    zero: Entity,
    iterate: Entity,
    acc: Entity,
    x: Entity,
    y: Entity,
    product: Entity,
    result: Entity,
    write: Entity,
}

fn ty(dims: &[Dim], dtype: DType) -> ValueType {
    ValueType { dims: dims.into(), dtype: Some(dtype) }
}

impl Sample {
    fn new() -> Sample {
        let mut world = World::new();
        let root = world.spawn_empty().id();
        let none = Entity::PLACEHOLDER;
        let mut s = Sample {
            world,
            root,
            lines: 0,
            a: none,
            b: none,
            c: none,
            zero: none,
            iterate: none,
            acc: none,
            x: none,
            y: none,
            product: none,
            result: none,
            write: none,
        };
        s.a = s.memory("a", ty(&[M, K], F32));
        s.b = s.memory("b", ty(&[N, K], F32));
        s.c = s.memory("c", ty(&[M, N], F32));
        s.zero = s.node(Op::Register(Constant::Float(0.0)), &[], ty(&[M, N], F32));
        s.iterate = s.node(Op::Iterate(K), &[s.zero], ValueType::unknown());
        s.acc = s.node(Op::IterArg(0), &[], ty(&[M, N], F32));
        s.x = s.node(Op::Read, &[s.a], ty(&[M, K], F32));
        s.y = s.node(Op::Read, &[s.b], ty(&[N, K], F32));
        s.product = s.node(Op::Mma(MmaChoice::Kernel), &[s.x, s.y, s.acc], ty(&[M, N], F32));
        s.result = s.node(Op::LoopResult(0), &[s.iterate], ty(&[M, N], F32));
        s.write = s.node(Op::Write, &[s.result, s.c], ValueType::unknown());
        s.set(s.iterate, Body(vec![s.acc, s.x, s.y, s.product]));
        s.set(s.iterate, Yields(smallvec![s.product]));
        let body = vec![s.a, s.b, s.c, s.zero, s.iterate, s.result, s.write];
        let dims = DimTable(symbols(["M", "N", "K"]).to_vec().into());
        let locations = (0..64).map(|line| Location { file: "sample".into(), line, column: 1 }).collect();
        s.world.entity_mut(root).insert((Body(body), dims, Locations(Arc::new(locations))));
        s
    }

    /// A node in no region yet.
    fn node(&mut self, op: Op, operands: &[Entity], ty: ValueType) -> Entity {
        let origin = Origin(self.lines);
        self.lines += 1;
        self.world.spawn((op, Operands(operands.into()), ty, origin)).id()
    }

    fn memory(&mut self, name: &str, ty: ValueType) -> Entity {
        let node = self.node(Op::Memory, &[], ty);
        self.world.entity_mut(node).insert((super::Name(name.into()), Space(Global)));
        node
    }

    fn set(&mut self, node: Entity, component: impl Component) {
        self.world.entity_mut(node).insert(component);
    }

    fn remove<C: Component>(&mut self, node: Entity) {
        self.world.entity_mut(node).remove::<C>();
    }

    fn body(&mut self, region: Entity) -> &mut Vec<Entity> {
        &mut self.world.get_mut::<Body>(region).expect("the sample's regions have bodies").into_inner().0
    }

    /// A new node after all others of a region.
    fn append(&mut self, region: Entity, op: Op, operands: &[Entity], ty: ValueType) -> Entity {
        let node = self.node(op, operands, ty);
        self.body(region).push(node);
        node
    }

    fn operands(&mut self, node: Entity, operands: &[Entity]) {
        self.set(node, Operands(operands.into()));
    }
}

/// The faults of the sample after `damage`, as `line: message`.
fn faults<R>(damage: impl FnOnce(&mut Sample) -> R) -> Vec<String> {
    let mut sample = Sample::new();
    damage(&mut sample);
    let line = |f: &Diagnostic| f.location.as_ref().map_or("?".to_string(), |l| l.line.to_string());
    verify(&sample.world, sample.root).iter().map(|f| format!("{}: {}", line(f), f.message)).collect()
}

#[test]
fn a_good_kernel_has_no_fault() {
    assert_eq!(faults(|_| ()), [] as [&str; 0]);
    let [m, n, k, block] = symbols(["M", "N", "K", "BLOCK_K"]);
    let kernel = Kernel::trace("gemm", |w: &Tracer| {
        w.distribute([workgroup(m, 64, 0), tile(k, block)]);
        let a = w.memory("a", [m, k], Global, F16);
        let b = w.memory("b", [n, k], Global, F16);
        let c = w.memory("c", [m, n], Global, F32);
        let zero = w.register([m, n], F32, 0.0);
        let [acc, count] = w.iterate(k, [zero, zero], |w, [acc, count]| {
            let (x, y) = (w.read(a).tag("x"), w.read(b));
            [w.mma(x, y, acc), count + 1]
        });
        let positive = acc.greater(0);
        let out = w.select(positive, acc, -count);
        w.write(out * 0.5, c);
    })
    .unwrap();
    assert_eq!(verify(&kernel.world, kernel.root), [], "types are not known yet");
}

#[test]
fn all_faults_are_found_and_the_compilers_are_called_so() {
    let mut s = Sample::new();
    s.remove::<Space>(s.a);
    s.operands(s.write, &[s.result]);
    let late = s.memory("late", ty(&[M], F32));
    s.body(s.iterate).push(late);
    let found = verify(&s.world, s.root);
    let found: Vec<_> = found.iter().map(|f| (f.kind, f.message.as_str())).collect();
    let expected = [
        (Kind::Bug, "`%0 = memory` has no Space"),
        (Kind::Invalid, "a memory is declared inside a loop"),
        (Kind::Bug, "`%11 = write %10` has 1 operands, not 2"),
    ];
    assert_eq!(found, expected);
}

#[test]
fn every_node_is_complete() {
    assert_eq!(faults(|s| s.remove::<Op>(s.zero)), ["3: `%3 = ?` has no Op"]);
    assert_eq!(faults(|s| s.remove::<Operands>(s.x)), ["6: `%6 = read` has no Operands"]);
    assert_eq!(faults(|s| s.remove::<ValueType>(s.x)), ["6: `%6 = read %0` has no ValueType"]);
    assert_eq!(faults(|s| s.remove::<Origin>(s.x)), ["?: `%6 = read %0` has no Origin"]);
    assert_eq!(faults(|s| s.remove::<Body>(s.root)), ["?: the kernel has no body"]);
    assert_eq!(verify(&World::new(), Entity::PLACEHOLDER).len(), 1, "an empty world");
}

#[test]
fn a_node_stands_in_one_place() {
    let twice = faults(|s| {
        let x = s.x;
        s.body(s.root).push(x);
    });
    assert_eq!(twice, ["6: `%6 = read %0` stands in two places"]);
    let itself = faults(|s| {
        let iterate = s.iterate;
        s.body(s.iterate).push(iterate);
    });
    assert_eq!(itself, ["4: `%4 = iterate %3` stands in two places"]);
    let gone = faults(|s| {
        let ghost = s.world.spawn_empty().id();
        s.body(s.root).push(ghost);
        s.world.despawn(ghost);
    });
    assert_eq!(gone, ["?: `%11 = ?` stands in a region, but does not exist"]);
}

#[test]
fn operands_are_as_many_as_the_op_takes_and_of_its_kinds() {
    assert_eq!(
        faults(|s| s.operands(s.product, &[s.x, s.y])),
        ["8: `%8 = mma %6, %7` has 2 operands, not 3"]
    );
    assert_eq!(faults(|s| s.operands(s.zero, &[s.a])), ["3: `%3 = register %0` has 1 operands, not 0"]);
    assert_eq!(
        faults(|s| s.operands(s.x, &[s.zero])),
        [
            "6: `%6 = read %3` operand 0 (%3 = register) is a value, not a memory",
            "6: `%6 = read %3` is f32[M, K], but its memory is f32[M, N]"
        ]
    );
    assert_eq!(
        faults(|s| s.operands(s.write, &[s.c, s.c])),
        ["10: `%10 = write %2, %2` operand 0 (%2 = memory) is a memory, not a value"]
    );
    assert_eq!(
        faults(|s| s.operands(s.result, &[s.zero])),
        ["9: `%9 = result %3` operand 0 (%3 = register) is a value, not a loop"]
    );
    assert_eq!(
        faults(|s| s.operands(s.iterate, &[s.a]))[0],
        "4: `%4 = iterate %0` operand 0 (%0 = memory) is a memory, not a value"
    );
    let nothing = faults(|s| {
        let write = s.write;
        s.append(s.root, Op::Unary(UnaryOp::Neg), &[write], ty(&[], F32));
    });
    assert_eq!(
        nothing[0],
        "11: `%11 = neg %10` operand 0 (%10 = write %9, %2) is without a result, not a value"
    );
}

#[test]
fn a_node_uses_what_is_defined_before_it_and_around_it() {
    assert_eq!(
        faults(|s| s.body(s.iterate).swap(2, 3)),
        ["8: `%7 = mma %6, %8, %5` operand 1 (%8 = read %1) is not defined before it"]
    );
    assert_eq!(
        faults(|s| s.operands(s.write, &[s.product, s.c])),
        ["10: `%10 = write %8, %2` operand 0 (%8 = mma %6, %7, %5) is inside a loop that ends before it"]
    );
    let dead = faults(|s| {
        let dead = s.node(Op::Register(Constant::Float(1.0)), &[], ty(&[M, N], F32));
        s.operands(s.write, &[dead, s.c]);
    });
    assert_eq!(dead, ["10: `%10 = write %?, %2` operand 0 (%? = register) is not defined before it"]);
    let gone = faults(|s| {
        let ghost = s.world.spawn_empty().id();
        s.world.despawn(ghost);
        s.operands(s.write, &[ghost, s.c]);
    });
    assert_eq!(gone, ["10: `%10 = write %?, %2` operand 0 (%? = ?) does not exist"]);
    let inside = faults(|s| {
        let iterate = s.iterate;
        s.append(iterate, Op::LoopResult(0), &[iterate], ty(&[M, N], F32));
    });
    assert_eq!(inside, ["11: `%9 = result %4` operand 0 (%4 = iterate %3) is the loop around it"]);
}

#[test]
fn dims_are_different_ones_of_the_kernel() {
    assert_eq!(
        faults(|s| s.set(s.c, ty(&[M, Dim(3), N], F32)))[0],
        "2: `%2 = memory` has the dim number 3, but the kernel has 3 dims"
    );
    assert_eq!(faults(|s| s.set(s.c, ty(&[M, N, M], F32)))[0], "2: `%2 = memory` has the dim M twice");
    assert_eq!(
        faults(|s| s.set(s.write, ty(&[M], F32))),
        ["10: `%10 = write %9, %2` has no result, but a type"]
    );
    assert_eq!(
        faults(|s| s.set(s.iterate, Op::Iterate(Dim(7)))),
        ["4: `%4 = iterate %3` is over dim number 7, but the kernel has 3 dims"]
    );
}

#[test]
fn tags_are_not_empty_and_layouts_have_dims_of_the_kernel() {
    assert_eq!(faults(|s| s.set(s.x, Tag("".into()))), ["6: `%6 = read %0` has an empty tag"]);
    assert_eq!(faults(|s| s.set(s.x, Tag("x".into()))), [] as [&str; 0]);
    let layout = |dim| Placement(Layout::new([Mode::new(Source::Lane, 64, dim, 1)]).unwrap());
    assert_eq!(faults(|s| s.set(s.x, layout(K))), [] as [&str; 0]);
    assert_eq!(
        faults(|s| s.set(s.x, layout(Dim(4)))),
        ["6: `%6 = read %0` has dim number 4 in its layout, but the kernel has 3 dims"]
    );
}

#[test]
fn memories_have_name_space_and_dtype_and_stand_outside_of_loops() {
    assert_eq!(faults(|s| s.remove::<super::Name>(s.a)), ["0: `%0 = memory` has no Name"]);
    assert_eq!(faults(|s| s.remove::<Space>(s.a)), ["0: `%0 = memory` has no Space"]);
    assert_eq!(
        faults(|s| s.set(s.c, ValueType { dims: smallvec![M, N], dtype: None }))[0],
        "2: `%2 = memory` has no dtype"
    );
    let late = faults(|s| {
        let late = s.memory("late", ty(&[M], F32));
        s.body(s.iterate).push(late);
    });
    assert_eq!(late, ["11: a memory is declared inside a loop"]);
    let lds = faults(|s| {
        s.append(s.iterate, Op::Allocate, &[], ty(&[M], F32));
    });
    assert_eq!(lds, ["11: an LDS buffer is declared inside a loop"]);
}

#[test]
fn loops_have_arguments_results_and_yields_for_their_carried_values() {
    assert_eq!(faults(|s| s.remove::<Yields>(s.iterate)), ["4: `%4 = iterate %3` has no Yields"]);
    assert_eq!(faults(|s| s.remove::<Body>(s.iterate))[0], "4: `%4 = iterate %3` has no Body");
    assert_eq!(
        faults(|s| s.set(s.iterate, Yields(smallvec![]))),
        ["4: `%4 = iterate %3` carries 1 values, but yields 0"]
    );
    assert_eq!(
        faults(|s| s.set(s.iterate, Yields(smallvec![s.result])))[0],
        "4: `%4 = iterate %3` yield 0 (%9 = result %4) is not defined before it"
    );
    assert_eq!(
        faults(|s| s.set(s.iterate, Yields(smallvec![s.a]))),
        [
            "4: `%4 = iterate %3` yield 0 (%0 = memory) is a memory, not a value",
            "4: `%4 = iterate %3` carries f32[M, N] as value 0, but its argument is f32[M, N] and it yields f32[M, K]"
        ]
    );
    assert_eq!(
        faults(|s| s.set(s.result, Op::LoopResult(1))),
        ["9: `%9 = result %4` has number 1, but its loop carries 1 values"]
    );
    assert_eq!(
        faults(|s| s.set(s.acc, Op::IterArg(1))),
        ["5: `%5 = argument` has number 1, but stands at place 0 of its loop's body"]
    );
    let more = faults(|s| {
        let more = s.node(Op::IterArg(1), &[], ty(&[M, N], F32));
        s.body(s.iterate).insert(1, more);
    });
    assert_eq!(more, ["11: `%6 = argument` has number 1, but its loop carries 1 values"]);
    assert_eq!(
        faults(|s| {
            s.operands(s.iterate, &[s.zero, s.zero]);
            s.set(s.iterate, Yields(smallvec![s.product, s.product]));
        })[0],
        "4: `%4 = iterate %3, %3` carries 2 values, but its body has 1 arguments"
    );
    let outside = faults(|s| s.append(s.root, Op::IterArg(0), &[], ty(&[M, N], F32)));
    assert_eq!(outside, ["11: `%11 = argument` is not in the body of a loop"]);
    let elsewhere = faults(|s| {
        let acc = s.acc;
        s.body(s.iterate).retain(|&n| n != acc);
        s.body(s.iterate).insert(2, acc);
    });
    assert_eq!(
        elsewhere,
        [
            "5: `%7 = argument` has number 0, but stands at place 2 of its loop's body",
            "4: `%4 = iterate %3` carries 1 values, but its body has 0 arguments",
            "4: `%4 = iterate %3` carries f32[M, N] as value 0, but its argument is f32[M, K] and it yields f32[M, N]",
        ]
    );
}

#[test]
fn the_dim_of_a_loop_does_not_cross_it() {
    let nested = faults(|s| {
        let inner = s.append(s.iterate, Op::Iterate(K), &[], ValueType::unknown());
        s.world.entity_mut(inner).insert((Body::default(), Yields::default()));
    });
    assert_eq!(nested, ["11: a loop over K is inside a loop over K"]);
    let into = faults(|s| {
        let whole = s.node(Op::Read, &[s.a], ty(&[M, K], F32));
        s.body(s.root).insert(3, whole);
        s.operands(s.product, &[whole, s.y, s.acc]);
    });
    assert_eq!(into, ["8: a value with all of K is used inside the loop over K"]);
    let around = faults(|s| s.set(s.iterate, Op::Iterate(N)));
    assert_eq!(around, ["4: carried value 0 has the dim N that its loop iterates over"]);
}

/// A last node of the given op over new constants of the given types.
fn typed(op: Op, operands: &[ValueType], result: ValueType) -> Vec<String> {
    faults(|s| {
        let zero = |ty: &ValueType| match ty.dtype {
            Some(dtype) if dtype.is_float() => Constant::Float(0.0),
            _ => Constant::Integer(0),
        };
        let operands: Vec<Entity> =
            operands.iter().map(|ty| s.append(s.root, Op::Register(zero(ty)), &[], ty.clone())).collect();
        s.append(s.root, op, &operands, result);
    })
}

#[test]
fn memory_accesses_and_constants_agree_with_their_types() {
    assert_eq!(
        faults(|s| s.set(s.x, ty(&[M, K], F16)))[0],
        "6: `%6 = read %0` is f16[M, K], but its memory is f32[M, K]"
    );
    assert_eq!(
        faults(|s| s.set(s.c, ty(&[M, N], F16))),
        ["10: `%10 = write %9, %2` writes f32[M, N] to a memory that is f16[M, N]"]
    );
    assert_eq!(
        faults(|s| s.set(s.c, ty(&[M, N, K], F32))),
        ["10: `%10 = write %9, %2` writes f32[M, N] to a memory that is f32[M, N, K]"]
    );
    assert_eq!(faults(|s| s.set(s.c, ty(&[N, M], F32))), [] as [&str; 0], "transposed");
    let half = faults(|s| s.append(s.root, Op::Register(Constant::Float(0.5)), &[], ty(&[M], I32)));
    assert_eq!(half, ["11: `%11 = register` is i32[M], but 0.5 is not a value of i32"]);
}

#[test]
fn carried_values_keep_their_type() {
    assert_eq!(
        faults(|s| s.set(s.result, ty(&[M], F32)))[0],
        "9: `%9 = result %4` is f32[M], but the carried value is f32[M, N]"
    );
    assert_eq!(
        faults(|s| s.set(s.zero, ty(&[M], F32))),
        [
            "4: `%4 = iterate %3` carries f32[M] as value 0, but its argument is f32[M, N] and it yields f32[M, N]",
            "9: `%9 = result %4` is f32[M, N], but the carried value is f32[M]"
        ]
    );
}

#[test]
fn matrix_products_have_fitting_shapes_and_dtypes() {
    let mma = Op::Mma(MmaChoice::Kernel);
    let last = "14: `%14 = mma %11, %12, %13`";
    let good = typed(mma, &[ty(&[M, K], I8), ty(&[N, K], I8), ty(&[M, N], I32)], ty(&[M, N], I32));
    assert_eq!(good, [] as [&str; 0]);
    let in_rows = typed(mma, &[ty(&[K, M], F16), ty(&[K, N], F16), ty(&[M, N], F32)], ty(&[M, N], F32));
    assert_eq!(in_rows, [] as [&str; 0]);
    for (lhs, rhs, acc, shown) in [
        (ty(&[M, K], F16), ty(&[N, K], F32), ty(&[M, N], F32), "f16[M, K] and f32[N, K] into f32[M, N]"),
        (ty(&[M, K], F16), ty(&[N, K], F16), ty(&[M, N], F16), "f16[M, K] and f16[N, K] into f16[M, N]"),
        (ty(&[M, K], F16), ty(&[M, K], F16), ty(&[M, N], F32), "f16[M, K] and f16[M, K] into f32[M, N]"),
        (ty(&[K], F16), ty(&[N, K], F16), ty(&[M, N], F32), "f16[K] and f16[N, K] into f32[M, N]"),
    ] {
        let result = acc.clone();
        assert_eq!(typed(mma, &[lhs, rhs, acc], result), [format!("{last} multiplies {shown}")]);
    }
    let result = typed(mma, &[ty(&[M, K], F16), ty(&[N, K], F16), ty(&[M, N], F32)], ty(&[M, N], F16));
    assert_eq!(result, [format!("{last} is f16[M, N], but its accumulator is f32[M, N]")]);
}

#[test]
fn elementwise_operations_have_fitting_types() {
    let add = Op::Binary(BinaryOp::Add);
    let less = Op::Compare(Predicate::Lt);
    let none = [] as [&str; 0];
    assert_eq!(typed(add, &[ty(&[M, N], F32), ty(&[N], F32)], ty(&[M, N], F32)), none);
    assert_eq!(typed(less, &[ty(&[], I8), ty(&[N], I8)], ty(&[N], I1)), none);
    assert_eq!(typed(Op::Select, &[ty(&[M], I1), ty(&[M, N], I8), ty(&[], I8)], ty(&[M, N], I8)), none);
    assert_eq!(typed(Op::Convert(Conversion::Cast), &[ty(&[M], I1)], ty(&[M], F32)), none);
    let bitcast = Op::Convert(Conversion::Bitcast);
    assert_eq!(typed(bitcast, &[ty(&[M], I32)], ty(&[M], F32)), none);
    assert_eq!(typed(bitcast, &[ty(&[M], I32)], ty(&[M], F16)).len(), 1);
    assert_eq!(typed(bitcast, &[ty(&[M], I1)], ty(&[M], I8)).len(), 1);
    let bad = [
        (
            typed(add, &[ty(&[M], F32), ty(&[M], F16)], ty(&[M], F32)),
            "13: `%13 = add %11, %12` is not defined for f32[M] and f16[M]",
        ),
        (
            typed(add, &[ty(&[M], I1), ty(&[M], I1)], ty(&[M], I1)),
            "13: `%13 = add %11, %12` is not defined for i1[M] and i1[M]",
        ),
        (
            typed(add, &[ty(&[M], F32), ty(&[N], F32)], ty(&[M, N], F32)),
            "13: `%13 = add %11, %12` is f32[M, N], but its operands are f32[M] and f32[N]",
        ),
        (
            typed(less, &[ty(&[M], F32), ty(&[M], F32)], ty(&[M], F32)),
            "13: `%13 = lt %11, %12` is f32[M], but its operands are f32[M] and f32[M]",
        ),
        (
            typed(Op::Select, &[ty(&[M], I8), ty(&[M], F32), ty(&[M], F32)], ty(&[M], F32)),
            "14: `%14 = select %11, %12, %13` chooses by i8[M] between f32[M] and f32[M]",
        ),
        (
            typed(Op::Select, &[ty(&[M], I1), ty(&[M], F32), ty(&[M], F32)], ty(&[N], F32)),
            "14: `%14 = select %11, %12, %13` is f32[N], but its operands are i1[M], f32[M] and f32[M]",
        ),
        (
            typed(Op::Convert(Conversion::Cast), &[ty(&[M], F32)], ty(&[M], I1)),
            "12: `%12 = cast %11` cannot make i1[M] from f32[M]",
        ),
        (
            typed(Op::Convert(Conversion::Cast), &[ty(&[M], F32)], ty(&[N], F16)),
            "12: `%12 = cast %11` cannot make f16[N] from f32[M]",
        ),
        (
            typed(Op::Unary(UnaryOp::Sqrt), &[ty(&[M], I32)], ty(&[M], I32)),
            "12: `%12 = sqrt %11` is not defined for i32[M]",
        ),
        (
            typed(Op::Unary(UnaryOp::Neg), &[ty(&[M], F32)], ty(&[M], F16)),
            "12: `%12 = neg %11` is f16[M], but its operand is f32[M]",
        ),
    ];
    for (found, expected) in bad {
        assert_eq!(found, [expected]);
    }
}

#[test]
fn types_are_not_compared_until_all_are_known() {
    let unknown = faults(|s| {
        s.set(s.c, ty(&[M, N], F16));
        s.set(s.x, ValueType::unknown());
    });
    assert_eq!(unknown, [] as [&str; 0]);
}
