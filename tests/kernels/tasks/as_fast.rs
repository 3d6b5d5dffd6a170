//! In time mode, the kernels of tasks take at most a quarter longer than the ready kernels of their classes.

use groundswell::kernels::{Choices, find};
use groundswell::prelude::*;
use groundswell::simulator::time::{DeviceModel, TimeOptions};
use groundswell::tasks::{ArgReduceKind, ReduceKind, Task};

/// Microseconds that a launch with buffers of these sizes takes.
fn microseconds(executable: &Executable, bytes: &[u64]) -> f64 {
    let device = Device::simulator(Target::GFX942);
    let buffers: Vec<Buffer> = bytes.iter().map(|&bytes| device.allocate(bytes).unwrap()).collect();
    let launch = buffers.iter().fold(device.launch(executable), |launch, buffer| launch.buffer(buffer));
    launch.time(&TimeOptions::new(DeviceModel::MI300X)).unwrap().estimate.microseconds
}

/// Compares a task with a ready kernel for a matrix of `[1024, 1024]`, whose arguments have as many bytes.
#[track_caller]
fn compare(task: &Task, ready: &str, dtype: DType, bytes: &[u64]) {
    let [m, n] = symbols(["M", "N"]);
    let rows = Symbol::new("ROWS");
    let sizes = [(m, 1024), (n, 1024), (rows, 4096)];
    let program = task.kernels(Target::GFX942, &sizes).unwrap();
    let [kernel] = program.kernels() else { panic!("{ready}: {} kernels", program.kernels().len()) };
    let own = microseconds(&kernel.kernel().compile(kernel.options()).unwrap(), bytes);
    let entry = find(ready).unwrap();
    let options = entry
        .values(&|_| None)
        .into_iter()
        .fold(Options::new(Target::GFX942), |options, (symbol, value)| options.set(symbol, value));
    let choices = Choices { dtype: Some(dtype), ..Choices::default() };
    let ready_kernel = entry.kernel(&choices).unwrap();
    let theirs = microseconds(&ready_kernel.compile(&options).unwrap(), bytes);
    println!("{ready}: {own:.2} against {theirs:.2}, {:.3}", own / theirs);
    assert!(own <= 1.25 * theirs, "{ready}: {own:.2} against {theirs:.2}\n{}", kernel.kernel());
}

const WHOLE: u64 = 2 * 1024 * 1024;

#[test]
fn kernels_of_tasks_are_as_fast_as_ready_ones() {
    let [m, n, rows] = symbols(["M", "N", "ROWS"]);
    let add = Task::define("add", |t| {
        let [a, b] = ["a", "b"].map(|name| t.input(name, [m, n], F16));
        t.output(t.compute("out", [m, n], |[i, j]| a.at([i, j]) + b.at([i, j])));
    });
    compare(&add.unwrap(), "add", F16, &[WHOLE; 3]);
    let silu_mul = Task::define("silu_mul", |t| {
        let [a, b] = ["a", "b"].map(|name| t.input(name, [m, n], F16));
        t.output(t.compute("out", [m, n], |[i, j]| {
            (a.at([i, j]).cast(F32).silu() * b.at([i, j]).cast(F32)).cast(F16)
        }));
    });
    compare(&silu_mul.unwrap(), "silu_mul", F16, &[WHOLE; 3]);
    let sum = Task::define("row_sum", |t| {
        let a = t.input("a", [m, n], F16);
        t.output(t.compute("b", [m], |[i]| t.reduce([n], ReduceKind::Sum, F32, |[j]| a.at([i, j]))));
    });
    compare(&sum.unwrap(), "row_sum", F16, &[WHOLE, 4096]);
    let largest = Task::define("row_max", |t| {
        let a = t.input("a", [m, n], F16);
        t.output(t.compute("b", [m], |[i]| t.reduce([n], ReduceKind::Max, F16, |[j]| a.at([i, j]))));
    });
    compare(&largest.unwrap(), "row_max", F16, &[WHOLE, 2048]);
    let place = Task::define("row_argmax", |t| {
        let a = t.input("a", [m, n], F16);
        t.output(t.compute("b", [m], |[i]| t.arg_reduce(n, ArgReduceKind::Max, |j| a.at([i, j]).cast(F32))));
    });
    compare(&place.unwrap(), "row_argmax", F16, &[WHOLE, 4096]);
    let columns = Task::define("column_sum", |t| {
        let a = t.input("a", [m, n], F16);
        t.output(t.compute("b", [n], |[j]| t.reduce([m], ReduceKind::Sum, F32, |[i]| a.at([i, j]))));
    });
    compare(&columns.unwrap(), "column_sum", F16, &[WHOLE, 4096]);
    let turned = Task::define("transpose", |t| {
        let a = t.input("a", [m, n], F16);
        t.output(t.compute("b", [n, m], |[j, i]| a.at([i, j])));
    });
    compare(&turned.unwrap(), "transpose", F16, &[WHOLE; 2]);
    let wide = Task::define("transpose", |t| {
        let a = t.input("a", [m, n], F32);
        t.output(t.compute("b", [n, m], |[j, i]| a.at([i, j])));
    });
    compare(&wide.unwrap(), "transpose", F32, &[2 * WHOLE; 2]);
    let gather = Task::define("gather", |t| {
        let table = t.input("table", [rows, n], F16);
        let ids = t.input("ids", [m], I32);
        t.output(t.compute("out", [m, n], |[i, j]| table.at((ids.at([i]), j))));
    });
    compare(&gather.unwrap(), "gather", F16, &[4 * WHOLE, 4096, WHOLE]);
}

#[test]
fn whole_rows_are_as_fast_as_ready_ones() {
    let [m, n] = symbols(["M", "N"]);
    let softmax = Task::define("softmax", |t| {
        let a = t.input("a", [m, n], F16);
        let wide = t.compute("wide", [m, n], |[i, j]| a.at([i, j]).cast(F32));
        let largest =
            t.compute("largest", [m], |[i]| t.reduce([n], ReduceKind::Max, F32, |[j]| wide.at([i, j])));
        // As the ready kernel: powers of two, which are shorter than those of e, and one quotient for a row.
        let power = t.compute("power", [m, n], |[i, j]| {
            ((wide.at([i, j]) - largest.at([i])) * std::f64::consts::LOG2_E).unary(UnaryOp::Exp2)
        });
        let share = t.compute("share", [m], |[i]| {
            t.reduce([n], ReduceKind::Sum, F32, |[j]| power.at([i, j])).unary(UnaryOp::Reciprocal)
        });
        t.output(t.compute("b", [m, n], |[i, j]| (power.at([i, j]) * share.at([i])).cast(F16)));
    });
    compare(&softmax.unwrap(), "softmax", F16, &[WHOLE; 2]);
    let norm = Task::define("rms_norm", |t| {
        let x = t.input("x", [m, n], F16);
        let weight = t.input("weight", [n], F16);
        let wide = t.compute("wide", [m, n], |[i, j]| x.at([i, j]).cast(F32));
        let scale = t.compute("scale", [m], |[i]| {
            let square = t.reduce([n], ReduceKind::Average, F32, |[j]| wide.at([i, j]) * wide.at([i, j]));
            (square + 1e-5).rsqrt()
        });
        t.output(t.compute("y", [m, n], |[i, j]| {
            (wide.at([i, j]) * scale.at([i]) * weight.at([j]).cast(F32)).cast(F16)
        }));
    });
    compare(&norm.unwrap(), "rms_norm", F16, &[WHOLE, 2048, WHOLE]);
    let layer_norm = Task::define("layer_norm", |t| {
        let x = t.input("x", [m, n], F16);
        let [weight, bias] = ["weight", "bias"].map(|name| t.input(name, [n], F16));
        let wide = t.compute("wide", [m, n], |[i, j]| x.at([i, j]).cast(F32));
        let mean =
            t.compute("mean", [m], |[i]| t.reduce([n], ReduceKind::Average, F32, |[j]| wide.at([i, j])));
        let apart = t.compute("apart", [m, n], |[i, j]| wide.at([i, j]) - mean.at([i]));
        let scale = t.compute("scale", [m], |[i]| {
            let square = t.reduce([n], ReduceKind::Average, F32, |[j]| apart.at([i, j]) * apart.at([i, j]));
            (square + 1e-5).rsqrt()
        });
        t.output(t.compute("y", [m, n], |[i, j]| {
            let scaled = apart.at([i, j]) * scale.at([i]) * weight.at([j]).cast(F32);
            (scaled + bias.at([j]).cast(F32)).cast(F16)
        }));
    });
    compare(&layer_norm.unwrap(), "layer_norm", F16, &[WHOLE, 2048, 2048, WHOLE]);
}
