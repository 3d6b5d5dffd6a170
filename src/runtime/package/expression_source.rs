//! Launch expressions as source of Rust and of C, whose integer arithmetic is written alike: only the types
//! and the names of four helpers differ, which each source defines for itself.

use std::fmt::Write;

use crate::ir::expr::{Atom, Expr, ExprArena, Symbol};
use crate::runtime::executable::{Executable, Parameter};

/// The expression as source, in which `name` says what a symbol is called. All numbers are 64-bit integers.
pub(super) fn source_of(arena: &ExprArena, e: Expr, name: &dyn Fn(Symbol) -> String) -> String {
    let terms = arena.terms_in_order(e);
    let constant = arena.constant(e);
    // The value is an integer: a sum of fractions is one quotient at the end.
    let denominators = terms.iter().map(|(coefficient, _)| *coefficient.denom());
    let common = denominators.chain([*constant.denom()]).fold(1i64, |all, d| all / gcd(all, d) * d);
    let scaled = |numerator: i64, denominator: i64| numerator * (common / denominator);
    let mut sum = String::new();
    for (coefficient, atoms) in &terms {
        let factor = scaled(*coefficient.numer(), *coefficient.denom());
        let mut factors: Vec<String> =
            atoms.iter().map(|&atom| atom_source(arena, arena.atom(atom), name)).collect();
        if factor != 1 {
            factors.insert(0, number(factor));
        }
        let separator = if sum.is_empty() { "" } else { " + " };
        // Writing to a string cannot fail.
        let _ = write!(sum, "{separator}{}", factors.join(" * "));
    }
    let constant = scaled(*constant.numer(), *constant.denom());
    if sum.is_empty() {
        sum = number(constant);
    } else if constant != 0 {
        let _ = write!(sum, " + {}", number(constant));
    }
    match common {
        1 => sum,
        _ => format!("({sum}) / {common}"),
    }
}

/// A number that may stand as an operand.
fn number(value: i64) -> String {
    if value < 0 { format!("({value})") } else { value.to_string() }
}

fn atom_source(arena: &ExprArena, atom: Atom, name: &dyn Fn(Symbol) -> String) -> String {
    let (function, a, b) = match atom {
        Atom::Symbol(symbol) => return name(symbol),
        Atom::FloorDiv(a, b) => ("floor_div", a, b),
        Atom::Mod(a, b) => ("floor_mod", a, b),
        Atom::Min(a, b) => ("least", a, b),
        Atom::Max(a, b) => ("most", a, b),
    };
    format!("{function}({}, {})", source_of(arena, a, name), source_of(arena, b, name))
}

/// A symbol as a name of Rust and of C.
fn symbol_source(symbol: Symbol) -> String {
    name_source(&format!("size_{}", symbol.name()))
}

/// What a symbol that was left open is called among the arguments of a kernel; nothing of other symbols.
pub(super) fn size_name<'a>(executable: &Executable, names: &'a [String], wanted: Symbol) -> Option<&'a str> {
    let is_it =
        |parameter: &Parameter| matches!(parameter, Parameter::Symbol { symbol, .. } if *symbol == wanted);
    let at = executable.parameters().iter().position(is_it)?;
    names.get(at).map(String::as_str)
}

/// A symbol or a number in a comment, where nothing may end the comment.
pub(super) fn comment_text(name: &str) -> String {
    name.chars().map(|c| if c.is_control() || c == '*' { ' ' } else { c }).collect()
}

/// A name as one of Rust and of C, in lower case.
pub(super) fn name_source(name: &str) -> String {
    let plain = name.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '_' });
    let plain: String = plain.collect();
    let starts_well = plain.starts_with(|c: char| c.is_ascii_alphabetic());
    match starts_well && !is_taken(&plain) {
        true => plain,
        false => format!("{plain}_"),
    }
}

/// Words of Rust, of C and of C++, and what the sources themselves call something.
const TAKEN: &str = "
    abstract as async await become box break const continue crate do dyn else enum extern false final fn for gen if impl
    in let loop macro match mod move mut override priv pub ref return self static struct super trait true try type typeof
    unsafe unsized use virtual where while yield bool char f32 f64 i8 i16 i32 i64 str u8 u16 u32 u64 usize
    auto case default double float goto inline int long register restrict short signed sizeof switch typedef union
    unsigned void volatile
    alignas alignof and and_eq asm bitand bitor catch char8_t char16_t char32_t class co_await co_return co_yield compl
    concept const_cast consteval constexpr constinit decltype delete dynamic_cast explicit export friend mutable
    namespace new noexcept not not_eq nullptr operator or or_eq private protected public reinterpret_cast requires
    static_assert static_cast template this thread_local throw typeid typename using wchar_t xor xor_eq
    arguments axis bf16 block counts device f16 f8e4m3fn f8e4m3fnuz f8e5m2 f8e5m2fnuz f8e8m0 floor_div floor_mod function
    grid groundswell launch least most package stream";

fn is_taken(name: &str) -> bool {
    TAKEN.split_whitespace().any(|word| word == name)
}

/// Names of the arguments of a kernel, each once.
pub(super) fn argument_names(executable: &Executable) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for parameter in executable.parameters() {
        let name = match parameter {
            Parameter::Buffer { name, .. } | Parameter::Log { name, .. } | Parameter::Scalar { name, .. } => {
                name_source(name)
            }
            Parameter::Symbol { symbol, .. } => symbol_source(*symbol),
        };
        let mut own = name.clone();
        let mut number = 2;
        while names.contains(&own) {
            own = format!("{name}_{number}");
            number += 1;
        }
        names.push(own);
    }
    names
}

fn gcd(a: i64, b: i64) -> i64 {
    if b == 0 { a } else { gcd(b, a % b) }
}
