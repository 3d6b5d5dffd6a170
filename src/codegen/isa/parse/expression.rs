//! Expressions of assembler text: numbers, symbols, and the operators of LLVM's assembler with its
//! precedence.
//!
//! Precedence, lowest first: `||`; `&&`; comparisons, which give -1 for true; `+ -`; `| ^ &`; `* / % << >>`
//! (LLVM, AsmParser's `getGNUBinOpPrecedence`).

use super::cursor::StatementCursor;
use super::error::{InstructionFault, LineError};

/// A number, or a place relative to the beginning of a section.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct ExpressionValue {
    /// The section, by a number that the owner of the symbols gives it.
    pub section: Option<u32>,
    /// The number.
    pub offset: i64,
}

impl ExpressionValue {
    /// A plain number.
    pub const fn number(offset: i64) -> ExpressionValue {
        ExpressionValue { section: None, offset }
    }
}

/// Gives symbols their values.
pub trait SymbolValues {
    /// What a symbol stands for.
    ///
    /// # Errors
    /// The fault of the symbol, usually that it is not known (yet).
    fn symbol(&self, name: &str) -> Result<ExpressionValue, InstructionFault>;

    /// The place of the statement that holds the expression.
    fn here(&self) -> Option<ExpressionValue> {
        None
    }
}

/// Knows no symbols.
pub(crate) struct NoSymbols;

impl SymbolValues for NoSymbols {
    fn symbol(&self, name: &str) -> Result<ExpressionValue, InstructionFault> {
        Err(InstructionFault::Symbol { name: name.to_owned() })
    }
}

/// How the address of a symbol is put into an instruction: the word after its `@`.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Variant {
    /// Low half of the distance from the literal to the symbol.
    Rel32Low,
    /// High half of it.
    Rel32High,
    /// The whole distance, which data alone can hold.
    Rel64,
}

/// An expression.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Expression {
    /// A number.
    Number(i64),
    /// A symbol.
    Symbol(String),
    /// `.`: where the statement is.
    Here,
    /// An operator and its operand.
    Unary(Unary, Box<Expression>),
    /// An operator between two.
    Binary(Binary, Box<Expression>, Box<Expression>),
}

/// Operators before one expression.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub enum Unary {
    Negate,
    Not,
    IsZero,
}

/// Operators between two expressions.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub enum Binary {
    LogicalOr,
    LogicalAnd,
    Equal,
    NotEqual,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
    Add,
    Subtract,
    Or,
    Xor,
    And,
    Multiply,
    Divide,
    Remainder,
    ShiftLeft,
    ShiftRight,
}

/// Text, operator and precedence; longer texts before those that are prefixes of them.
const OPERATORS: [(&str, Binary, u32); 19] = [
    ("||", Binary::LogicalOr, 1),
    ("&&", Binary::LogicalAnd, 2),
    ("==", Binary::Equal, 3),
    ("!=", Binary::NotEqual, 3),
    ("<>", Binary::NotEqual, 3),
    ("<<", Binary::ShiftLeft, 6),
    (">>", Binary::ShiftRight, 6),
    ("<=", Binary::LessEqual, 3),
    (">=", Binary::GreaterEqual, 3),
    ("<", Binary::Less, 3),
    (">", Binary::Greater, 3),
    ("+", Binary::Add, 4),
    ("-", Binary::Subtract, 4),
    ("|", Binary::Or, 5),
    ("^", Binary::Xor, 5),
    ("&", Binary::And, 5),
    ("*", Binary::Multiply, 6),
    ("/", Binary::Divide, 6),
    ("%", Binary::Remainder, 6),
];

impl Expression {
    /// Its value.
    ///
    /// # Errors
    /// An unknown symbol, a division by zero, or an operation on addresses that gives neither a number nor an
    /// address.
    pub fn value(&self, symbols: &dyn SymbolValues) -> Result<ExpressionValue, InstructionFault> {
        match self {
            Expression::Number(number) => Ok(ExpressionValue::number(*number)),
            Expression::Symbol(name) => symbols.symbol(name),
            Expression::Here => symbols.here().ok_or(InstructionFault::NotConstant),
            Expression::Unary(operator, inner) => {
                let ExpressionValue { section: None, offset } = inner.value(symbols)? else {
                    return Err(InstructionFault::NotConstant);
                };
                Ok(ExpressionValue::number(match operator {
                    Unary::Negate => offset.wrapping_neg(),
                    Unary::Not => !offset,
                    Unary::IsZero => (offset == 0).into(),
                }))
            }
            Expression::Binary(..) => {
                // Long sums lean to the left, so that side is walked iteratively and takes no stack.
                let (mut first, mut rest) = (self, Vec::new());
                while let Expression::Binary(operator, left, right) = first {
                    rest.push((*operator, right));
                    first = left;
                }
                let mut value = first.value(symbols)?;
                for (operator, right) in rest.into_iter().rev() {
                    value = combine(operator, value, right.value(symbols)?)?;
                }
                Ok(value)
            }
        }
    }

    /// Its value, which has to be a plain number.
    ///
    /// # Errors
    /// See [`value`](Self::value).
    pub fn number(&self, symbols: &dyn SymbolValues) -> Result<i64, InstructionFault> {
        match self.value(symbols)? {
            ExpressionValue { section: None, offset } => Ok(offset),
            _ => Err(InstructionFault::NotConstant),
        }
    }
}

fn combine(
    operator: Binary,
    left: ExpressionValue,
    right: ExpressionValue,
) -> Result<ExpressionValue, InstructionFault> {
    let (a, b) = (left.offset, right.offset);
    match (operator, left.section, right.section) {
        (Binary::Add, section, None) | (Binary::Add, None, section) => {
            return Ok(ExpressionValue { section, offset: a.wrapping_add(b) });
        }
        (Binary::Subtract, section, None) => {
            return Ok(ExpressionValue { section, offset: a.wrapping_sub(b) });
        }
        // The rest are differences and comparisons of places in one section, and operations on numbers.
        (operator, left, right) if left == right => {
            if left.is_some() && !(operator == Binary::Subtract || is_comparison(operator)) {
                return Err(InstructionFault::NotConstant);
            }
        }
        _ => return Err(InstructionFault::NotConstant),
    }
    let truth = |yes: bool| if yes { -1 } else { 0 };
    let shift = |by: i64| u32::try_from(by).ok().filter(|&by| by < 64);
    Ok(ExpressionValue::number(match operator {
        Binary::LogicalOr => (a != 0 || b != 0).into(),
        Binary::LogicalAnd => (a != 0 && b != 0).into(),
        Binary::Equal => truth(a == b),
        Binary::NotEqual => truth(a != b),
        Binary::Less => truth(a < b),
        Binary::LessEqual => truth(a <= b),
        Binary::Greater => truth(a > b),
        Binary::GreaterEqual => truth(a >= b),
        Binary::Add => a.wrapping_add(b),
        Binary::Subtract => a.wrapping_sub(b),
        Binary::Or => a | b,
        Binary::Xor => a ^ b,
        Binary::And => a & b,
        Binary::Multiply => a.wrapping_mul(b),
        Binary::Divide if b == 0 => return Err(InstructionFault::Division),
        Binary::Remainder if b == 0 => return Err(InstructionFault::Division),
        Binary::Divide => a.wrapping_div(b),
        Binary::Remainder => a.wrapping_rem(b),
        Binary::ShiftLeft => shift(b).map_or(0, |by| a << by),
        Binary::ShiftRight => shift(b).map_or(0, |by| (a as u64 >> by) as i64),
    }))
}

const fn is_comparison(operator: Binary) -> bool {
    use Binary::*;
    matches!(operator, Equal | NotEqual | Less | LessEqual | Greater | GreaterEqual)
}

/// The most parts of one expression: more is not assembler text.
const MOST_PARTS: u32 = 500;
/// The deepest nesting of parts: reader and evaluation are recursive, and a thread may have little stack.
const MOST_NESTED: u32 = 64;

/// Where an expression is read.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(in crate::codegen) enum ExpressionPlace {
    /// Anywhere.
    Plain,
    /// Between two bars, which mean an absolute value.
    BetweenBars,
}

/// Reads an expression.
pub(in crate::codegen) fn parse(
    cursor: &mut StatementCursor,
    place: ExpressionPlace,
) -> Result<Expression, LineError> {
    match parse_address(cursor, place)? {
        (expression, None) => Ok(expression),
        (_, Some(_)) => Err(cursor.fault(InstructionFault::NotConstant)),
    }
}

/// Reads an expression with a symbol that may have a variant: `symbol@rel32@lo+4`.
pub(in crate::codegen) fn parse_address(
    cursor: &mut StatementCursor,
    place: ExpressionPlace,
) -> Result<(Expression, Option<Variant>), LineError> {
    let mut reader = ExpressionReader { parts: 0, nested: 0, place, variant: None };
    let expression = reader.binary(cursor, 1)?;
    Ok((expression, reader.variant))
}

struct ExpressionReader {
    parts: u32,
    nested: u32,
    place: ExpressionPlace,
    variant: Option<Variant>,
}

const VARIANTS: [(&str, Variant); 3] =
    [("rel32@lo", Variant::Rel32Low), ("rel32@hi", Variant::Rel32High), ("rel64", Variant::Rel64)];

impl ExpressionReader {
    fn count(&mut self, cursor: &StatementCursor) -> Result<(), LineError> {
        self.parts += 1;
        if self.parts > MOST_PARTS { Err(cursor.fault(InstructionFault::TooLong)) } else { Ok(()) }
    }

    fn operator(&self, cursor: &StatementCursor) -> Option<(&'static str, Binary, u32)> {
        let bar = |text: &str| self.place == ExpressionPlace::BetweenBars && text.starts_with('|');
        OPERATORS.into_iter().find(|(text, ..)| cursor.rest().starts_with(text) && !bar(text))
    }

    /// Reads operators of at least this precedence, each with all operands of higher precedence.
    fn binary(&mut self, cursor: &mut StatementCursor, least: u32) -> Result<Expression, LineError> {
        let mut left = self.unary(cursor)?;
        while let Some((text, operator, precedence)) = self.operator(cursor).filter(|found| found.2 >= least)
        {
            self.count(cursor)?;
            cursor.advance(text.len());
            let right = self.binary(cursor, precedence + 1)?;
            left = Expression::Binary(operator, Box::new(left), Box::new(right));
        }
        Ok(left)
    }

    /// Every part is read here, with all parts inside it.
    fn unary(&mut self, cursor: &mut StatementCursor) -> Result<Expression, LineError> {
        self.count(cursor)?;
        if self.nested == MOST_NESTED {
            return Err(cursor.fault(InstructionFault::TooLong));
        }
        self.nested += 1;
        let part = self.part(cursor);
        self.nested -= 1;
        part
    }

    fn part(&mut self, cursor: &mut StatementCursor) -> Result<Expression, LineError> {
        let operator = match cursor.peek() {
            Some(b'-') => Some(Unary::Negate),
            Some(b'~') => Some(Unary::Not),
            Some(b'!') => Some(Unary::IsZero),
            Some(b'+') => None,
            _ => return self.primary(cursor),
        };
        cursor.advance(1);
        let inner = self.unary(cursor)?;
        Ok(match operator {
            Some(operator) => Expression::Unary(operator, Box::new(inner)),
            None => inner,
        })
    }

    fn variant(&mut self, cursor: &mut StatementCursor) -> Result<(), LineError> {
        let at = *cursor;
        cursor.advance(1);
        let rest = cursor.rest();
        let end = rest.bytes().position(|b| !b.is_ascii_alphanumeric() && b != b'@').unwrap_or(rest.len());
        let found = VARIANTS.iter().find(|(name, _)| *name == &rest[..end]);
        let Some((_, variant)) = found.filter(|_| self.variant.is_none()) else {
            return Err(at.expected("nothing, `@rel32@lo` or `@rel32@hi`"));
        };
        self.variant = Some(*variant);
        cursor.advance(end);
        Ok(())
    }

    fn primary(&mut self, cursor: &mut StatementCursor) -> Result<Expression, LineError> {
        if cursor.eat("(") {
            let place = std::mem::replace(&mut self.place, ExpressionPlace::Plain);
            let inner = self.binary(cursor, 1)?;
            self.place = place;
            cursor.expect(")")?;
            return Ok(inner);
        }
        if let Some(name) = cursor.take_name() {
            if cursor.peek() == Some(b'@') {
                self.variant(cursor)?;
            }
            return Ok(if name == "." { Expression::Here } else { Expression::Symbol(name.to_owned()) });
        }
        match cursor.peek() {
            Some(b'0'..=b'9') => {}
            Some(b'\'') => return character(cursor),
            Some(b'"') => {
                let name = cursor.take_quoted().ok_or_else(|| cursor.expected("a closing quote"))?;
                return Ok(Expression::Symbol(name.to_owned()));
            }
            _ => return Err(cursor.expected("a number or a symbol")),
        }
        let digits = digits(cursor);
        if let Some(label) = local_label(digits) {
            cursor.advance(digits.len());
            return Ok(Expression::Symbol(label.to_owned()));
        }
        let number = integer(digits)
            .ok_or_else(|| cursor.fault(InstructionFault::Number { text: digits.to_owned() }))?;
        cursor.advance(digits.len());
        Ok(Expression::Number(number))
    }
}

/// `'a'`
fn character(cursor: &mut StatementCursor) -> Result<Expression, LineError> {
    let bytes = cursor.rest().as_bytes();
    match bytes {
        [_, value @ 0x20..=0x7e, b'\'', ..] if *value != b'\\' => {
            cursor.advance(3);
            Ok(Expression::Number((*value).into()))
        }
        // LLVM, AsmLexer's `LexSingleQuote`.
        [_, b'\\', value @ 0x20..=0x7e, b'\'', ..] => {
            cursor.advance(4);
            Ok(Expression::Number(match value {
                b'n' => b'\n'.into(),
                b't' => b'\t'.into(),
                b'b' => 8,
                other => (*other).into(),
            }))
        }
        _ => Err(cursor.expected("a character between quotes")),
    }
}

/// Digits and letters that come next.
pub(in crate::codegen) fn digits<'a>(cursor: &StatementCursor<'a>) -> &'a str {
    let rest = cursor.rest();
    let end =
        rest.bytes().position(|byte| !byte.is_ascii_alphanumeric() && byte != b'_').unwrap_or(rest.len());
    &rest[..end]
}

/// `1b` and `1f` are the last and the next label `1`; `0b1` is a number.
fn local_label(digits: &str) -> Option<&str> {
    let number = digits.strip_suffix(['b', 'f'])?;
    number.bytes().all(|byte| byte.is_ascii_digit()).then_some(digits)
}

/// An integer: decimal, hexadecimal, octal or binary.
pub(in crate::codegen) fn integer(digits: &str) -> Option<i64> {
    wide_integer(digits).and_then(|number| u64::try_from(number).ok()).map(|number| number as i64)
}

/// The same of up to 128 bits.
pub(in crate::codegen) fn wide_integer(digits: &str) -> Option<u128> {
    let lower = digits.to_ascii_lowercase();
    let (digits, base) = match lower.as_bytes() {
        [b'0', b'x', ..] => (&lower[2..], 16),
        [b'0', b'b', ..] => (&lower[2..], 2),
        [b'0', b'o', ..] => (&lower[2..], 8),
        [b'0', _, ..] => (&lower[1..], 8),
        _ => (lower.as_str(), 10),
    };
    u128::from_str_radix(digits, base).ok()
}

/// Length of the float that comes next: digits with a point or an exponent, for hexadecimal ones always with
/// an exponent. Integers are not floats.
pub(in crate::codegen) fn float_length(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    if text.starts_with("0x") || text.starts_with("0X") {
        let digits = bytes[2..].iter().take_while(|byte| byte.is_ascii_hexdigit() || **byte == b'.').count();
        let rest = bytes[2 + digits..].strip_prefix(b"p").or(bytes[2 + digits..].strip_prefix(b"P"))?;
        let sign = usize::from(matches!(rest.first(), Some(b'+' | b'-')));
        let exponent = rest[sign..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        return (exponent > 0).then_some(2 + digits + 1 + sign + exponent);
    }
    let run = |from: usize| bytes[from..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    let whole = run(0);
    let mut end = whole;
    let mut is_float = false;
    if bytes.get(end) == Some(&b'.') {
        let fraction = run(end + 1);
        if whole + fraction == 0 {
            return None;
        }
        end += 1 + fraction;
        is_float = true;
    }
    if whole + end > 0 && matches!(bytes.get(end), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(bytes.get(end + 1), Some(b'+' | b'-')));
        let exponent = if end + 1 + sign <= bytes.len() { run(end + 1 + sign) } else { 0 };
        if exponent > 0 {
            end += 1 + sign + exponent;
            is_float = true;
        }
    }
    is_float.then_some(end)
}

/// The value of such a text; none if it is too large.
pub(in crate::codegen) fn float(text: &str) -> Option<f64> {
    let value = match text.get(..2) {
        Some("0x" | "0X") => {
            let (digits, exponent) = text[2..].split_once(['p', 'P'])?;
            let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
            let mut value = 0.0;
            for digit in whole.chars().chain(fraction.chars()) {
                value = value * 16.0 + f64::from(digit.to_digit(16)?);
            }
            let exponent: i32 = exponent.parse().ok()?;
            let places = i32::try_from(fraction.len()).ok()?;
            value * f64::from(exponent.checked_sub(places.checked_mul(4)?)?).exp2()
        }
        _ => text.parse().ok()?,
    };
    value.is_finite().then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(text: &str) -> Result<i64, InstructionFault> {
        let mut cursor = StatementCursor::new(text);
        let parsed = parse(&mut cursor, ExpressionPlace::Plain).map_err(|error| error.fault)?;
        assert!(cursor.is_at_end(), "{text}: {:?} is left", cursor.rest());
        parsed.number(&NoSymbols)
    }

    #[test]
    fn operators_bind_as_in_llvm() {
        for (text, expected) in [
            ("1+2*3", 7),
            ("(1<<4)|3", 19),
            ("1 << 4 - 1", 15),
            ("1|2+4", 7),
            ("6 - 2 - 1", 3),
            ("~0", -1),
            ("!5 + !0", 1),
            ("-(3)", -3),
            ("7 == 7", -1),
            ("1 < 0 || 3", 1),
            ("0x10 + 010 + 0b11 + 9", 16 + 8 + 3 + 9),
            ("0xffffffffffffffff", -1),
            ("-8 >> 60", 15),
            ("7 % 4 / 2", 1),
            ("'a'", 97),
            ("'\\n' + '\\\\'", 10 + 92),
            ("1 << 64", 0),
        ] {
            assert_eq!(number(text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn what_is_no_number_is_said() {
        assert_eq!(number("1/0"), Err(InstructionFault::Division));
        assert_eq!(number("x"), Err(InstructionFault::Symbol { name: "x".into() }));
        assert_eq!(number("09"), Err(InstructionFault::Number { text: "09".into() }));
        assert_eq!(number("0x"), Err(InstructionFault::Number { text: "0x".into() }));
        assert_eq!(
            number("18446744073709551616"),
            Err(InstructionFault::Number { text: "18446744073709551616".into() })
        );
        assert_eq!(number(&"(".repeat(10_000)), Err(InstructionFault::TooLong));
        assert_eq!(number(&"1+".repeat(10_000)), Err(InstructionFault::TooLong));
        assert_eq!(number(&"-".repeat(10_000)), Err(InstructionFault::TooLong));
        let nested = |depth: usize| number(&("(".repeat(depth) + "7" + &")".repeat(depth)));
        assert_eq!((nested(63), nested(64)), (Ok(7), Err(InstructionFault::TooLong)));
        assert_eq!(number(&("1+".repeat(200) + "1")), Ok(201));
    }

    #[test]
    fn floats_end_where_they_end() {
        for (text, length) in
            [("1.0", Some(3)), ("1.", Some(2)), (".5", Some(2)), ("2e3", Some(3)), ("1.5e-3x", Some(6))]
        {
            assert_eq!(float_length(text), length, "{text}");
        }
        assert_eq!(
            (float_length("0x1.8p1,"), float("0x1.8p1"), float("0x.8p-2")),
            (Some(7), Some(3.0), Some(0.125))
        );
        assert_eq!((float("1e999"), float("0x1p9999")), (None, None));
        for text in ["1", "1e", "e5", ".", "0x1e3", "1b", "0x1.8", "0x1p"] {
            assert_eq!(float_length(text), None, "{text}");
        }
    }
}
