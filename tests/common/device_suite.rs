//! What every device does alike: launches, errors, streams, memory. The suite writes down what happened, line
//! by line, and checks results by itself; two devices of one chip write the same lines.

use std::sync::Arc;

use groundswell::device::{Launch, Stream};
use groundswell::kernels::{Gemm, Waves, copy};
use groundswell::prelude::*;

/// Elements that are the same everywhere, and exact in f16.
fn numbers(count: usize, seed: u32) -> Vec<f32> {
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        state >> 24
    };
    (0..count).map(|_| (next() % 17) as f32 - 8.0).collect()
}

/// A product and its host's result.
struct Product {
    executable: Executable,
    a: Vec<f16>,
    b: Vec<f16>,
    c: Vec<f32>,
}

fn product(target: Target) -> Product {
    let [m, n, k] = [70usize, 50, 48];
    let gemm = Gemm::new(m as u32, n as u32, k as u32);
    let executable =
        gemm.kernel().and_then(|kernel| kernel.compile(&gemm.options(target))).expect("it compiles");
    let (a, b) = (numbers(m * k, 1), numbers(n * k, 2));
    let mut c = vec![0f32; m * n];
    for (at, sum) in c.iter_mut().enumerate() {
        let (row, column) = (at / n, at % n);
        *sum = (0..k).map(|at| a[row * k + at] * b[column * k + at]).sum();
    }
    let half = |values: Vec<f32>| values.into_iter().map(f16::from_f32).collect();
    Product { executable, a: half(a), b: half(b), c }
}

/// A copy of `[M, 64]` f32 with open M.
fn open_copy(target: Target) -> Executable {
    let options = Options::new(target)
        .dynamic(Symbol::new("M"))
        .set(Symbol::new("N"), 64)
        .set(Symbol::new("BLOCK_M"), 16)
        .set(Symbol::new("BLOCK_N"), 64);
    copy(F32, Waves::new(4, 1)).and_then(|copy| copy.compile(&options)).expect("it compiles")
}

/// `y = a * x + y`, with a scalar, and a log of what was written.
fn axpy(target: Target) -> Executable {
    let text = "kernel axpy {\n  workgroup M, 64, 0\n  a = scalar f32\n  x = memory [M] global f32\n  \
                y = memory [M] global f32\n  sums = debug_log\n  %x = read x\n  %y = read y\n  %p = mul %x, a\n  %s = add %p, %y\n  \
                write %s, sums\n  write %s, y\n}";
    let kernel = Kernel::parse(text, "axpy.gsw").expect("it is one");
    kernel.compile(&Options::new(target).set(Symbol::new("M"), 100)).expect("it compiles")
}

/// Runs the suite; every line is what one step came to.
pub fn transcript(device: &Device) -> Vec<String> {
    let mut lines = Vec::new();
    let target = device.target();
    let mut say = |what: &str, result: Result<(), Diagnostic>| {
        lines.push(match result {
            Ok(()) => format!("{what}: good"),
            Err(error) => format!("{what}: {error}"),
        });
    };
    memory(device, &mut say);
    launches(device, target, &mut say);
    mistakes(device, target, &mut say);
    streams(device, target, &mut say);
    threads(device, target, &mut say);
    lines
}

type Say<'a> = &'a mut dyn FnMut(&str, Result<(), Diagnostic>);

fn memory(device: &Device, say: Say) {
    let data: Vec<i32> = (0..1000).collect();
    say(
        "upload and download",
        (|| {
            let buffer = device.upload(&data)?;
            assert_eq!(buffer.download::<i32>()?, data);
            assert_eq!((buffer.bytes(), buffer.dtype()), (4000, Some(DType::I32)));
            Ok(())
        })(),
    );
    say(
        "nothing",
        (|| {
            let buffer = device.upload::<f32>(&[])?;
            assert!(buffer.download::<f32>()?.is_empty());
            Ok(())
        })(),
    );
    say("too many bytes", device.allocate(8).and_then(|buffer| buffer.write_bytes(&[0; 9])));
    say("another dtype", device.upload(&data).and_then(|buffer| buffer.download::<f32>().map(drop)));
    say(
        "a part",
        (|| {
            let buffer = device.upload(&data)?;
            buffer.write_bytes(&7i32.to_le_bytes())?;
            assert_eq!(buffer.download::<i32>()?[..2], [7, 1]);
            Ok(())
        })(),
    );
    say(
        "many of one size",
        (|| {
            for value in 0..50 {
                let buffer = device.upload(&[value; 64])?;
                assert_eq!(buffer.download::<i32>()?, [value; 64]);
            }
            device.trim()
        })(),
    );
}

fn launches(device: &Device, target: Target, say: Say) {
    let product = product(target);
    say(
        "a product",
        (|| {
            let (a, b) = (device.upload(&product.a)?, device.upload(&product.b)?);
            let c = device.upload(&vec![0f32; product.c.len()])?;
            for _ in 0..3 {
                let done = device.launch(&product.executable).buffer(&a).buffer(&b).buffer(&c).run()?;
                assert_eq!(done.grid, product.executable.grid(&|_| None)?);
            }
            assert_eq!(c.download::<f32>()?, product.c);
            Ok(())
        })(),
    );
    let copy = open_copy(target);
    say(
        "open sizes",
        (|| {
            for rows in [1usize, 16, 37] {
                let data = numbers(rows * 64, 3);
                let (a, b) = (device.upload(&data)?, device.upload(&vec![0f32; data.len()])?);
                device.launch(&copy).buffer(&a).buffer(&b).set(Symbol::new("M"), rows as i64).run()?;
                assert_eq!(b.download::<f32>()?, data);
            }
            Ok(())
        })(),
    );
    let axpy = axpy(target);
    say(
        "scalars and logs",
        (|| {
            let (x, y) = (numbers(100, 4), numbers(100, 5));
            let (dx, dy) = (device.upload(&x)?, device.upload(&y)?);
            let done = device.launch(&axpy).buffer(&dx).buffer(&dy).scalar(0.5f32).run()?;
            let expected: Vec<f32> = x.iter().zip(&y).map(|(x, y)| 0.5 * x + y).collect();
            assert_eq!(dy.download::<f32>()?, expected);
            assert_eq!(done.logs.len(), 1);
            assert_eq!(done.logs[0].tensor.as_slice::<f32>(), Some(&expected[..]));
            Ok(())
        })(),
    );
}

fn mistakes(device: &Device, target: Target, say: Say) {
    let product = product(target);
    let run = |launch: Launch| launch.run().map(drop);
    let elsewhere = Device::simulator(target);
    let made = [
        device.upload(&product.a),
        device.upload(&product.b),
        device.upload(&vec![0f32; product.c.len()]),
        device.allocate(4),
        elsewhere.upload(&product.a),
    ];
    let [Ok(a), Ok(b), Ok(c), Ok(small), Ok(other)] = &made else {
        return say("buffers", Err(Diagnostic::bug("they were made before")));
    };
    let launch = || device.launch(&product.executable);
    say("no buffers", run(launch()));
    say("one buffer too many", run(launch().buffer(a).buffer(b).buffer(c).buffer(c)));
    say("a buffer of another dtype", run(launch().buffer(a).buffer(b).buffer(a)));
    say("a buffer that is too small", run(launch().buffer(a).buffer(b).buffer(small)));
    say("a buffer of another device", run(launch().buffer(other).buffer(b).buffer(c)));
    say("a scalar too many", run(launch().buffer(a).buffer(b).buffer(c).scalar(1.0f32)));
    say("a symbol that is not open", run(launch().buffer(a).buffer(b).buffer(c).set(Symbol::new("M"), 3)));
    let copy = open_copy(target);
    say("an open size without a value", run(device.launch(&copy).buffer(c).buffer(c)));
    say("no work-items", run(device.launch(&copy).buffer(c).buffer(c).set(Symbol::new("M"), 0)));
    say(
        "too many work-items",
        run(device.launch(&copy).buffer(c).buffer(c).set(Symbol::new("M"), 1i64 << 40)),
    );
    let other = if target == Target::GFX90A { Target::GFX942 } else { Target::GFX90A };
    let foreign = self::product(other).executable;
    say("an object of another chip", run(device.launch(&foreign).buffer(a).buffer(b).buffer(c)));
    say(
        "more memory than there is",
        device.allocate(1 << 50).map(drop).map_err(|error| {
            assert!(error.to_string().contains(&(1u64 << 50).to_string()), "{error}");
            Diagnostic::invalid("refused with the number of bytes")
        }),
    );
    // The device goes on after all that.
    say(
        "afterwards",
        (|| {
            run(launch().buffer(a).buffer(b).buffer(c))?;
            assert_eq!(c.download::<f32>()?, product.c);
            Ok(())
        })(),
    );
}

fn streams(device: &Device, target: Target, say: Say) {
    let copy = open_copy(target);
    let rows = 32;
    say(
        "streams",
        (|| {
            let streams = [device.stream()?, device.stream()?];
            let data = numbers(rows * 64, 6);
            let bytes: Vec<u8> = data.iter().flat_map(|value| value.to_le_bytes()).collect();
            let buffers: Vec<Buffer> =
                (0..4).map(|_| device.allocate(bytes.len() as u64)).collect::<Result<_, _>>()?;
            let begin = streams[0].record()?;
            streams[0].upload(&buffers[0], &bytes)?;
            for at in 0..3 {
                let stream = &streams[at % 2];
                device
                    .launch(&copy)
                    .buffer(&buffers[at])
                    .buffer(&buffers[at + 1])
                    .set(Symbol::new("M"), rows as i64)
                    .enqueue(stream)?;
                streams[(at + 1) % 2].wait(&stream.record()?)?;
            }
            let end = streams[1].record()?;
            let last = streams[1].download(&buffers[3])?;
            // Buffers may go while work with them is under way.
            drop(buffers);
            assert_eq!(last.wait()?, bytes);
            streams[0].synchronize()?;
            assert!(streams[0].is_finished()? && end.has_happened()?);
            assert!(end.milliseconds_since(&begin)? >= 0.0);
            Ok(())
        })(),
    );
    say(
        "more bytes than the buffer on a stream",
        device.stream().and_then(|stream| stream.upload(&device.allocate(4)?, &[0; 5])),
    );
    let axpy = axpy(target);
    say(
        "logs on a stream",
        (|| {
            let stream = device.stream()?;
            let x = device.upload(&[0f32; 100])?;
            device.launch(&axpy).buffer(&x).buffer(&x).scalar(1f32).enqueue(&stream)
        })(),
    );
}

/// Eight threads with four streams.
fn threads(device: &Device, target: Target, say: Say) {
    let product = Arc::new(product(target));
    let streams: Result<Vec<Stream>, Diagnostic> = (0..4).map(|_| device.stream()).collect();
    let Ok(streams) = streams else {
        return say("four streams", Err(Diagnostic::bug("one was made before")));
    };
    let results: Vec<Result<(), Diagnostic>> = std::thread::scope(|scope| {
        let work = |number: usize| {
            let (product, streams) = (product.clone(), &streams);
            move || {
                let (a, b) = (device.upload(&product.a)?, device.upload(&product.b)?);
                for at in 0..6 {
                    let stream = &streams[(number + at) % streams.len()];
                    let c = device.upload(&vec![-1f32; product.c.len()])?;
                    device.launch(&product.executable).buffer(&a).buffer(&b).buffer(&c).enqueue(stream)?;
                    let bytes = stream.download(&c)?.wait()?;
                    let expected: Vec<u8> = product.c.iter().flat_map(|value| value.to_le_bytes()).collect();
                    assert!(bytes == expected, "thread {number}, launch {at}");
                }
                Ok(())
            }
        };
        let running: Vec<_> = (0..8).map(|number| scope.spawn(work(number))).collect();
        running.into_iter().map(|thread| thread.join().expect("it asserts nothing that fails")).collect()
    });
    for (number, result) in results.into_iter().enumerate() {
        say(&format!("thread {number}"), result);
    }
}
