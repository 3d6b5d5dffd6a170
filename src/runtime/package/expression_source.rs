//! Launch expressions as source of Rust and of C, whose integer arithmetic is written alike: only the types
//! and the names of four helpers differ, which each source defines for itself.

use std::fmt::Write;

use crate::ir::expr::{Atom, Expr, ExprArena, Symbol};
use crate::runtime::executable::{Executable, Parameter};

/// The expression as source, with every symbol as its name in lower case. All numbers are 64-bit integers.
pub(super) fn source_of(arena: &ExprArena, e: Expr) -> String {
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
            atoms.iter().map(|&atom| atom_source(arena, arena.atom(atom))).collect();
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

fn atom_source(arena: &ExprArena, atom: Atom) -> String {
    let (name, a, b) = match atom {
        Atom::Symbol(symbol) => return symbol_source(symbol),
        Atom::FloorDiv(a, b) => ("floor_div", a, b),
        Atom::Mod(a, b) => ("floor_mod", a, b),
        Atom::Min(a, b) => ("least", a, b),
        Atom::Max(a, b) => ("most", a, b),
    };
    format!("{name}({}, {})", source_of(arena, a), source_of(arena, b))
}

/// A symbol as a name of Rust and of C: K/32 is `k_by_32`.
pub(super) fn symbol_source(symbol: Symbol) -> String {
    name_source(&symbol.name().replace('/', "_by_"))
}

/// A name as one of Rust and of C, in lower case.
pub(super) fn name_source(name: &str) -> String {
    let plain = name.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '_' });
    let plain: String = plain.collect();
    let starts_well = plain.starts_with(|c: char| c.is_ascii_alphabetic());
    // Words of either language.
    const TAKEN: [&str; 71] = [
        "abstract", "alignas", "as", "async", "auto", "await", "become", "bool", "box", "break", "case",
        "char", "class", "const", "continue", "crate", "default", "delete", "device", "do", "double", "dyn",
        "else", "enum", "extern", "false", "final", "float", "fn", "for", "function", "gen", "goto", "if",
        "impl", "in", "int", "let", "long", "loop", "macro", "match", "mod", "module", "move", "mut", "new",
        "override", "pub", "ref", "register", "return", "self", "short", "signed", "static", "stream",
        "struct", "super", "switch", "template", "this", "trait", "true", "try", "type", "typedef", "union",
        "unsafe", "use", "while",
    ];
    match starts_well && !TAKEN.contains(&&*plain) {
        true => plain,
        false => format!("{plain}_"),
    }
}

/// Names of the arguments of a kernel, each once.
pub(super) fn argument_names(executable: &Executable) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for parameter in executable.parameters() {
        let name = match parameter {
            Parameter::Buffer { name, .. } | Parameter::Log { name, .. } | Parameter::Scalar { name, .. } => {
                name_source(name)
            }
            Parameter::Symbol { symbol, .. } => format!("size_{}", symbol_source(*symbol)),
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
