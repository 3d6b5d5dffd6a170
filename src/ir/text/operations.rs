//! Operations with one result, as the parser reads them: each family has a function that knows its words, and
//! reads what comes after one of them.

use bevy_ecs::prelude::Entity;

use super::controls::predicate;
use super::cursor::Parsed;
use super::lex::Token;
use super::parser::Parser;
use super::scope::NameMeaning;
use super::words::unknown_operation;
use crate::ir::assemble::{check_allocation, check_register};
use crate::ir::diagnostic::Location;
use crate::ir::layout::Dim;
use crate::ir::node::*;
use crate::ir::op::{LOADS, PRODUCTS};
use crate::ir::types::DType;

/// The operation that a word begins.
enum ParsedOperation {
    /// A node that is to be made.
    Node(Op, Vec<Entity>, ValueType),
    /// One that is made already, and what its name stands for.
    Made(NameMeaning),
}

/// The words of a family: what comes after one of them, or nothing for another word.
type FamilyParser<'a> = fn(&mut Parser<'a>, &str, Origin, &Location) -> Parsed<Option<ParsedOperation>>;

impl ParsedOperation {
    /// A node whose type is inferred.
    fn of(op: Op, operands: Vec<Entity>) -> Option<ParsedOperation> {
        Some(ParsedOperation::Node(op, operands, ValueType::unknown()))
    }

    /// A node that states dimensions and a dtype.
    fn stated(op: Op, operands: Vec<Entity>, dims: &[Dim], dtype: Option<DType>) -> Option<ParsedOperation> {
        Some(ParsedOperation::Node(op, operands, ValueType { dims: Dims::from_slice(dims), dtype }))
    }
}

impl<'a> Parser<'a> {
    /// The families, those with the fewest words first.
    const FAMILIES: [FamilyParser<'a>; 6] = [
        Parser::access,
        Parser::product,
        Parser::constant,
        Parser::along_dim,
        Parser::made_by_passes,
        Parser::element_wise,
    ];

    /// An operation with one result.
    pub(super) fn compute(&mut self, origin: Origin) -> Parsed<NameMeaning> {
        let Token::Name(word) = *self.cursor.peek() else { return Err(self.cursor.expected("an operation")) };
        let start = self.cursor.location();
        self.cursor.bump();
        for family in Self::FAMILIES {
            match family(self, word, origin, &start)? {
                Some(ParsedOperation::Node(op, operands, ty)) => {
                    return Ok(NameMeaning::Value(self.nodes.push(origin, op, &operands, ty)));
                }
                Some(ParsedOperation::Made(meaning)) => return Ok(meaning),
                None => {}
            }
        }
        match self.derived(origin, word)? {
            Some(node) => Ok(NameMeaning::Value(node)),
            None => Err(unknown_operation(word).at(Some(start))),
        }
    }

    /// Values without operands, and LDS buffers.
    fn constant(&mut self, word: &str, origin: Origin, start: &Location) -> Parsed<Option<ParsedOperation>> {
        let i32 = Some(DType::I32);
        Ok(match word {
            "register" => Some(self.register(origin)?),
            "constant" => ParsedOperation::of(Op::Register(self.cursor.number()?), vec![]),
            "allocate" => Some(self.allocation(origin, start)?),
            "self_index" => {
                let dim = self.dim("a dimension")?;
                ParsedOperation::stated(Op::SelfIndex(dim), vec![], &[dim], i32)
            }
            "iteration" => ParsedOperation::stated(Op::Iteration(self.dim("a dimension")?), vec![], &[], i32),
            "workgroup_id" => ParsedOperation::stated(Op::WorkgroupId(self.axis()?), vec![], &[], i32),
            "size" => ParsedOperation::stated(Op::Size(self.dim("a dimension")?), vec![], &[], i32),
            _ => None,
        })
    }

    /// The rest of a `register`.
    fn register(&mut self, origin: Origin) -> Parsed<ParsedOperation> {
        let (shape, at) = self.shape()?;
        let dims = self.nodes.dims(&shape).map_err(|fault| fault.at(Some(at)))?;
        let declared = self.cursor.location();
        let dtype = self.cursor.dtype()?;
        let at = if dtype == DType::I1 { declared } else { self.cursor.location() };
        if self.cursor.at("(") {
            let node = self.register_of(origin, &shape, dtype)?;
            return Ok(ParsedOperation::Made(NameMeaning::Value(node)));
        }
        let constant = self.cursor.number()?.read_as(dtype);
        check_register(constant, dtype).map_err(|fault| fault.at(Some(at)))?;
        Ok(ParsedOperation::Node(Op::Register(constant), vec![], ValueType { dims, dtype: Some(dtype) }))
    }

    /// The rest of an `allocate`.
    fn allocation(&mut self, origin: Origin, start: &Location) -> Parsed<ParsedOperation> {
        let (shape, at) = self.shape()?;
        let dims = self.nodes.dims(&shape).map_err(|fault| fault.at(Some(at)))?;
        let declared = self.cursor.location();
        let dtype = self.cursor.dtype()?;
        check_allocation(dtype).map_err(|fault| fault.at(Some(declared)))?;
        self.nodes.check_outside_of_loops().map_err(|fault| fault.at(Some(start.clone())))?;
        let ty = ValueType { dims, dtype: Some(dtype) };
        Ok(ParsedOperation::Made(NameMeaning::Place(self.nodes.push(origin, Op::Allocate, &[], ty))))
    }

    /// Accesses with a result.
    fn access(&mut self, word: &str, origin: Origin, _: &Location) -> Parsed<Option<ParsedOperation>> {
        if let Some(&op) = LOADS.iter().find(|op| op.row().word == word) {
            return Ok(Some(ParsedOperation::Made(self.load(origin, op)?)));
        }
        let made = match word {
            "scatter_add" => self.scatter_add(origin)?,
            _ => match AtomicOp::ALL.iter().find(|op| op.row().word == word) {
                Some(&op) => self.atomic(origin, op)?,
                None => return Ok(None),
            },
        };
        Ok(Some(ParsedOperation::Made(made)))
    }

    /// `read memory`, with a mapping or without.
    fn load(&mut self, origin: Origin, op: Op) -> Parsed<NameMeaning> {
        let memory = self.read_operand()?;
        if let Some(mapped) = self.mapping(origin)? {
            return self.mapped_load(origin, op, memory, mapped);
        }
        let node = self.accessed(origin, op, &[], memory)?;
        self.access_flags(node)?;
        Ok(NameMeaning::Value(node))
    }

    /// `atomic_add %x, memory`, with a mapping or without.
    fn atomic(&mut self, origin: Origin, op: AtomicOp) -> Parsed<NameMeaning> {
        let values = self.values(op.values())?;
        self.cursor.expect(",")?;
        let memory = self.place()?;
        let mapped = self.mapping(origin)?;
        let op = Op::Atomic(op);
        let node = match mapped {
            Some(mapped) => {
                let operands = mapped.operands_of(&values, memory);
                let node = self.nodes.push(origin, op, &operands, ValueType::unknown());
                self.nodes.map(node, mapped.mapping);
                node
            }
            None => {
                let node = self.accessed(origin, op, &values, memory)?;
                self.nodes.map_to_itself(node, memory);
                node
            }
        };
        self.access_flags(node)?;
        Ok(NameMeaning::Value(node))
    }

    fn product(&mut self, word: &str, _: Origin, _: &Location) -> Parsed<Option<ParsedOperation>> {
        let of_word = |of: &&fn(MmaChoice) -> Op| of(MmaChoice::Kernel).row().word == word;
        let Some(of) = PRODUCTS.iter().find(of_word) else { return Ok(None) };
        let op = of(self.mma_choice()?);
        let mut operands = self.values(op.row().takes.map_or(0, <[_]>::len))?;
        // A factor and its scales stand together in text, and scales come last in operands.
        if let [_, lhs_scale, rhs, rhs_scale, acc] = &mut operands[..] {
            (*lhs_scale, *rhs, *rhs_scale, *acc) = (*rhs, *acc, *lhs_scale, *rhs_scale);
        }
        Ok(ParsedOperation::of(op, operands))
    }

    /// Reductions, scans and sorts.
    fn along_dim(&mut self, word: &str, origin: Origin, _: &Location) -> Parsed<Option<ParsedOperation>> {
        if let Some(&op) = ReductionOp::ALL.iter().find(|op| op.row().word == word) {
            let (reduction, operands) = self.reduction(origin, op)?;
            return Ok(ParsedOperation::of(Op::Reduce(reduction), operands));
        }
        if let Some(&op) = ScanOp::ALL.iter().find(|op| op.row().word == word) {
            let (scan, operands) = self.scan(op)?;
            return Ok(ParsedOperation::of(Op::Scan(scan), operands));
        }
        let Some(&op) = SortOp::ALL.iter().find(|op| op.row().word == word) else { return Ok(None) };
        let value = self.value()?;
        self.along()?;
        let dim = self.dim("the dimension to sort along")?;
        Ok(ParsedOperation::of(Op::Sort(Sort { op, dim }), vec![value]))
    }

    /// `over`, before a dimension.
    fn along(&mut self) -> Parsed<()> {
        match self.cursor.take_word("over") {
            true => Ok(()),
            false => Err(self.cursor.expected("`over` and a dimension")),
        }
    }

    /// The operands of a reduction, or of the pieces of one: `%x over N`. Of several dimensions,
    /// `over [M, N]`, this is the reduction over the last one.
    fn reduction(&mut self, origin: Origin, op: ReductionOp) -> Parsed<(Reduction, Vec<Entity>)> {
        let mut values = vec![self.value()?];
        while self.cursor.take(",") {
            values.push(self.value()?);
        }
        self.along()?;
        let dim = if values.len() == 1 && self.cursor.take("[") {
            let mut dim = self.dim("a dimension to reduce")?;
            while self.cursor.take(",") {
                let one = Op::Reduce(Reduction { op, dim, parts: None });
                values = vec![self.nodes.push(origin, one, &values, ValueType::unknown())];
                dim = self.dim("a dimension to reduce")?;
            }
            self.cursor.expect("]")?;
            dim
        } else {
            self.dim("the dimension to reduce")?
        };
        let parts = match self.stage.is_some() && self.cursor.take_word("by") {
            true => Some(self.dim("the dimension that counts parts")?),
            false => None,
        };
        Ok((Reduction { op, dim, parts }, values))
    }

    /// The operands of a scan, with those that passes give it: `%x over N`.
    fn scan(&mut self, op: ScanOp) -> Parsed<(Scan, Vec<Entity>)> {
        let mut values = vec![self.value()?];
        while self.stage.is_some() && self.cursor.take(",") {
            values.push(self.value()?);
        }
        self.along()?;
        let dim = self.dim("the dimension to sum up along")?;
        let by_wave = match self.stage.is_some() && self.cursor.take_word("by") {
            true => Some(self.dim("the dimension that counts waves")?),
            false => None,
        };
        Ok((Scan { op, dim, by_wave }, values))
    }

    /// Operations that only passes make.
    fn made_by_passes(&mut self, word: &str, _: Origin, _: &Location) -> Parsed<Option<ParsedOperation>> {
        if self.stage.is_none() {
            return Ok(None);
        }
        let (op, operands, ty) = match word {
            "rearrange" => {
                let mut pieces = vec![self.value()?];
                while self.cursor.take(",") {
                    pieces.push(self.value()?);
                }
                (Op::Rearrange, pieces, ValueType::unknown())
            }
            "decode" => self.decoding()?,
            "encode" => self.encoding()?,
            _ => return Ok(None),
        };
        Ok(Some(ParsedOperation::Node(op, operands, ty)))
    }

    fn element_wise(&mut self, word: &str, origin: Origin, _: &Location) -> Parsed<Option<ParsedOperation>> {
        match word {
            "compare" => {
                let predicate = predicate(&mut self.cursor)?;
                return Ok(ParsedOperation::of(Op::Compare(predicate), self.pair(origin)?));
            }
            "broadcast" => {
                let value = self.value()?;
                let (shape, at) = self.shape()?;
                let dims = self.nodes.dims(&shape).map_err(|fault| fault.at(Some(at)))?;
                return Ok(ParsedOperation::stated(Op::Broadcast, vec![value], &dims, None));
            }
            _ => {}
        }
        let Some(op) = Op::element_wise().find(|op| op.row().word == word) else { return Ok(None) };
        Ok(match op {
            Op::Binary(_) => ParsedOperation::of(op, self.pair(origin)?),
            Op::Ternary(_) => {
                let mut operands = self.pair(origin)?;
                self.cursor.expect(",")?;
                operands.push(self.operand(origin)?);
                ParsedOperation::of(op, operands)
            }
            Op::Convert(_) => {
                let value = self.value()?;
                ParsedOperation::stated(op, vec![value], &[], Some(self.cursor.dtype()?))
            }
            _ => ParsedOperation::of(op, self.values(op.row().takes.map_or(0, <[_]>::len))?),
        })
    }
}
