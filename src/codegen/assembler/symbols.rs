//! Symbols: labels, numbers, and their properties.
#![expect(clippy::disallowed_types, reason = "looked up, never iterated")]

use std::cell::Cell;
use std::rc::Rc;

use rustc_hash::FxHashMap;

use crate::codegen::isa::parse::{Expression, ExpressionValue, InstructionFault, SymbolValues as Resolve};
use crate::codegen::object::descriptor::DESCRIPTOR_SIZE;

/// What a symbol stands for.
#[derive(Clone, Debug)]
pub(super) enum SymbolDefinition {
    /// A place in a section.
    Label(ExpressionValue),
    /// A number, or an expression that becomes known later, as seen from its place.
    Set(Expression, Option<ExpressionValue>),
}

/// Binding, as in `st_info`.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub(super) enum Binding {
    #[default]
    Local = 0,
    Global = 1,
    Weak = 2,
}

/// A symbol and its properties.
#[derive(Clone, Debug, Default)]
pub(super) struct AssemblerSymbol {
    pub name: String,
    pub definition: Option<SymbolDefinition>,
    pub binding: Binding,
    /// `st_other`
    pub visibility: u8,
    /// `st_type`
    pub kind: u8,
    pub size: Option<(Expression, ExpressionValue)>,
    /// The line that mentions it first.
    pub line: usize,
}

/// All of them in the order in which they are mentioned.
#[derive(Default, Debug)]
pub(super) struct Symbols {
    pub all: Vec<AssemblerSymbol>,
    by_name: FxHashMap<String, usize>,
    /// Numbers of sections by their names, which are symbols too.
    sections: FxHashMap<String, u32>,
    /// How often each numeric label was defined.
    local_counts: FxHashMap<String, u32>,
}

/// Expressions may refer to others, but no sensible text nests them more deeply.
const MOST_DEPTH: u32 = 20;
/// The most symbols that one expression depends on, counted as often as they are mentioned.
const MOST_LOOKUPS: u32 = 1000;

impl Symbols {
    /// The symbol of that name, entered if it is new.
    pub(super) fn entry(&mut self, name: &str, line: usize) -> &mut AssemblerSymbol {
        let index = match self.by_name.get(name) {
            Some(&index) => index,
            None => {
                let index = self.all.len();
                self.all.push(AssemblerSymbol { name: name.to_owned(), line, ..AssemblerSymbol::default() });
                self.by_name.insert(name.to_owned(), index);
                index
            }
        };
        &mut self.all[index]
    }

    /// The symbol of that name.
    pub(super) fn get(&self, name: &str) -> Option<&AssemblerSymbol> {
        self.by_name.get(name).map(|&index| &self.all[index])
    }

    /// Defines a label.
    pub(super) fn label(
        &mut self,
        name: &str,
        place: ExpressionValue,
        line: usize,
    ) -> Result<(), InstructionFault> {
        let name = match name.bytes().all(|byte| byte.is_ascii_digit()) {
            true => {
                let count = self.local_counts.entry(name.to_owned()).or_default();
                *count += 1;
                numbered(name, *count)
            }
            false => name.to_owned(),
        };
        let symbol = self.entry(&name, line);
        if symbol.definition.is_some() {
            return Err(InstructionFault::Other(format!("`{name}` is defined twice")));
        }
        symbol.definition = Some(SymbolDefinition::Label(place));
        Ok(())
    }

    /// Gives a symbol a value; a number may be changed.
    pub(super) fn set(
        &mut self,
        name: &str,
        value: Expression,
        here: Option<ExpressionValue>,
        line: usize,
    ) -> Result<(), InstructionFault> {
        let symbol = self.entry(name, line);
        if matches!(symbol.definition, Some(SymbolDefinition::Label(_))) {
            return Err(InstructionFault::Other(format!("`{name}` is a label")));
        }
        symbol.definition = Some(SymbolDefinition::Set(value, here));
        Ok(())
    }

    /// Gives the symbol of a descriptor what the kernel's has by now; directives after this are for one of
    /// them. A kernel that others see is protected, so that the distance to it cannot change (LLVM,
    /// `EmitAmdhsaKernelDescriptor`).
    pub(super) fn describe(&mut self, kernel: &str, descriptor: &str, line: usize) {
        const OBJECT: u8 = 1;
        const PROTECTED: u8 = 3;
        let symbol = self.entry(kernel, line);
        let (binding, visibility) = (symbol.binding, symbol.visibility);
        if visibility == 0 {
            symbol.visibility = PROTECTED;
        }
        let symbol = self.entry(descriptor, line);
        (symbol.binding, symbol.visibility, symbol.kind) = (binding, visibility, OBJECT);
        let size = Expression::Number(DESCRIPTOR_SIZE as i64);
        symbol.size.get_or_insert((size, ExpressionValue::number(0)));
    }

    /// Makes the name of a section stand for its beginning, unless a symbol has that name.
    pub(super) fn section(&mut self, name: &str, section: u32) {
        self.sections.entry(name.to_owned()).or_insert(section);
    }

    /// The beginning of the section of that name.
    fn section_start(&self, name: &str) -> Option<ExpressionValue> {
        let section = Some(*self.sections.get(name)?);
        Some(ExpressionValue { section, offset: 0 })
    }

    /// The value of a symbol that is already a number.
    pub(super) fn number(&self, name: &str) -> Option<i64> {
        match self.get(name)?.definition {
            Some(SymbolDefinition::Set(Expression::Number(number), _)) => Some(number),
            _ => None,
        }
    }

    /// The expression with `1b` and `1f` replaced by the names of the labels that they mean here.
    pub(super) fn fix_locals(&self, expression: Expression) -> Result<Expression, InstructionFault> {
        Ok(match expression {
            Expression::Symbol(name) if name.starts_with(|c: char| c.is_ascii_digit()) => {
                let (number, direction) = name.split_at(name.len() - 1);
                let count = self.local_counts.get(number).copied().unwrap_or(0);
                match direction {
                    "b" if count == 0 => {
                        return Err(InstructionFault::Other(format!(
                            "there is no label `{number}` before this"
                        )));
                    }
                    "b" => Expression::Symbol(numbered(number, count)),
                    _ => Expression::Symbol(numbered(number, count + 1)),
                }
            }
            Expression::Unary(operator, inner) => {
                Expression::Unary(operator, Box::new(self.fix_locals(*inner)?))
            }
            Expression::Binary(operator, left, right) => Expression::Binary(
                operator,
                Box::new(self.fix_locals(*left)?),
                Box::new(self.fix_locals(*right)?),
            ),
            other => other,
        })
    }
}

/// Numeric labels have a name of their own each, which cannot be written in a text.
fn numbered(number: &str, count: u32) -> String {
    format!("{number}\u{1}{count}")
}

/// True for names that are not in the symbol table of the object.
pub(super) fn is_temporary(name: &str) -> bool {
    name.starts_with(".L") || name.contains('\u{1}') || name.starts_with(".amdgcn.")
}

/// Symbols while lines are read: those that are numbers.
pub(super) struct NumberSymbols<'a>(pub &'a Symbols);

impl Resolve for NumberSymbols<'_> {
    fn symbol(&self, name: &str) -> Result<ExpressionValue, InstructionFault> {
        let unknown = || InstructionFault::Symbol { name: name.to_owned() };
        self.0.number(name).map(ExpressionValue::number).ok_or_else(unknown)
    }
}

/// Symbols at the end, seen from a place.
pub(super) struct SymbolPlaces<'a> {
    symbols: &'a Symbols,
    here: Option<ExpressionValue>,
    depth: u32,
    /// How many symbols may still be looked up: expressions of expressions can double with each.
    budget: Rc<Cell<u32>>,
}

impl<'a> SymbolPlaces<'a> {
    pub(super) fn new(symbols: &'a Symbols, here: Option<ExpressionValue>) -> SymbolPlaces<'a> {
        SymbolPlaces { symbols, here, depth: 0, budget: Rc::new(Cell::new(MOST_LOOKUPS)) }
    }
}

impl Resolve for SymbolPlaces<'_> {
    fn symbol(&self, name: &str) -> Result<ExpressionValue, InstructionFault> {
        let shown = || name.split('\u{1}').next().unwrap_or(name).to_owned();
        let undefined = || InstructionFault::Other(format!("`{}` is not defined", shown()));
        let definition = self.symbols.get(name).and_then(|symbol| symbol.definition.as_ref());
        let Some(definition) = definition else {
            return self.symbols.section_start(name).ok_or_else(undefined);
        };
        match definition {
            SymbolDefinition::Label(place) => Ok(*place),
            SymbolDefinition::Set(Expression::Number(number), _) => Ok(ExpressionValue::number(*number)),
            SymbolDefinition::Set(expression, here) => {
                let left = self.budget.get();
                if self.depth == MOST_DEPTH || left == 0 {
                    return Err(InstructionFault::Other(format!(
                        "`{}` depends on itself or on too many others",
                        shown()
                    )));
                }
                self.budget.set(left - 1);
                let budget = self.budget.clone();
                let inner =
                    SymbolPlaces { symbols: self.symbols, here: *here, depth: self.depth + 1, budget };
                expression.value(&inner)
            }
        }
    }

    fn here(&self) -> Option<ExpressionValue> {
        self.here
    }
}
