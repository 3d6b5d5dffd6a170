//! Integer operations and what conditions are combined to, on the simulator and the interpreter against plain
//! Rust.

use groundswell::prelude::*;
use groundswell_testing::floats::{agreed, options, random};

/// The ends of the range, numbers beside powers of two, and others.
fn numbers() -> Vec<i32> {
    let mut all: Vec<i32> = (-20..=20).collect();
    for shift in [5, 7, 8, 16, 23, 24, 30, 31] {
        let power = 1i32.wrapping_shl(shift);
        all.extend([power.wrapping_sub(1), power, power.wrapping_add(1)]);
        all.extend([power.wrapping_neg().wrapping_sub(1), power.wrapping_neg(), 1 - (power - 1)]);
    }
    all.extend([100, 641, -641, 6_700_417, 0x1234_5678, -0x1234_5678]);
    all
}

/// What is written in Rust with numbers that nothing overflows.
fn exact(word: &str, x: i64, y: i64, bits: u32) -> i64 {
    let floor = |x: i64, y: i64| x.div_euclid(y) - i64::from(y < 0 && x.rem_euclid(y) != 0);
    let count = y.rem_euclid(bits.into());
    match word {
        "div" if y == 0 => 0,
        "div" => x / y,
        "floor_div" if y == 0 => 0,
        "floor_div" => floor(x, y),
        "rem" if y == 0 => x,
        "rem" => x - y * floor(x, y),
        "and" => x & y,
        "or" => x | y,
        "xor" => x ^ y,
        "shift_left" => x << count,
        "shift_right" => x >> count,
        other => unreachable!("{other}"),
    }
}

const WORDS: [&str; 8] = ["div", "floor_div", "rem", "and", "or", "xor", "shift_left", "shift_right"];

#[test]
fn pairs_of_integers() {
    let all = numbers();
    let pairs: Vec<(i32, i32)> = all.iter().flat_map(|&x| all.iter().map(move |&y| (x, y))).collect();
    let [x, y] = [pairs.iter().map(|p| p.0).collect::<Vec<_>>(), pairs.iter().map(|p| p.1).collect()];
    let bytes: Vec<(i8, i8)> = (0..1u32 << 16).map(|at| (at as i8, (at >> 8) as i8)).collect();
    let words: Vec<(i16, i16)> = pairs.iter().map(|&(x, y)| ((x ^ x >> 16) as i16, y as i16)).collect();
    let [c, d] = [words.iter().map(|p| p.0).collect::<Vec<_>>(), words.iter().map(|p| p.1).collect()];
    let [a, b] = [bytes.iter().map(|p| p.0).collect::<Vec<_>>(), bytes.iter().map(|p| p.1).collect()];
    for word in WORDS {
        let body = format!("  %y = {word} %a0, %a1\n");
        let inputs = [&x, &y].map(|v| Tensor::from_slice(&[v.len()], v).expect("small"));
        let got = agreed(&body, &inputs, I32);
        for (at, got) in got.as_slice::<i32>().expect("i32").iter().enumerate() {
            let expected = exact(word, x[at].into(), y[at].into(), 32) as i32;
            assert_eq!(*got, expected, "{word} of {} and {}", x[at], y[at]);
        }
        let inputs = [&c, &d].map(|v| Tensor::from_slice(&[v.len()], v).expect("small"));
        let got = agreed(&body, &inputs, I16);
        for (at, got) in got.as_slice::<i16>().expect("i16").iter().enumerate() {
            let expected = exact(word, c[at].into(), d[at].into(), 16) as i16;
            assert_eq!(*got, expected, "{word} of {} and {}", c[at], d[at]);
        }
        let inputs = [&a, &b].map(|v| Tensor::from_slice(&[v.len()], v).expect("small"));
        let got = agreed(&body, &inputs, I8);
        for (at, got) in got.as_slice::<i8>().expect("i8").iter().enumerate() {
            let expected = exact(word, a[at].into(), b[at].into(), 8) as i8;
            assert_eq!(*got, expected, "{word} of {} and {}", a[at], b[at]);
        }
    }
}

/// Division by a constant has code of its own.
#[test]
fn constants_beside_integers() {
    let mut x = numbers();
    x.extend((0..500).map(|at: i32| at.wrapping_mul(0x9e37_79b9u32 as i32)));
    let tensor = Tensor::from_slice(&[x.len()], &x).expect("small");
    let bytes: Vec<i8> = (i8::MIN..=i8::MAX).collect();
    let small = Tensor::from_slice(&[256], &bytes).expect("small");
    for constant in [
        0,
        1,
        -1,
        2,
        -2,
        3,
        -3,
        5,
        6,
        7,
        10,
        16,
        60,
        64,
        127,
        -128,
        641,
        65_537,
        1 << 30,
        0x7fff_ffff,
        i32::MIN,
    ] {
        // The first three have code for each kind of divisor.
        for word in WORDS.into_iter().take(if constant == 3 || constant == -3 { 8 } else { 3 }) {
            let got = agreed(&format!("  %y = {word} %a0, {constant}\n"), std::slice::from_ref(&tensor), I32);
            for (&x, &got) in x.iter().zip(got.as_slice::<i32>().expect("i32")) {
                let expected = exact(word, x.into(), constant.into(), 32) as i32;
                assert_eq!(got, expected, "{word} of {x} and {constant}");
            }
            let Ok(byte) = i8::try_from(constant) else { continue };
            let got = agreed(&format!("  %y = {word} %a0, {byte}\n"), std::slice::from_ref(&small), I8);
            for (&x, &got) in bytes.iter().zip(got.as_slice::<i8>().expect("i8")) {
                let expected = exact(word, x.into(), byte.into(), 8) as i8;
                assert_eq!(got, expected, "{word} of {x} and {byte}");
            }
            let got = agreed(&format!("  %y = {word} {constant}, %a0\n"), std::slice::from_ref(&tensor), I32);
            for (&x, &got) in x.iter().zip(got.as_slice::<i32>().expect("i32")) {
                let expected = exact(word, constant.into(), x.into(), 32) as i32;
                assert_eq!(got, expected, "{word} of {constant} and {x}");
            }
        }
    }
}

/// Instructions between the load and the store of one element.
#[test]
fn constants_divide_without_a_division() {
    let listing = |line: &str| {
        let text = format!(
            "kernel k {{\n  workgroup N, 64, 0\n  a = memory [N] global i32\n  c = memory [N] global i32\n  %x = read a\n  %y = {line}\n  write %y, c\n}}\n"
        );
        let executable = Kernel::parse(&text, "k").expect("valid").compile(&options(64)).expect("compiles");
        let listing = executable.assembly().expect("it has a text");
        let vector = |line: &&str| line.trim_start().starts_with("v_");
        (listing.lines().filter(vector).count(), listing)
    };
    let (copied, _) = listing("or %x, %x");
    for (line, most) in [
        ("rem %x, 64", 1),
        ("floor_div %x, 64", 1),
        ("floor_div %x, 10", 5),
        ("rem %x, 10", 7),
        ("div %x, 64", 4),
        ("div %x, 10", 5),
        ("shift_left %x, 3", 1),
    ] {
        let (count, listing) = listing(line);
        assert!(!listing.contains("f64"), "{line}: {listing}");
        assert!(count <= copied - 1 + most, "{line} takes {} instructions: {listing}", count + 1 - copied);
    }
}

/// A tree of conditions over `a0 < k` and `a1 < k`.
enum Condition {
    Less(usize, i32),
    Not(usize),
    Pair(&'static str, usize, usize),
    Constant(&'static str, usize, bool),
}

/// Random nodes, each over those before it, so that most are used more than once.
#[test]
fn conditions_combine() {
    let mut state = 7u64;
    let mut next = |below: usize| (random(&mut state) >> 33) as usize % below;
    let x: Vec<i32> = (0..512).map(|at| at % 23).collect();
    let y: Vec<i32> = (0..512).map(|at| at / 23).collect();
    let inputs = [&x, &y].map(|v| Tensor::from_slice(&[512], v).expect("small"));
    for round in 0..40 {
        let count = 2 + next(if round < 30 { 8 } else { 40 });
        let nodes: Vec<Condition> = (0..count)
            .map(|at| match next(if at < 2 { 1 } else { 6 }) {
                0 => Condition::Less(next(2), next(23) as i32),
                1 => Condition::Not(next(at)),
                2 => Condition::Constant(["and", "or", "xor"][next(3)], next(at), next(2) == 1),
                _ => Condition::Pair(["and", "or", "xor"][next(3)], next(at), next(at)),
            })
            .collect();
        let mut body = String::new();
        for (at, node) in nodes.iter().enumerate() {
            body += &match node {
                Condition::Less(of, number) => format!("  %c{at} = compare lt %a{of}, {number}\n"),
                Condition::Not(of) => format!("  %c{at} = not %c{of}\n"),
                Condition::Pair(word, a, b) => format!("  %c{at} = {word} %c{a}, %c{b}\n"),
                Condition::Constant(word, a, b) => format!("  %c{at} = {word} %c{a}, {}\n", i32::from(*b)),
            };
        }
        let last = count - 1;
        body +=
            &format!("  %s = select %c{last}, %a0, %a1\n  %n = cast %c{} i32\n  %y = xor %s, %n\n", last / 2);
        let got = agreed(&body, &inputs, I32);
        for (at, &got) in got.as_slice::<i32>().expect("i32").iter().enumerate() {
            let mut holds: Vec<bool> = Vec::new();
            let join = |word: &str, a: bool, b: bool| match word {
                "and" => a && b,
                "or" => a || b,
                _ => a != b,
            };
            for node in &nodes {
                holds.push(match node {
                    Condition::Less(0, number) => x[at] < *number,
                    Condition::Less(_, number) => y[at] < *number,
                    Condition::Not(of) => !holds[*of],
                    Condition::Pair(word, a, b) => join(word, holds[*a], holds[*b]),
                    Condition::Constant(word, a, b) => join(word, holds[*a], *b),
                });
            }
            let expected = if holds[last] { x[at] } else { y[at] } ^ i32::from(holds[last / 2]);
            assert_eq!(got, expected, "{body}");
        }
    }
}

/// A long chain, each of whose links is used twice, takes code and time in proportion to its length.
#[test]
fn long_chains_of_conditions_compile() {
    let mut body = "  %c0 = compare lt %a0, 3\n".to_owned();
    for at in 0..3000 {
        body += &format!("  %c{} = xor %c{at}, %c{at}\n  %d{at} = not %c{}\n", at + 1, at + 1);
    }
    body += "  %k = constant 0\n  %y = select %d2999, %a0, %k\n";
    let x: Vec<i32> = (0..64).collect();
    let got = agreed(&body, &[Tensor::from_slice(&[64], &x).expect("small")], I32);
    assert_eq!(got.as_slice::<i32>(), Some(&x[..]));
}

#[test]
fn conditions_are_typed() {
    let refused = |line: &str| {
        let text = format!(
            "kernel k {{\n  workgroup N, 64, 0\n  a = memory [N] global i32\n  f = memory [N] global f32\n  \
             %x = read a\n  %f = read f\n  %c = compare lt %x, 3\n  %y = {line}\n  %z = select %c, %x, %x\n  write %z, a\n}}\n"
        );
        let kernel = Kernel::parse(&text, "k").expect("it parses");
        let fault = kernel.compile(&options(64)).expect_err(line);
        assert_eq!(fault.location.as_ref().map(|l| l.line), Some(8), "{fault}");
        (fault.message, fault.help.unwrap_or_default())
    };
    for (line, message, help) in [
        ("and %c, %x", "the operands are [N] i1 and [N] i32", "compare the other one, or cast the condition"),
        ("and %f, %f", "`and` does not take [N] f32", "cast to an integer dtype first"),
        (
            "and %c, 2",
            "2 is not a value of i1",
            "i1 holds whole numbers from 0 to 1: use a floating dtype for others",
        ),
        ("add %c, %c", "the operands are [N] i1 and [N] i1", "conditions have no arithmetic: use select"),
        ("rem %f, 2.0", "`rem` does not take [N] f32", "cast to an integer dtype first"),
        ("not %f", "`not` does not take [N] f32", "cast to an integer dtype first"),
        ("fma %x, %x, 1", "`fma` does not take [N] i32", "cast to a floating dtype first"),
        (
            "fma %f, %x, 1.0",
            "the operands are [N] f32 and [N] i32",
            "arithmetic wants equal dtypes: cast one of them",
        ),
    ] {
        assert_eq!(refused(line), (message.to_owned(), help.to_owned()), "{line}");
    }
}

/// Every operator of Rust traces the operation that the text names.
#[test]
fn operators_are_words() {
    let n = Symbol::new("N");
    let kernel = Kernel::trace("operators", |w| {
        w.distribute([workgroup(n, 64, 0)]);
        let [a, b] = ["a", "b"].map(|name| w.memory(name, [n], Global, I32));
        let (x, y) = (w.read(a), w.read(b));
        let mut z = (((x % 7) & y) | 3) ^ ((!x << 2) >> y).floor_div(5);
        z %= 9;
        z &= 1 - y;
        z <<= 3;
        let both = !(x.less(y) & z.less(4)) | (x.equal(y) ^ y.less(2));
        let f = x.cast(F32).fma(2.0, y.cast(F32)).round();
        w.write(w.select(both, z, f.cast(I32)), b);
    });
    let text = kernel.expect("it traces").to_string();
    for word in ["rem", "and", "or", "xor", "not", "shift_left", "shift_right", "floor_div", "fma", "round"] {
        assert!(text.contains(&format!(" = {word} ")), "{word}: {text}");
    }
    let again = Kernel::parse(&text, "operators").expect("it reads back");
    assert_eq!(again.to_string(), text);
}

/// Casts of all i16 from and to the other dtypes.
#[test]
fn integers_of_16_bits_are_cast() {
    let all: Vec<i16> = (i16::MIN..=i16::MAX).collect();
    let tensor = Tensor::from_slice(&[all.len()], &all).expect("small");
    let cast =
        |to: &str, dtype| agreed(&format!("  %y = cast %a0 {to}\n"), std::slice::from_ref(&tensor), dtype);
    let wide = cast("i32", I32);
    assert!(wide.as_slice::<i32>().expect("i32").iter().zip(&all).all(|(&w, &x)| w == i32::from(x)));
    let narrow = cast("i8", I8);
    assert!(narrow.as_slice::<i8>().expect("i8").iter().zip(&all).all(|(&n, &x)| n == x as i8));
    let single = cast("f32", F32);
    assert!(single.as_slice::<f32>().expect("f32").iter().zip(&all).all(|(&f, &x)| f == f32::from(x)));
    let floats: Vec<f32> = all.iter().map(|&x| f32::from(x) * 1.75).chain([f32::NAN, 1e30, -1e30]).collect();
    let tensor = Tensor::from_slice(&[floats.len()], &floats).expect("small");
    let back = agreed("  %y = cast %a0 i16\n", std::slice::from_ref(&tensor), I16);
    for (&got, &x) in back.as_slice::<i16>().expect("i16").iter().zip(&floats) {
        assert_eq!(got, x as i16, "{x}");
    }
}
