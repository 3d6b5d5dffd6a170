//! Constraints: the statements of a kernel that say how its dimensions are spread, and what is assumed of
//! them.

use super::cursor::Parsed;
use super::lex::Token;
use super::parser::Parser;
use super::symbolic::{constrained, expr};
use crate::ir::constraint::{Constraint, MAX_AXES, Reordering, no_axis};
use crate::ir::diagnostic::Diagnostic;
use crate::ir::expr::{SymExpr, SymNode, SymOp};
use crate::ir::layout::{MatrixShape, Mma, MmaType};
use crate::ir::node::MmaChoice;
use crate::spelling::closest;

/// A matrix instruction's name: in lower case, like everything that belongs to the text form.
pub(super) fn mma_text(mma: Mma) -> String {
    mma.name().to_ascii_lowercase()
}

/// A matrix instruction's name, or its shape.
pub(super) fn mma_type_text(mma: MmaType) -> String {
    match mma {
        MmaType::Instruction(mma) => mma_text(mma),
        MmaType::Shape(shape) => shape.name().to_owned(),
    }
}

impl Parser<'_> {
    /// A constraint; `word`, its first word, was already read.
    pub(super) fn constraint(&mut self, word: &str) -> Parsed<Constraint> {
        match word {
            "mma" => Ok(Constraint::MmaType(self.mma_type()?)),
            "assume" => self.assumption(),
            "iterations" => {
                let dim = constrained(&mut self.cursor)?;
                self.cursor.expect(",")?;
                let first = expr(&mut self.cursor)?;
                self.cursor.expect(",")?;
                let count = expr(&mut self.cursor)?;
                let step = match self.cursor.take(",") {
                    true if self.cursor.take_word("step") => expr(&mut self.cursor)?,
                    true => return Err(self.cursor.expected("`step` and a number")),
                    false => 1i64.into(),
                };
                Ok(Constraint::Iterations { dim, first, count, step })
            }
            "emulate" => Ok(Constraint::Emulate(self.cursor.dtype()?)),
            "persistent" => Ok(Constraint::Persistent { workgroups: expr(&mut self.cursor)? }),
            "reorder" => self.order().map(Constraint::Reorder),
            _ => {
                let dim = constrained(&mut self.cursor)?;
                self.cursor.expect(",")?;
                let tile = expr(&mut self.cursor)?;
                match word {
                    "tile" => return Ok(Constraint::Tiling { dim, tile }),
                    "wave" => return Ok(Constraint::Wave { dim, tile }),
                    _ => {}
                }
                self.cursor.expect(",")?;
                Ok(Constraint::Workgroup { dim, tile, axis: self.axis()? })
            }
        }
    }

    pub(super) fn axis(&mut self) -> Parsed<u32> {
        let at = self.cursor.location();
        let axis = u32::try_from(self.cursor.integer(1)?).ok().filter(|&axis| (axis as usize) < MAX_AXES);
        axis.ok_or_else(|| no_axis().at(Some(at)))
    }

    /// What follows `reorder`.
    fn order(&mut self) -> Parsed<Reordering> {
        if self.cursor.take_word("grouped") {
            return Ok(Reordering::Grouped(self.number()?));
        }
        if self.cursor.take_word("xcd") {
            return Ok(Reordering::Xcd(self.number()?));
        }
        if self.cursor.take_word("cached") {
            return Ok(Reordering::Cached);
        }
        if !matches!(self.cursor.peek(), Token::Integer(_)) {
            return Err(self.cursor.expected("`cached`, `grouped`, `xcd` or an axis of the grid"));
        }
        let axis = self.axis()?;
        self.cursor.expect(",")?;
        Ok(Reordering::Place { axis, place: expr(&mut self.cursor)? })
    }

    fn assumption(&mut self) -> Parsed<Constraint> {
        let help = "write `assume K % 32 == 0`, `assume K >= 64` or `assume K <= 1024`";
        let at = self.cursor.location();
        let e = expr(&mut self.cursor)?;
        if self.cursor.take(">=") {
            return Ok(Constraint::AtLeast { symbol: e, least: self.cursor.signed_integer()? });
        }
        if self.cursor.take("<=") {
            return Ok(Constraint::AtMost { symbol: e, most: self.cursor.signed_integer()? });
        }
        if !self.cursor.take("==") {
            return Err(self.cursor.expected("`==`, `>=` or `<=`").help(help));
        }
        let rest = self.cursor.location();
        if self.cursor.signed_integer()? != 0 {
            return Err(Diagnostic::invalid("a remainder can be assumed to be 0 only")
                .at(Some(rest))
                .help(help));
        }
        let Some((symbol, by)) = remainder(&e) else {
            let text = "this is not the remainder of a division by a positive 32-bit integer";
            return Err(Diagnostic::invalid(text).at(Some(at)).help(help));
        };
        Ok(Constraint::Divisible { symbol, by })
    }

    /// The matrix instruction of a product in front of its operands, or its shape, if it says one.
    pub(super) fn mma_choice(&mut self) -> Parsed<MmaChoice> {
        Ok(match self.cursor.peek() {
            // A scalar is not a factor, but everywhere it reads like a value.
            Token::Name(_) if self.cursor.at_second(",") => MmaChoice::Kernel,
            Token::Name(_) | Token::Integer(_) => self.mma_type()?.into(),
            _ => MmaChoice::Kernel,
        })
    }

    /// A matrix instruction, or its shape.
    pub(super) fn mma_type(&mut self) -> Parsed<MmaType> {
        // Digits and a name stand side by side here, without a sign between them.
        let Token::Integer(rows) = *self.cursor.peek() else { return Ok(self.mma_name()?.into()) };
        let rest = MatrixShape::ALL.map(|shape| (shape, shape.name().strip_prefix(rows)));
        let found = rest.into_iter().find(|row| row.1.is_some_and(|rest| self.cursor.at_second_name(rest)));
        let Some((shape, _)) = found else {
            let fault = Diagnostic::invalid("there is no matrix instruction of this shape");
            return Err(self
                .cursor
                .fault(fault.help("write `16x16`, `32x32` or the name of an instruction")));
        };
        self.cursor.bump();
        self.cursor.bump();
        Ok(shape.into())
    }

    /// The name of a matrix instruction.
    fn mma_name(&mut self) -> Parsed<Mma> {
        let what = "a shape like `16x16`, or a matrix instruction like `f32_16x16x16_f16`";
        let Token::Name(name) = *self.cursor.peek() else { return Err(self.cursor.expected(what)) };
        let names = || Mma::all().map(|mma| (mma, mma_text(mma)));
        let Some((mma, _)) = names().find(|row| row.1 == name) else {
            let fault = Diagnostic::invalid(format!("there is no matrix instruction `{name}`"));
            let all: Vec<_> = names().map(|row| row.1).collect();
            let help = match closest(&name.to_ascii_lowercase(), all.iter().map(String::as_str)) {
                Some(close) => format!("did you mean `{close}`?"),
                None => format!("there are {}", all.join(", ")),
            };
            return Err(self.cursor.fault(fault.help(help)));
        };
        self.cursor.bump();
        Ok(mma)
    }
}

/// The dividend and divisor, if `e` is the remainder of a division by a constant.
fn remainder(e: &SymExpr) -> Option<(SymExpr, u32)> {
    match e.node() {
        SymNode::Operation(SymOp::Mod, a, by) => {
            Some((a.clone(), u32::try_from(by.as_integer()?).ok().filter(|by| *by > 0)?))
        }
        _ => None,
    }
}
