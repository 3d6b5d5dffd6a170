//! Expressions over symbols, in constraints: printing with as few brackets as the tree needs, and parsing
//! back to the same tree.

use std::fmt::{self, Write};

use super::cursor::{Cursor, Parsed};
use super::foreign;
use super::lex::Token;
use crate::ir::assemble::is_identifier;
use crate::ir::diagnostic::Diagnostic;
use crate::ir::expr::{SymExpr, SymNode, SymOp, Symbol};
use crate::ir::kernel::MAX_SIZE;
use crate::ir::mapping::is_value;
use crate::spelling::closest;

/// How tightly an expression binds.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Level {
    /// `a + b`
    Sum,
    /// `a * b`
    Product,
    /// `-a`
    Signed,
    /// `a`
    Primary,
}

/// An operator and how tightly it and its right operand bind.
struct Infix {
    op: SymOp,
    sign: &'static str,
    level: Level,
    right: Level,
}

const INFIX: &[Infix] = &[
    Infix { op: SymOp::Add, sign: "+", level: Level::Sum, right: Level::Product },
    Infix { op: SymOp::Sub, sign: "-", level: Level::Sum, right: Level::Product },
    Infix { op: SymOp::Mul, sign: "*", level: Level::Product, right: Level::Signed },
    Infix { op: SymOp::FloorDiv, sign: "//", level: Level::Product, right: Level::Signed },
    Infix { op: SymOp::Mod, sign: "%", level: Level::Product, right: Level::Signed },
];

const FUNCTIONS: &[(SymOp, &str)] = &[(SymOp::Min, "min"), (SymOp::Max, "max"), (SymOp::CeilDiv, "ceildiv")];

/// The longest expression that is read, in operations. It is below the depth that expressions allow.
const MAX_OPERATIONS: u32 = 400;

/// The deepest nesting of brackets, calls and signs that is read.
const MAX_NESTING: u32 = 100;

/// Appends a symbol, quoted if its name is neither an identifier nor a number.
pub(super) fn write_symbol(out: &mut String, name: &str) {
    // Writing to a string cannot fail.
    let is_name = |symbol: Symbol| is_identifier(symbol.name()) || symbol.value().is_some();
    let symbol = Symbol::new(name);
    let plain = is_name(symbol) || symbol.scaled_from().is_some_and(|(base, _)| is_name(base));
    let _ = if plain { out.write_str(name) } else { write!(out, "\"{}\"", name.escape_default()) };
}

/// Appends an expression that has to bind at least as tightly as `level`.
pub(super) fn write_expr(out: &mut String, e: &SymExpr, level: Level) {
    write_expr_with(out, e, level, &|out, symbol| write_symbol(out, symbol.name()));
}

/// The same for an expression that may speak of values, which stand there by their names.
pub(super) fn write_expr_of_values(out: &mut String, e: &SymExpr, level: Level) {
    write_expr_with(out, e, level, &|out, symbol| match is_value(symbol) {
        true => out.push_str(symbol.name()),
        false => write_symbol(out, symbol.name()),
    });
}

fn write_expr_with(out: &mut String, e: &SymExpr, level: Level, write: &dyn Fn(&mut String, Symbol)) {
    let bracket = own_level(e) < level;
    if bracket {
        out.push('(');
    }
    match e.node() {
        SymNode::Int(value) => {
            let _ = write!(out, "{value}");
        }
        SymNode::Symbol(symbol) => write(out, *symbol),
        SymNode::TooDeep => out.push_str("..."),
        SymNode::Operation(op, a, b) => {
            if is_negation(e) {
                out.push('-');
                write_expr_with(out, b, Level::Signed, write);
            } else if let Some(infix) = INFIX.iter().find(|infix| infix.op == *op) {
                write_expr_with(out, a, infix.level, write);
                let _ = write!(out, " {} ", infix.sign);
                write_expr_with(out, b, infix.right, write);
            } else {
                out.push_str(FUNCTIONS.iter().find(|row| row.0 == *op).map_or("?", |row| row.1));
                out.push('(');
                write_expr_with(out, a, Level::Sum, write);
                out.push_str(", ");
                write_expr_with(out, b, Level::Sum, write);
                out.push(')');
            }
        }
    }
    if bracket {
        out.push(')');
    }
}

/// As the text form writes it.
impl fmt::Display for SymExpr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = String::new();
        write_expr(&mut text, self, Level::Sum);
        f.pad(&text)
    }
}

/// `-x` stands for `0 - x`; with a literal it would read as a negative literal.
fn is_negation(e: &SymExpr) -> bool {
    match e.node() {
        SymNode::Operation(SymOp::Sub, a, b) => {
            a.as_integer() == Some(0) && !matches!(b.node(), SymNode::Int(_))
        }
        _ => false,
    }
}

fn own_level(e: &SymExpr) -> Level {
    match e.node() {
        SymNode::Int(value) if *value < 0 => Level::Signed,
        SymNode::Int(_) | SymNode::Symbol(_) | SymNode::TooDeep => Level::Primary,
        SymNode::Operation(..) if is_negation(e) => Level::Signed,
        SymNode::Operation(op, ..) => {
            INFIX.iter().find(|infix| infix.op == *op).map_or(Level::Primary, |infix| infix.level)
        }
    }
}

/// Reads one expression.
pub(super) fn expr(cursor: &mut Cursor<'_>) -> Parsed<SymExpr> {
    SymbolicReader { cursor, operations: 0, nesting: 0, values: ValuesInExpressions::Refused }
        .level(Level::Sum)
}

/// Reads what a constraint is about: an expression, or a scaled dimension.
pub(super) fn constrained(cursor: &mut Cursor<'_>) -> Parsed<SymExpr> {
    match cursor.at_second("/") {
        true => Ok(dimension(cursor, "a dimension")?.into()),
        false => expr(cursor),
    }
}

/// Reads one expression in which values such as `%x` may stand: each becomes a symbol of that name.
pub(super) fn expr_of_values(cursor: &mut Cursor<'_>) -> Parsed<SymExpr> {
    SymbolicReader { cursor, operations: 0, nesting: 0, values: ValuesInExpressions::Admitted }
        .level(Level::Sum)
}

/// Whether values may stand in an expression.
#[derive(Copy, Clone, PartialEq, Eq)]
enum ValuesInExpressions {
    Admitted,
    Refused,
}

/// Reads a dimension: a symbol, or a number, or the blocks of one, `K/32`.
pub(super) fn dimension(cursor: &mut Cursor<'_>, what: &str) -> Parsed<Symbol> {
    let base = plain_dimension(cursor, what)?;
    if !cursor.at("/") {
        return Ok(base);
    }
    cursor.bump();
    let at = cursor.location();
    let by = cursor.integer(1)?;
    let fault = || {
        let fault = Diagnostic::invalid(format!("a dimension is not divided by {by}")).at(Some(at));
        fault.help("`K/32` is the dimension of the blocks of 32 elements of K")
    };
    u32::try_from(by).ok().filter(|&by| by > 1).map(|by| base.scaled(by)).ok_or_else(fault)
}

/// Reads a symbol, or a number.
fn plain_dimension(cursor: &mut Cursor<'_>, what: &str) -> Parsed<Symbol> {
    if !matches!(cursor.peek(), Token::Integer(_)) {
        return symbol(cursor, what);
    }
    let at = cursor.location();
    let size = cursor.integer(1)?;
    let fault = || {
        let fault = Diagnostic::invalid(format!("{size} is not a size")).at(Some(at));
        fault.help(format!("a dimension has 1 to {MAX_SIZE} elements"))
    };
    u32::try_from(size).map(Symbol::from).map_err(|_| fault())
}

/// Reads a symbol: a name, or a quoted one.
pub(super) fn symbol(cursor: &mut Cursor<'_>, what: &str) -> Parsed<Symbol> {
    let name = match cursor.peek() {
        Token::Name(name) => Symbol::new(name),
        Token::Quoted(name) => Symbol::new(name),
        _ => return Err(cursor.expected(what)),
    };
    cursor.bump();
    Ok(name)
}

struct SymbolicReader<'c, 'a> {
    cursor: &'c mut Cursor<'a>,
    operations: u32,
    nesting: u32,
    values: ValuesInExpressions,
}

impl SymbolicReader<'_, '_> {
    /// Reads an expression one level deeper.
    fn nested(&mut self, read: impl FnOnce(&mut Self) -> Parsed<SymExpr>) -> Parsed<SymExpr> {
        if self.nesting == MAX_NESTING {
            let text = format!("the expression is nested more than {MAX_NESTING} deep");
            return Err(self.cursor.fault(Diagnostic::invalid(text)));
        }
        self.nesting += 1;
        let e = read(self)?;
        self.nesting -= 1;
        Ok(e)
    }

    fn count(&mut self) -> Parsed<()> {
        self.operations += 1;
        if self.operations > MAX_OPERATIONS {
            let text = format!("the expression has more than {MAX_OPERATIONS} operations");
            return Err(self.cursor.fault(Diagnostic::invalid(text)));
        }
        Ok(())
    }

    /// An expression that binds at least as tightly as `level`.
    fn level(&mut self, level: Level) -> Parsed<SymExpr> {
        let inner = match level {
            Level::Sum => Level::Product,
            Level::Product => Level::Signed,
            Level::Signed | Level::Primary => return self.signed(),
        };
        let mut left = self.level(inner)?;
        loop {
            if self.cursor.at("/") {
                let fault = Diagnostic::invalid("`/` is not an operator");
                return Err(self
                    .cursor
                    .fault(fault.help("`//` divides and rounds down, `ceildiv` rounds up")));
            }
            let found = INFIX.iter().find(|infix| infix.level == level && self.cursor.at(infix.sign));
            let Some(infix) = found else { return Ok(left) };
            self.count()?;
            self.cursor.bump();
            let right = self.level(infix.right)?;
            left = SymExpr::operation(infix.op, left, right);
        }
    }

    fn signed(&mut self) -> Parsed<SymExpr> {
        if !self.cursor.at("-") {
            return self.primary();
        }
        self.count()?;
        self.cursor.bump();
        if let Token::Integer(_) = self.cursor.peek() {
            return Ok(self.cursor.integer(-1)?.into());
        }
        Ok(-self.nested(Self::signed)?)
    }

    fn primary(&mut self) -> Parsed<SymExpr> {
        let what = "a symbol, a number or `(`";
        match *self.cursor.peek() {
            // In coordinates, the place along a scaled dimension.
            Token::Integer(_) | Token::Name(_) | Token::Quoted(_)
                if self.values == ValuesInExpressions::Admitted && self.cursor.at_second("/") =>
            {
                Ok(dimension(self.cursor, what)?.into())
            }
            Token::Integer(_) => Ok(self.cursor.integer(1)?.into()),
            Token::Sign("(") => {
                self.cursor.bump();
                let e = self.nested(|reader| reader.level(Level::Sum))?;
                self.cursor.expect(")")?;
                Ok(e)
            }
            Token::Sign("%") if self.values == ValuesInExpressions::Admitted => {
                Ok(Symbol::new(self.cursor.value_name()?).into())
            }
            Token::Name(name) if self.cursor.at_second("(") => self.nested(|reader| reader.call(name)),
            _ => Ok(symbol(self.cursor, what)?.into()),
        }
    }

    fn call(&mut self, name: &str) -> Parsed<SymExpr> {
        self.count()?;
        let Some(&(op, _)) = FUNCTIONS.iter().find(|row| row.1 == name) else {
            let fault = Diagnostic::invalid(format!("there is no function `{name}`"));
            let known = || closest(name, FUNCTIONS.iter().map(|row| row.1));
            let help = match foreign::function(name).or_else(known) {
                Some(close) => format!("did you mean `{close}`?"),
                None => "the functions are `min`, `max` and `ceildiv`".to_owned(),
            };
            return Err(self.cursor.fault(fault.help(help)));
        };
        self.cursor.bump();
        self.cursor.expect("(")?;
        let a = self.level(Level::Sum)?;
        self.cursor.expect(",")?;
        let b = self.level(Level::Sum)?;
        self.cursor.expect(")")?;
        Ok(SymExpr::operation(op, a, b))
    }
}
