//! The parser: recursive descent over statements. A fault costs its statement; parsing goes on after it.
#![expect(clippy::disallowed_types, reason = "looked up, never iterated")]

use bevy_ecs::prelude::Entity;
use rustc_hash::FxHashMap;

use super::attributes::Attributes;
use super::controls::control;
use super::cursor::{Cursor, Parsed, TextFaults};
use super::lex::Token;
use super::parser::Parser;
use super::schedule;
use super::scope::{NameMeaning, Scopes};
use super::symbolic::dimension;
use super::words::{CONSTRAINTS, stray_word};
use crate::ir::assemble::{KernelAssembler, is_identifier};
use crate::ir::diagnostic::{Diagnostic, Diagnostics, Location, SourceText};
use crate::ir::expr::ExprArena;
use crate::ir::kernel::Kernel;
use crate::ir::node::*;
use crate::ir::op::{RegionHead, STORES};
use crate::ir::schedule::WaveSchedule;
use crate::ir::types::AddressSpace;

/// The deepest nesting of loops that is read.
const MAX_LOOPS: u32 = 100;

/// A kernel, and the schedule after it if there is one.
pub(super) fn parse(text: &str, file: &str) -> Result<(Kernel, Option<WaveSchedule>), Diagnostics> {
    let mut parser = Parser {
        cursor: Cursor::new(text, file),
        nodes: KernelAssembler::new(),
        scopes: Scopes::default(),
        faults: TextFaults::default(),
        loops: 0,
        stage: None,
        constrained: true,
        expressions: ExprArena::new(),
        logical: FxHashMap::default(),
        numbered: None,
        sources: None,
        arguments: None,
        logical_body: None,
    };
    let read = parser.file().map_err(|fault| parser.fault(fault));
    match read {
        Ok(((name, at), schedule)) if parser.faults.0.is_empty() => {
            let kernel = match parser.stage.take() {
                None => parser.nodes.finish(name, at),
                Some(stage) => parser.finish_stage(name, at, stage),
            };
            let kernel =
                kernel.map_err(|fault| Diagnostics::of_text(TextFaults::first(fault), file, text))?;
            let source = SourceText { file: file.into(), text: text.into() };
            Ok((kernel.of_text(source), schedule))
        }
        _ => Err(Diagnostics::of_text(parser.faults.0, file, text)),
    }
}

/// What a statement defines, before `=`.
struct DefinedName<'a> {
    /// `None` for `_`.
    name: Option<&'a str>,
    tag: Option<String>,
    attributes: Attributes,
    at: Location,
}

/// What the right side of a definition gives.
enum Defined {
    /// The results of a region, which is still to be read.
    InRegion,
    One(NameMeaning),
    Several(Vec<Entity>),
}

/// What stands for a carried value without a name.
#[derive(Copy, Clone, PartialEq, Eq)]
enum Unnamed {
    /// A node without uses: a loop's body has an argument for each of its carried values.
    Node,
    /// Nothing.
    Nothing,
}

/// What is being read; it decides which statements are allowed.
#[derive(Copy, Clone, PartialEq, Eq)]
pub(super) enum Region {
    Kernel,
    /// The nodes of a kernel before it was expanded.
    Logical,
    Loop,
}

impl<'a> Parser<'a> {
    /// The whole text.
    fn file(&mut self) -> Parsed<((&'a str, Location), Option<WaveSchedule>)> {
        let kernel = self.kernel()?;
        self.cursor.skip_newlines();
        let mut schedule = None;
        if self.cursor.at_word("schedule") {
            schedule = schedule::parse(&mut self.cursor, &mut self.faults)?;
            self.cursor.skip_newlines();
        }
        if self.faults.0.is_empty() && *self.cursor.peek() != Token::End {
            let fault = self.cursor.expected("the end of the text");
            return Err(fault.help("a text holds one kernel, and after it one schedule"));
        }
        Ok((kernel, schedule))
    }

    /// A kernel: its name and where it stands.
    fn kernel(&mut self) -> Parsed<(&'a str, Location)> {
        self.cursor.skip_newlines();
        let declared = self.cursor.location();
        if !self.cursor.take_word("kernel") {
            return Err(self.cursor.expected("`kernel`"));
        }
        let name = match *self.cursor.peek() {
            Token::Name(name) if is_identifier(name) => name,
            _ => return Err(self.cursor.expected("the kernel's name")),
        };
        self.cursor.bump();
        if self.cursor.take_word("after") {
            let Token::Name(pass) = *self.cursor.peek() else {
                return Err(self.cursor.expected("the name of a pass"));
            };
            self.stage = Some(pass.into());
            self.cursor.bump();
        }
        let opened = self.cursor.location();
        self.cursor.expect("{")?;
        self.scopes.open();
        self.region(Region::Kernel, &opened);
        Ok((name, declared))
    }

    /// The statements of a region and its closing brace; returns what a loop hands to its next iteration.
    pub(super) fn region(&mut self, region: Region, opened: &Location) -> Option<(Vec<Entity>, Location)> {
        let mut yields = None;
        loop {
            self.cursor.skip_newlines();
            if self.cursor.take("}") {
                return yields;
            }
            if *self.cursor.peek() == Token::End {
                let what = match region {
                    Region::Kernel => "the kernel",
                    Region::Logical => "the logical nodes",
                    Region::Loop => "the loop",
                };
                let fault = self.cursor.expected(&format!("the `}}` of {what}"));
                // The regions around this one are not closed either; one report is enough.
                if self.faults.0.last().is_none_or(|last| last.location != fault.location) {
                    self.fault(fault.note("it was opened here", Some(opened.clone())));
                }
                return yields;
            }
            if yields.is_some() {
                let fault = self.cursor.expected("`}` after `yield`");
                self.fault(fault.help("`yield` is the last statement of a loop"));
                yields = None;
            }
            let at = self.cursor.location();
            let read = if region == Region::Loop && self.cursor.at_word("yield") {
                self.yields().map(|values| yields = Some((values, at)))
            } else {
                self.statement(region)
            };
            if let Err(fault) = read.and_then(|()| self.cursor.end_of_statement()) {
                self.fault(fault);
                self.cursor.recover();
            }
            if let Some(excess) = self.nodes.excess() {
                self.fault(excess);
                return yields;
            }
        }
    }

    fn yields(&mut self) -> Parsed<Vec<Entity>> {
        self.cursor.bump();
        let mut values = Vec::new();
        if matches!(self.cursor.peek(), Token::Newline | Token::End) || self.cursor.at("}") {
            return Ok(values);
        }
        loop {
            values.push(self.value()?);
            if !self.cursor.take(",") {
                return Ok(values);
            }
        }
    }

    fn statement(&mut self, region: Region) -> Parsed<()> {
        let at = self.cursor.location();
        let origin = self.nodes.location(at.clone());
        match *self.cursor.peek() {
            Token::Sign("%") => self.definition(origin),
            Token::Name("_") => self.definition(origin),
            Token::Name(name) if self.cursor.at_second("=") => self.argument(name, origin),
            Token::Name(word) if is_region(word) => self.carrying(Vec::new(), origin),
            Token::Name("facts") if region == Region::Kernel && self.stage.is_some() => self.facts(),
            Token::Name("logical") if region == Region::Kernel && self.stage.is_some() => {
                self.logical_block()
            }
            Token::Name(word) if let Some(&op) = STORES.iter().find(|op| op.row().word == word) => {
                self.store(origin, op)
            }
            Token::Name("set_symbol") => self.set_symbol(origin),
            Token::Name("follow") => self.follow(origin),
            Token::Name("global_to_shared") => {
                self.cursor.bump();
                let memory = self.place()?;
                self.cursor.expect(",")?;
                let buffer = self.place()?;
                let op = Op::GlobalToShared;
                let node = self.nodes.push(origin, op, &[memory, buffer], ValueType::unknown());
                self.access_flags(node)?;
                self.tag(node)
            }
            Token::Name("barrier") => {
                self.cursor.bump();
                let node = self.nodes.push(origin, Op::Barrier, &[], ValueType::unknown());
                self.tag(node)
            }
            Token::Name(word) if Control::WORDS.contains(&word) => {
                // The word exists, so the operation does.
                let Some(control) = control(&mut self.cursor)? else { return Ok(()) };
                let node = self.nodes.push(origin, Op::Control(control), &[], ValueType::unknown());
                self.tag(node)
            }
            Token::Name(word) if CONSTRAINTS.contains(&word) && region == Region::Kernel => {
                self.cursor.bump();
                if !self.constrained {
                    let fault = Diagnostic::invalid("a constraint after `facts`");
                    return Err(self.cursor.fault(fault.help("facts rest on all constraints")));
                }
                let constraint = self.constraint(word)?;
                let at = if self.stage.is_some() && self.cursor.at("!") {
                    self.constraint_origin()?
                } else {
                    origin.0
                };
                self.nodes.constrain(constraint, Origin(at));
                Ok(())
            }
            Token::Name(word) => Err(self.cursor.fault(stray_word(word))),
            _ => Err(self.cursor.expected("a statement or `}`")),
        }
    }

    /// `write %x, memory`, with a mapping or without.
    fn store(&mut self, origin: Origin, op: Op) -> Parsed<()> {
        self.cursor.bump();
        let value = self.value()?;
        self.cursor.expect(",")?;
        let memory = self.place()?;
        let node = match self.mapping(origin)? {
            Some(mapped) => {
                let operands = mapped.operands_of(&[value], memory);
                let node = self.nodes.push(origin, op, &operands, ValueType::unknown());
                self.nodes.map(node, mapped.mapping);
                node
            }
            None => self.accessed(origin, op, &[value], memory)?,
        };
        self.access_flags(node)?;
        self.tag(node)
    }

    /// `a = memory ...`, `alpha = scalar f32`.
    fn argument(&mut self, name: &'a str, origin: Origin) -> Parsed<()> {
        self.cursor.bump();
        self.cursor.bump();
        let read = match *self.cursor.peek() {
            Token::Name("memory") => self.memory_type(name, origin).map(NameMeaning::Place),
            Token::Name("debug_log") => self.log_type(name, origin).map(NameMeaning::Place),
            Token::Name("scalar") => self.scalar_type(name, origin).map(NameMeaning::Scalar),
            _ => {
                let fault = self.cursor.expected("`memory`, `scalar` or `debug_log`");
                Err(fault.help(format!("a value's name starts with `%`: `%{name} = ...`")))
            }
        };
        self.define(name, *read.as_ref().unwrap_or(&NameMeaning::Unknown), origin);
        match read? {
            NameMeaning::Place(node) | NameMeaning::Scalar(node) => self.tag(node),
            NameMeaning::Value(_) | NameMeaning::Unknown => Ok(()),
        }
    }

    fn scalar_type(&mut self, name: &'a str, origin: Origin) -> Parsed<Entity> {
        self.cursor.bump();
        let at = self.cursor.location();
        let dtype = self.cursor.dtype()?;
        if self.scopes.get(name).is_some_and(|first| first.visible) {
            // `define` reports it, with the place of the first one.
            return Ok(Entity::PLACEHOLDER);
        }
        self.nodes.scalar(origin, name, dtype).map_err(|fault| fault.at(Some(at)))
    }

    /// `debug_log`, `debug_log [8]`, and after passes `debug_log [8, M] f32`.
    fn log_type(&mut self, name: &'a str, origin: Origin) -> Parsed<Entity> {
        self.cursor.bump();
        let at = self.cursor.location();
        let slots = if self.cursor.at("[") { self.shape()?.0 } else { Vec::new() };
        if self.scopes.get(name).is_some_and(|first| first.visible) {
            return Ok(Entity::PLACEHOLDER);
        }
        let node = match *self.cursor.peek() {
            Token::Name(_) => {
                let dtype = self.cursor.dtype()?;
                let node = self.nodes.memory(origin, name, &slots, AddressSpace::Global, dtype);
                node.inspect(|&node| self.nodes.keep_as_log(node))
            }
            _ => self.nodes.debug_log(origin, name, &slots),
        };
        node.map_err(|fault| fault.at(Some(at)))
    }

    fn memory_type(&mut self, name: &'a str, origin: Origin) -> Parsed<Entity> {
        self.cursor.bump();
        let (shape, shape_at) = self.shape()?;
        let at = self.cursor.location();
        let space = match *self.cursor.peek() {
            Token::Name(word) => AddressSpace::from_name(word),
            _ => None,
        };
        let Some(space) = space else { return Err(self.cursor.expected("`global` or `shared`")) };
        self.cursor.bump();
        let dtype = self.cursor.dtype()?;
        if self.scopes.get(name).is_some_and(|first| first.visible) {
            // `define` reports it, with the place of the first one.
            return Ok(Entity::PLACEHOLDER);
        }
        let wrong_shape = self.nodes.dims(&shape).is_err() || shape.is_empty();
        let at = if wrong_shape { shape_at } else { at };
        let node = self.nodes.memory(origin, name, &shape, space, dtype);
        let node = node.map_err(|fault| fault.at(Some(at)))?;
        if self.cursor.take_word("strides") {
            let (strides, at) = self.strides()?;
            self.nodes.lay_out(node, &strides).map_err(|fault| fault.at(Some(at)))?;
        }
        Ok(node)
    }

    /// `%a = ...`, `%a, %b = iterate ...`.
    fn definition(&mut self, origin: Origin) -> Parsed<()> {
        let mut targets = vec![self.target()?];
        while self.cursor.take(",") {
            targets.push(self.target()?);
        }
        let read = self.cursor.expect("=").and_then(|()| match *self.cursor.peek() {
            Token::Name(word) if is_region(word) => Ok(Defined::InRegion),
            Token::Name("topk") => self.topk(origin, targets.len()).map(Defined::Several),
            _ => self.compute(origin).map(Defined::One),
        });
        match read {
            Ok(Defined::InRegion) => self.carrying(targets, origin),
            Ok(Defined::One(meaning)) => self.define_result(&targets, meaning, origin),
            Ok(Defined::Several(nodes)) => {
                for (target, node) in targets.into_iter().zip(nodes) {
                    if let Some(tag) = &target.tag {
                        self.nodes.tag(node, tag);
                    }
                    if let Some(name) = target.name {
                        self.define(name, NameMeaning::Value(node), origin);
                    }
                }
                Ok(())
            }
            Err(fault) => {
                self.define_unknown(&targets);
                Err(fault)
            }
        }
    }

    fn target(&mut self) -> Parsed<DefinedName<'a>> {
        let at = self.cursor.location();
        let name = if self.cursor.take_word("_") { None } else { Some(self.cursor.value_name()?) };
        Ok(DefinedName { name, tag: self.cursor.tag()?, attributes: self.attributes()?, at })
    }

    /// Defines the names of a statement that has a fault, so that their uses are not faults as well.
    fn define_unknown(&mut self, targets: &[DefinedName<'a>]) {
        for target in targets {
            let origin = self.nodes.location(target.at.clone());
            if let Some(name) = target.name {
                self.define(name, NameMeaning::Unknown, origin);
            }
        }
    }

    fn define_result(
        &mut self,
        targets: &[DefinedName<'a>],
        meaning: NameMeaning,
        origin: Origin,
    ) -> Parsed<()> {
        let [DefinedName { name: Some(name), tag: None, .. }] = targets else {
            self.define_unknown(targets);
            let at = targets
                .iter()
                .find(|target| target.name.is_none() || target.tag.is_some())
                .or(targets.get(1));
            let text = "an operation other than `iterate` has one result, with its tag after the operation";
            let fault = Diagnostic::invalid(text).help("write `%x = read a @tag`");
            return Err(fault.at(at.map(|target| target.at.clone())));
        };
        self.define(name, meaning, origin);
        match meaning {
            NameMeaning::Value(node) | NameMeaning::Scalar(node) | NameMeaning::Place(node) => self.tag(node),
            NameMeaning::Unknown => Ok(()),
        }
    }

    /// Defines a name, or reports that it is taken.
    fn define(&mut self, name: &'a str, meaning: NameMeaning, origin: Origin) {
        if let Err(first) = self.scopes.define(name, meaning, origin) {
            let fault =
                Diagnostic::invalid(format!("`{name}` is defined twice")).at(self.nodes.location_of(origin));
            let first = self.nodes.location_of(first.origin);
            self.fault(
                fault.note("the first definition is here", first).help("values and memories do not change"),
            );
        }
    }

    pub(super) fn tag(&mut self, node: Entity) -> Parsed<()> {
        if let Some(tag) = self.cursor.tag()? {
            self.nodes.tag(node, &tag);
        }
        let attributes = self.attributes()?;
        self.attach(node, attributes);
        Ok(())
    }

    /// A loop or a conditional, whose results are `targets`; the next token is its word.
    fn carrying(&mut self, targets: Vec<DefinedName<'a>>, origin: Origin) -> Parsed<()> {
        let head = match *self.cursor.peek() {
            Token::Name(word) => RegionHead::of_word(word),
            _ => None,
        };
        let Some(head) = head else { return Err(self.cursor.expected("a loop or a conditional")) };
        if self.cursor.at_word("pipeline") && self.stage.is_none() {
            let fault = Diagnostic::invalid("`pipeline` in a kernel that no pass has seen");
            self.define_unknown(&targets);
            return Err(self.cursor.fault(fault.help("write `iterate`, and compile with a schedule")));
        }
        let mut header = || {
            self.cursor.bump();
            let op = match head {
                RegionHead::Plain(op) => op,
                RegionHead::Over(of) => {
                    let at = self.cursor.location();
                    let axis = dimension(&mut self.cursor, "the dimension to loop over")?;
                    of(self.nodes.dim(axis).map_err(|fault| fault.at(Some(at)))?)
                }
            };
            let condition = op.takes_condition().then(|| self.value()).transpose()?;
            let carried = self.carried()?;
            let tag = (self.cursor.tag()?, self.attributes()?);
            let opened = self.cursor.location();
            if self.loops == MAX_LOOPS {
                let text = format!("loops are nested more than {MAX_LOOPS} deep");
                return Err(Diagnostic::invalid(text).at(Some(opened)));
            }
            self.cursor.expect("{")?;
            Ok((op, condition, carried, tag, opened))
        };
        let (op, condition, carried, (tag, attributes), opened) = match header() {
            Ok(header) => header,
            Err(fault) => {
                self.define_unknown(&targets);
                return Err(fault);
            }
        };
        let operands: Vec<_> = carried.iter().map(|(_, init)| *init).chain(condition).collect();
        let node = self.nodes.open_region(origin, op, &operands);
        if let Some(tag) = tag {
            self.nodes.tag(node, &tag);
        }
        self.attach(node, attributes);
        self.scopes.open();
        self.loops += 1;
        let args: Vec<_> = carried.into_iter().map(|(target, _)| target).collect();
        let (count, results) = (args.len(), targets.len());
        self.define_carried(args, Op::IterArg, &[], Unnamed::Node);
        let faults = self.faults.0.len();
        let yields = self.region(Region::Loop, &opened);
        self.loops -= 1;
        self.scopes.close();
        // A fault inside may have cost the `yield`.
        let lost = yields.is_none() && self.faults.0.len() > faults;
        let (yields, at) = yields.unwrap_or((Vec::new(), opened));
        let (expected, help) = match op.yields_condition() {
            true => (count + 1, "`yield` gives each carried value its next one, and then the condition"),
            false => (count, "`yield` gives each carried value its next one"),
        };
        let is_loop = op.repeats() || op.is_pipeline();
        let what = if is_loop { "loop" } else { op.in_words() };
        if yields.len() != expected && !lost {
            let condition = if op.yields_condition() { " and its condition" } else { "" };
            let text =
                format!("the {what} carries {}{condition}, and yields {}", values(count), yields.len());
            self.fault_at(&at, Diagnostic::invalid(text).help(help));
        }
        self.nodes.close_loop(node, &yields);
        self.define_carried(targets, Op::LoopResult, &[node], Unnamed::Nothing);
        if results != count {
            let text = format!("the {what} carries {}, and {results} results are named", values(count));
            let fault = Diagnostic::invalid(text).at(self.nodes.location_of(origin));
            self.fault(fault.help("`_` stands for a result that is not used"));
        }
        Ok(())
    }

    /// Makes nodes for the loop-carried values on one side of a loop's border.
    fn define_carried(
        &mut self,
        targets: Vec<DefinedName<'a>>,
        op: fn(u32) -> Op,
        operands: &[Entity],
        unnamed: Unnamed,
    ) {
        for (number, target) in (0u32..).zip(targets) {
            if target.name.is_none() && unnamed == Unnamed::Nothing {
                continue;
            }
            let origin = self.nodes.location(target.at.clone());
            let node = self.nodes.push(origin, op(number), operands, ValueType::unknown());
            if let Some(tag) = &target.tag {
                self.nodes.tag(node, tag);
            }
            self.attach(node, target.attributes);
            if let Some(name) = target.name {
                self.define(name, NameMeaning::Value(node), origin);
            }
        }
    }

    /// `(%x = %a, %y = %b)`: what the body sees, and the initial values.
    fn carried(&mut self) -> Parsed<Vec<(DefinedName<'a>, Entity)>> {
        let mut carried = Vec::new();
        self.cursor.expect("(")?;
        if self.cursor.take(")") {
            return Ok(carried);
        }
        loop {
            let target = self.target()?;
            self.cursor.expect("=")?;
            carried.push((target, self.value()?));
            if !self.cursor.take(",") {
                self.cursor.expect(")")?;
                return Ok(carried);
            }
        }
    }
}

/// Words of statements with a region.
fn is_region(word: &str) -> bool {
    RegionHead::of_word(word).is_some()
}

fn values(count: usize) -> String {
    if count == 1 { "1 value".to_owned() } else { format!("{count} values") }
}
