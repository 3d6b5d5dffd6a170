//! Laws of the algebra: known simplifications, and random expressions against brute force.
use super::evaluate::EvalError;
use super::rational::Rational;
use super::*;
use proptest::prelude::*;

fn arena() -> ExprArena {
    ExprArena::new()
}

/// What a text simplifies to, after assumptions written as `K%32` or `x<8` (a bound excluded).
fn simplify(assumptions: &[&str], text: &str) -> String {
    let mut arena = arena();
    for assumption in assumptions {
        if let Some((name, divisor)) = assumption.split_once('%') {
            arena.assume_divisible(Symbol::new(name), divisor.parse().unwrap()).unwrap();
        } else if let Some((name, bound)) = assumption.split_once('<') {
            arena.assume_range(Symbol::new(name), ..bound.parse::<i64>().unwrap()).unwrap();
        } else if let Some((name, bound)) = assumption.split_once('>') {
            arena.assume_range(Symbol::new(name), bound.parse::<i64>().unwrap() + 1..).unwrap();
        }
    }
    let e = arena.parse(text).unwrap();
    arena.display(e).to_string()
}

#[test]
fn sums_and_products_have_one_form() {
    for (text, expected) in [
        ("b + a + b", "a + 2*b"),
        ("(x + 1)*(x - 1)", "x*x - 1"),
        ("3*m*K - K*m", "2*K*m"),
        ("x - x", "0"),
        ("2*(x + 3) - 7", "2*x - 1"),
        ("-x", "-x"),
        ("x/4 + x/4", "x/2"),
        ("1/2 + 1/3", "5/6"),
    ] {
        assert_eq!(simplify(&[], text), expected, "{text}");
    }
}

#[test]
fn quotients_and_remainders_simplify() {
    for (facts, text, expected) in [
        (&[][..], "floordiv(17, 5) + mod(-3, 5)", "5"),
        (&[], "floordiv(4*x, 8)", "floordiv(x, 2)"),
        (&[], "floordiv(8*x + 5, 8)", "x"),
        (&[], "mod(8*x + 5, 8)", "5"),
        (&[], "mod(4*x + 2, 8)", "4*mod(x, 2) + 2"),
        (&[], "floordiv(floordiv(x, 3), 5)", "floordiv(x, 15)"),
        (&[], "mod(mod(x, 12), 4)", "mod(x, 4)"),
        (&[], "mod(3*mod(x, 4) + y, 12)", "mod(3*x + y, 12)"),
        (&[], "mod(x, 4) + 4*floordiv(x, 4)", "x"),
        (&["K%32"], "mod(K, 32)", "0"),
        (&["K%32"], "floordiv(K, 32)", "K/32"),
        (&["K%32"], "floordiv(K, 128)", "floordiv(K, 128)"),
        (&["K%32"], "floordiv(K + 5, 32)", "K/32"),
        (&["t<64"], "floordiv(t, 64)", "0"),
        (&["t<64"], "mod(t, 64)", "t"),
        (&["t<64"], "floordiv(64*w + t, 64)", "w"),
        (&["t<16"], "floordiv(16*w + t, 64)", "floordiv(w, 4)"),
        (&["t<16"], "mod(16*w + t, 64)", "t + 16*mod(w, 4)"),
        (&["x<8"], "mod(7 - x, 8)", "-x + 7"),
        (&[], "ceildiv(x, 4)", "ceildiv(x, 4)"),
        (&[], "-floordiv(-x, 4)", "ceildiv(x, 4)"),
        (&["K%8"], "ceildiv(K, 32)", "ceildiv(K, 32)"),
        (&["K%8"], "floordiv(K + 31, 32)", "ceildiv(K, 32)"),
        (&[], "ceildiv(M, BLOCK_M)", "ceildiv(M, BLOCK_M)"),
        (&[], "ceildiv(ceildiv(M, a), b)", "ceildiv(M, a*b)"),
        (&[], "floordiv(M + B - 1, B)", "ceildiv(M, B)"),
        (&[], "3*ceildiv(M, B) + 5", "3*ceildiv(M, B) + 5"),
        (&[], "floordiv(M*K, N*K)", "floordiv(M, N)"),
        (&[], "mod(M*K, N*K)", "K*mod(M, N)"),
        (&[], "floordiv(m*K + K, K)", "m + 1"),
        (&[], "floordiv(3*m*K, 2*K)", "m + floordiv(m, 2)"),
        (&[], "ceildiv(4*B, B)", "4"),
        (&["i<4"], "floordiv(i, j + 4)", "0"),
        (&[], "x // 4 + x % 4", "floordiv(x, 4) + mod(x, 4)"),
    ] {
        assert_eq!(simplify(facts, text), expected, "{text}");
    }
}

#[test]
fn minima_and_maxima_simplify() {
    for (facts, text, expected) in [
        (&[][..], "min(x, x + 1)", "x"),
        (&[], "max(max(c, a), b) - max(a, max(b, c))", "0"),
        (&[], "max(x, 0)", "x"),
        (&["x<8"], "min(x, 7)", "x"),
        (&["x<8"], "min(y, x, 9)", "min(x, y)"),
        (&[], "min(3, x, 5)", "min(x, 3)"),
    ] {
        assert_eq!(simplify(facts, text), expected, "{text}");
    }
}

#[test]
fn assumptions_sharpen_what_is_already_there() {
    let [x, y] = symbols(["x", "y"]);
    let mut arena = arena();
    let e = arena.parse("8*x + 4*mod(y, 3)").unwrap();
    assert_eq!((arena.divisor(e), arena.range(e)), (4, Range { lo: Some(0), hi: None }));
    arena.assume_range(x, 1..=10).unwrap();
    arena.assume_divisible(x, 2).unwrap();
    assert_eq!(arena.range(e), Range { lo: Some(16), hi: Some(88) });
    assert!(arena.is_multiple_of(e, 4) && !arena.is_multiple_of(e, 8));
    assert_eq!(arena.assume_range(x, ..0), Err(ExprError::NoValue(x)));
    assert_eq!(arena.assume_divisible(x, 0), Err(ExprError::BadDivisor(x, 0)));
    assert_eq!(arena.assume_range(y, -4..), Err(ExprError::LateAssumption(y)));
    arena.clear();
    arena.assume_range(y, -4..=4).unwrap();
    let y = arena.symbol(y);
    assert_eq!(arena.range(y), Range { lo: Some(-4), hi: Some(4) });
    assert!(arena.is_multiple_of(Expr::ZERO, 7));
}

#[test]
fn overflow_and_division_by_zero_are_errors() {
    let mut arena = arena();
    let big = arena.int(i64::MAX);
    assert_eq!(arena.add(big, Expr::ONE), Err(ExprError::Overflow));
    assert_eq!(arena.mul(big, big), Err(ExprError::Overflow));
    let x = arena.symbol(Symbol::new("x"));
    assert_eq!(arena.floor_div(x, Expr::ZERO), Err(ExprError::DivisionByZero));
    assert_eq!(arena.modulo(x, Expr::ZERO), Err(ExprError::DivisionByZero));
    let least = arena.int(i64::MIN);
    assert_eq!(arena.neg(least), Err(ExprError::Overflow));
    let e = arena.mul(least, x).unwrap();
    assert_eq!(arena.evaluate(e, &|_| Some(2)), Err(EvalError::Overflow));
    assert_eq!(arena.evaluate(x, &|_| None), Err(EvalError::MissingSymbol(Symbol::new("x"))));
    let half = arena.div_exact(x, 2).unwrap();
    let fraction = EvalError::NotAnInteger { numerator: 3, denominator: 2 };
    assert_eq!(arena.evaluate(half, &|_| Some(3)), Err(fraction));
}

#[test]
fn parse_errors_say_where() {
    for (text, offset, message) in [
        ("a +", 3, "expected a number, a name or `(`"),
        ("a + foo(b, c)", 4, "no function `foo`: there are floordiv, ceildiv, mod, min, max"),
        ("min(a)", 5, "expected `,`"),
        ("a / b", 2, "`/` is exact division and takes an integer constant; `//` rounds down"),
        ("99999999999999999999", 0, "the number does not fit in 64 bits"),
        ("a // 0", 2, "division by zero"),
        ("a b", 2, "expected an operator or the end"),
        ("(a", 2, "expected `)`"),
    ] {
        let error = arena().parse(text).unwrap_err();
        assert_eq!((error.offset, error.kind.to_string().as_str()), (offset, message), "{text}");
    }
    let deep = "(".repeat(100_000);
    assert_eq!(arena().parse(&deep).unwrap_err().kind, ParseErrorKind::TooDeep);
    let mut wide = arena();
    assert!(wide.parse(&"-".repeat(100_001)).is_err());
    assert_eq!(wide.parse("-9223372036854775808"), Ok(wide.clone().int(i64::MIN)));
}

#[test]
fn print_of_a_fresh_parse_is_the_same_text() {
    for text in ["b*a + floordiv(min(q, p), 3*z + 4)", "1 - mod(z*y + x, 7)/2", "ceildiv(b, a)*c - 3"] {
        let first = simplify(&[], text);
        assert_eq!(simplify(&[], &first), first);
    }
}

/// A random expression over a few symbols, as data that any arena can build.
#[derive(Clone, Debug)]
enum Tree {
    Int(i64),
    Symbol(usize),
    Op(usize, Box<Tree>, Box<Tree>),
}

const NAMES: [&str; 4] = ["p", "q", "r", "s"];

fn trees() -> impl Strategy<Value = Tree> {
    let leaf = prop_oneof![(-20i64..=40).prop_map(Tree::Int), (0..NAMES.len()).prop_map(Tree::Symbol)];
    leaf.prop_recursive(5, 24, 2, |inner| {
        (0usize..9, inner.clone(), inner).prop_map(|(op, a, b)| Tree::Op(op, Box::new(a), Box::new(b)))
    })
}

fn build(arena: &mut ExprArena, tree: &Tree) -> Result<Expr, ExprError> {
    match tree {
        Tree::Int(value) => Ok(arena.int(*value)),
        Tree::Symbol(at) => Ok(arena.symbol(Symbol::new(NAMES[*at]))),
        Tree::Op(op, a, b) => {
            let (a, b) = (build(arena, a)?, build(arena, b)?);
            match op {
                0 | 1 => arena.add(a, b),
                2 => arena.sub(a, b),
                3 => arena.mul(a, b),
                4 => arena.floor_div(a, b),
                5 => arena.modulo(a, b),
                6 => arena.ceil_div(a, b),
                7 => arena.min(a, b),
                _ => arena.max(a, b),
            }
        }
    }
}

/// The value by definition, or `None` where a divisor is zero or a value grows too large to follow.
fn value(tree: &Tree, values: &[i64; 4]) -> Option<i128> {
    let result = match tree {
        Tree::Int(value) => (*value).into(),
        Tree::Symbol(at) => values[*at].into(),
        Tree::Op(op, a, b) => {
            let (a, b) = (value(a, values)?, value(b, values)?);
            let floor = |a: i128, b: i128| if b < 0 { (-a).div_euclid(-b) } else { a.div_euclid(b) };
            match op {
                0 | 1 => a + b,
                2 => a - b,
                3 => a * b,
                4..=6 if b == 0 => return None,
                4 => floor(a, b),
                5 => a - b * floor(a, b),
                6 => -floor(-a, b),
                7 => a.min(b),
                _ => a.max(b),
            }
        }
    };
    (result.abs() < 1 << 60).then_some(result)
}

/// Bounds and divisor of one symbol; most are small ranges so that values can be drawn from them.
fn facts() -> impl Strategy<Value = (i64, i64, i64)> {
    (-6i64..=6, 0i64..=12, prop_oneof![Just(1i64), Just(2), Just(3), Just(4)])
}

/// States the facts and returns the values that satisfy them.
fn assume(arena: &mut ExprArena, facts: &[(i64, i64, i64); 4]) -> Option<[Vec<i64>; 4]> {
    let mut values = [const { Vec::new() }; 4];
    for (at, (lo, extent, divisor)) in facts.iter().enumerate() {
        let symbol = Symbol::new(NAMES[at]);
        arena.assume_range(symbol, *lo..=lo + extent).ok()?;
        arena.assume_divisible(symbol, *divisor).ok()?;
        values[at] = (*lo..=lo + extent).filter(|value| value % divisor == 0).collect();
    }
    Some(values)
}

fn samples(values: &[Vec<i64>; 4], picks: &[[usize; 4]]) -> Vec<[i64; 4]> {
    picks.iter().map(|pick| std::array::from_fn(|at| values[at][pick[at] % values[at].len()])).collect()
}

fn lookup(values: &[i64; 4]) -> impl Fn(Symbol) -> Option<i64> + '_ {
    |symbol| NAMES.iter().position(|name| *name == symbol.name()).map(|at| values[at])
}

#[test]
fn a_remainder_keeps_the_symbols_that_were_cancelled() {
    let mut arena = arena();
    let [q, s] = ["q", "s"].map(Symbol::new);
    arena.assume_range(q, 1..=9).expect("sound");
    arena.assume_range(s, 0..=90).expect("sound");
    arena.assume_divisible(s, 3).expect("sound");
    let [a, b] = [q, s].map(|symbol| arena.symbol(symbol));
    let product = arena.mul(a, b).expect("small");
    let dividend = arena.add(product, a).expect("small");
    let fifteen = arena.int(15);
    let divisor = arena.mul(a, fifteen).expect("small");
    let e = arena.modulo(dividend, divisor).expect("small");
    for (q, s) in [(1, 0), (4, 3), (9, 87)] {
        let found = arena.evaluate(e, &|symbol| Some(if symbol.name() == "q" { q } else { s }));
        assert_eq!(found.expect("a value"), (q * s + q) % (15 * q), "{} at {q}, {s}", arena.display(e));
    }
}

/// The digits of one number, each times its step in an image: one quotient is left, even where canonical
/// forms have taken a whole part out of a quotient.
#[test]
fn addresses_of_taken_apart_numbers_have_one_quotient() {
    for (number, expected) in
        [("k", "k + 1488*floordiv(k, 144)"), ("(64*t + 8*l)", "8*l + 64*t + 1488*floordiv(l + 8*t, 18)")]
    {
        let mut arena = arena();
        for (name, end) in [("k", 432), ("t", 6), ("l", 8)] {
            arena.assume_range(Symbol::new(name), 0..end).unwrap();
        }
        let text = "1632*floordiv(k, 144) + 48*mod(floordiv(k, 48), 3) + mod(k, 48)".replace('k', number);
        let address = arena.parse(&text).unwrap();
        let shorter = arena.without_remainders(address).unwrap();
        assert_eq!(arena.display(shorter).to_string(), expected);
        assert!(arena.division_cost(shorter) < arena.division_cost(address));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn canonical_forms_keep_the_value_and_facts_are_sound(
        tree in trees(),
        facts in proptest::array::uniform4(facts()),
        picks in proptest::collection::vec(proptest::array::uniform4(0usize..1000), 24),
    ) {
        let mut arena = arena();
        let Some(values) = assume(&mut arena, &facts) else { return Ok(()) };
        let Ok(e) = build(&mut arena, &tree) else { return Ok(()) };
        for sample in samples(&values, &picks) {
            let Some(expected) = value(&tree, &sample) else { continue };
            let got = arena.evaluate_rational(e, &lookup(&sample));
            match got {
                Ok(got) => prop_assert_eq!(got, Rational::from_integer(expected as i64), "{} at {:?}", arena.display(e), sample),
                // Where a factor is zero the canonical form may divide by it, though the tree did not, and
                // an intermediate value may leave 64 bits.
                Err(error) => prop_assert!(matches!(error, EvalError::Overflow), "{} at {:?}: {}", arena.display(e), sample, error),
            }
            if let Ok(plain) = arena.without_remainders(e)
                && let Ok(got) = arena.evaluate_rational(plain, &lookup(&sample))
            {
                prop_assert_eq!(got, Rational::from_integer(expected as i64), "{}", arena.display(plain));
            }
            prop_assert!(arena.range(e).contains(expected as i64), "{} is {} at {:?}, not in {:?}", arena.display(e), expected, sample, arena.range(e));
            prop_assert!(arena.divisor(e) != 0 && expected % i128::from(arena.divisor(e)) == 0 || expected == 0);
        }
    }

    #[test]
    fn what_is_printed_parses_to_the_same_handle_and_prints_alike_elsewhere(
        tree in trees(),
        facts in proptest::array::uniform4(facts()),
    ) {
        let mut arena = arena();
        if assume(&mut arena, &facts).is_none() { return Ok(()) }
        let Ok(e) = build(&mut arena, &tree) else { return Ok(()) };
        let text = arena.display(e).to_string();
        let reparsed = arena.parse(&text);
        let shown = reparsed.as_ref().map(|e| arena.display(*e).to_string());
        prop_assert_eq!(&reparsed, &Ok(e), "{} became {:?}", text, shown);
        let mut other = ExprArena::new();
        assume(&mut other, &facts);
        let elsewhere = other.parse(&text).map(|e| other.display(e).to_string());
        prop_assert_eq!(elsewhere, Ok(text));
    }

    #[test]
    fn substitution_commutes_with_evaluation(
        tree in trees(),
        replacement in trees(),
        picks in proptest::collection::vec(proptest::array::uniform4(0i64..12), 12),
    ) {
        let mut arena = arena();
        let (Ok(e), Ok(new)) = (build(&mut arena, &tree), build(&mut arena, &replacement)) else { return Ok(()) };
        // A symbol that may be negative must not take the place of one that may not.
        if !arena.range(new).at_least(0) { return Ok(()) }
        let Ok(substituted) = arena.substitute(e, &mut |symbol| (symbol.name() == "p").then_some(new)) else { return Ok(()) };
        for sample in picks {
            let Some(inner) = value(&replacement, &sample) else { continue };
            let mut outer = sample;
            outer[0] = inner as i64;
            let Some(expected) = value(&tree, &outer) else { continue };
            match arena.evaluate(substituted, &lookup(&sample)) {
                Ok(got) => prop_assert_eq!(i128::from(got), expected, "{}", arena.display(substituted)),
                Err(error) => prop_assert!(matches!(error, EvalError::Overflow), "{}", error),
            }
        }
    }

    #[test]
    fn the_parser_never_panics(text in "[a-c0-9+*/%(), -]{0,24}|(min|max|mod|floordiv)\\(.{0,12}") {
        let mut arena = arena();
        if let Ok(e) = arena.parse(&text) {
            let printed = arena.display(e).to_string();
            prop_assert_eq!(arena.parse(&printed), Ok(e));
        }
    }
}
