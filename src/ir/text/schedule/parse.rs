//! The parser of schedules: recursive descent over statements. A fault costs its statement; parsing goes on
//! after it.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::lists::{WantedValue, is_word};
use super::parser::{Named, ScheduleNameMeaning, ScheduleParser};
use super::{Arity, OPERATIONS, PIPELINE};
use crate::ir::assemble::is_identifier;
use crate::ir::diagnostic::{Diagnostic, Location};
use crate::ir::node::Control;
use crate::ir::schedule::{
    Directive, InsertPlace, MOST_PARTS, NodeType, Operation, Pipeline, Recorder, Stage, ValueId, ValueKind,
    WaveSchedule,
};
use crate::ir::text::controls::condition;
use crate::ir::text::cursor::{Cursor, Parsed, TextFaults};
use crate::ir::text::lex::Token;
use crate::ir::text::symbolic::dimension;
use crate::ir::types::AddressSpace;
use crate::spelling::closest;

/// Reads a schedule; `None` if it has faults.
pub(in crate::ir::text) fn parse(
    cursor: &mut Cursor<'_>,
    faults: &mut TextFaults,
) -> Parsed<Option<WaveSchedule>> {
    let before = faults.0.len();
    let mut parser = ScheduleParser {
        cursor,
        faults,
        recorder: Recorder::default(),
        names: BTreeMap::new(),
        unknown: false,
    };
    let (name, declared) = parser.schedule()?;
    if parser.faults.0.len() > before {
        return Ok(None);
    }
    Ok(Some(parser.recorder.finish(name, declared)))
}

/// What a statement defines, before `=`.
struct DefinedValue<'a> {
    /// `None` for `_`.
    name: Option<&'a str>,
    at: Location,
}

impl<'a> ScheduleParser<'_, 'a> {
    /// The whole schedule: its name and where it stands.
    fn schedule(&mut self) -> Parsed<(&'a str, Location)> {
        let declared = self.cursor.location();
        if !self.cursor.take_word("schedule") {
            return Err(self.cursor.expected("`schedule`"));
        }
        let name = match *self.cursor.peek() {
            Token::Name(name) if is_identifier(name) => name,
            _ => return Err(self.cursor.expected("the schedule's name")),
        };
        self.cursor.bump();
        let opened = self.cursor.location();
        self.cursor.expect("{")?;
        loop {
            self.cursor.skip_newlines();
            if self.cursor.take("}") {
                return Ok((name, declared));
            }
            if *self.cursor.peek() == Token::End {
                let fault = self.cursor.expected("the `}` of the schedule");
                return Err(fault.note("it was opened here", Some(opened)));
            }
            if let Err(fault) = self.statement().and_then(|()| self.cursor.end_of_statement()) {
                self.fault(fault);
                self.cursor.recover();
            }
        }
    }

    fn statement(&mut self) -> Parsed<()> {
        self.unknown = false;
        let at = self.cursor.location();
        let mut targets = Vec::new();
        let names = matches!(self.cursor.peek(), Token::Name(_))
            && (self.cursor.at_second("=") || self.cursor.at_second(","));
        let read = if names { self.targets(&mut targets) } else { Ok(()) };
        let recorded = read.and_then(|()| self.operation(&targets, &at));
        match recorded {
            Ok(Some((first, arity))) => {
                for (number, target) in (0..).zip(&targets) {
                    let value = ValueId(first.0 + number);
                    let meaning = if arity == Arity::Pipeline {
                        ScheduleNameMeaning::Pipeline(value)
                    } else {
                        ScheduleNameMeaning::Value(value)
                    };
                    self.define(target, meaning);
                }
                Ok(())
            }
            other => {
                for target in &targets {
                    self.define(target, ScheduleNameMeaning::Unknown);
                }
                other.map(|_| ())
            }
        }
    }

    fn targets(&mut self, targets: &mut Vec<DefinedValue<'a>>) -> Parsed<()> {
        loop {
            let at = self.cursor.location();
            let name = match *self.cursor.peek() {
                Token::Name("_") => None,
                Token::Name(name) if is_word(name) => {
                    let fault = Diagnostic::invalid(format!("`{name}` is a word of schedules"));
                    return Err(self.cursor.fault(fault.help("take another name for the value")));
                }
                Token::Name(name) => Some(name),
                _ => return Err(self.cursor.expected("the name of a result")),
            };
            self.cursor.bump();
            targets.push(DefinedValue { name, at });
            if !self.cursor.take(",") {
                return self.cursor.expect("=");
            }
        }
    }

    /// Defines a name, or reports that it is taken.
    fn define(&mut self, target: &DefinedValue<'a>, meaning: ScheduleNameMeaning) {
        let Some(name) = target.name else { return };
        if let Some(first) = self.names.get(name) {
            let fault = Diagnostic::invalid(format!("`{name}` is defined twice"))
                .at(Some(target.at.clone()))
                .note("the first definition is here", Some(first.at.clone()))
                .help("a name stands for one value in the whole schedule");
            self.fault(fault);
            return;
        }
        self.names.insert(name, Named { meaning, at: target.at.clone() });
    }

    /// Reads an operation and records it. Returns its first value, if nothing that it uses has a fault.
    fn operation(
        &mut self,
        targets: &[DefinedValue<'a>],
        start: &Location,
    ) -> Parsed<Option<(ValueId, Arity)>> {
        let word_at = self.cursor.location();
        let Token::Name(word) = *self.cursor.peek() else {
            let what = if targets.is_empty() { "a statement or `}`" } else { "an operation" };
            let fault = self.cursor.expected(what);
            let percent = self.cursor.at("%");
            return Err(if percent { fault.help("names of a schedule's values have no `%`") } else { fault });
        };
        let Some(&(_, arity)) = OPERATIONS.iter().find(|row| row.0 == word) else {
            return Err(unknown_operation(word).at(Some(word_at)));
        };
        self.cursor.bump();
        let (operation, place) = self.operands(word, &word_at)?;
        let named = targets.len();
        let wanted = match (arity, &operation) {
            (Arity::Exactly(count), _) => count,
            (Arity::Parts, Operation::PartitionByDim { parts, .. }) => *parts as usize,
            _ => named.min(1),
        };
        // An impossible number of parts is a fault of its own.
        if named != wanted && (arity != Arity::Parts || (1..=MOST_PARTS as usize).contains(&wanted)) {
            return Err(wrong_count(word, wanted, targets, word_at));
        }
        if self.unknown {
            return Ok(None);
        }
        let names = targets.iter().map(|target| target.name.map(Arc::from)).collect();
        match self.recorder.push(operation, names, start.clone()) {
            Ok(first) => Ok(Some((first, arity))),
            Err(fault) if fault.location.is_some() => Err(fault),
            Err(fault) => Err(fault.at(Some(place))),
        }
    }

    /// The operands of an operation, and the place that a fault of it gets.
    fn operands(&mut self, word: &str, word_at: &Location) -> Parsed<(Operation, Location)> {
        let at = self.cursor.location();
        Ok(match word {
            "get_node_by_tag" => (Operation::GetNodeByTag { tag: self.tag()? }, at),
            "get_node_by_tag_and_type" => {
                (Operation::GetNodeByTagAndType { tag: self.tag()?, node_type: self.node_type()? }, at)
            }
            "get_node_by_tag_and_iteration" => {
                let (tag, iteration) = (self.tag()?, self.number()?.0);
                (Operation::GetNodeByTagAndIteration { tag, iteration }, at)
            }
            "partition_by_address_space" => {
                let list = self.value(WantedValue::Nodes)?;
                let at = self.cursor.location();
                (Operation::PartitionByAddressSpace { list, space: self.space()? }, at)
            }
            "partition_by_dim" => {
                let list = self.value(WantedValue::Nodes)?;
                let dim = dimension(self.cursor, "the dimension to divide by")?;
                let (parts, at) = self.number()?;
                (Operation::PartitionByDim { list, dim, parts }, at)
            }
            "filter_nodes" => {
                let list = self.value(WantedValue::Nodes)?;
                let mut at = at;
                let mut stage = None;
                if self.cursor.take_word("stage") {
                    at = self.cursor.location();
                    stage = Some(self.value(WantedValue::Part)?);
                }
                let typed = self.cursor.take_word("type");
                let node_type = if typed { Some(self.node_type()?) } else { None };
                (Operation::FilterNodes { list, stage, node_type }, at)
            }
            "getitem" => {
                let (list, index) = (self.value(WantedValue::Nodes)?, self.number()?.0);
                (Operation::GetItem { list, index }, at)
            }
            "pipeline" => (Operation::Pipeline(self.pipeline()?), word_at.clone()),
            "cluster" => (Operation::Cluster { items: self.bracketed(["[", "]"], Self::item)? }, at),
            "reorder_graph" => {
                let region = self.value(WantedValue::Place)?;
                let order = self.cursor.location();
                let clusters = self.bracketed(["[", "]"], |parser| parser.value(WantedValue::Cluster))?;
                let at = if self.is_straight(region) { at } else { order };
                (Operation::ReorderGraph { region, clusters }, at)
            }
            "insert_cond_barrier_before" | "insert_cond_barrier_after" => {
                let before = word == "insert_cond_barrier_before";
                let place = if before { InsertPlace::Before } else { InsertPlace::After };
                let directive = Directive::Control(Control::ConditionalBarrier(condition(self.cursor)?));
                let at = self.cursor.location();
                let target = self.value(WantedValue::Place)?;
                (Operation::Insert { place, target, directive }, at)
            }
            "stagger" => (Operation::Stagger { region: self.value(WantedValue::Place)? }, at),
            "interleave_ops" => {
                let base = self.lists()?;
                let groups_at = self.cursor.location();
                let groups = self.bracketed(["[", "]"], Self::group)?;
                let at = if base.is_empty() { at } else { groups_at };
                (Operation::InterleaveOps { base, groups }, at)
            }
            "unroll" => {
                let region = self.value(WantedValue::Place)?;
                let (factor, factor_at) = self.number()?;
                let at = if self.is_straight(region) { at } else { factor_at };
                (Operation::Unroll { region, factor }, at)
            }
            "tag_nodes" => {
                let tag = self.tag()?;
                (Operation::TagNodes { tag, nodes: self.bracketed(["[", "]"], Self::tag)? }, at)
            }
            "load_to_lds" => (Operation::LoadToLds, word_at.clone()),
            "schedule_loop" => {
                let (target, strategy) = (self.value(WantedValue::Nodes)?, self.strategy()?);
                (Operation::ScheduleLoop { target, strategy }, at)
            }
            _ => {
                let Some(&(place, _)) = InsertPlace::WORDS.iter().find(|row| row.1 == word) else {
                    return Err(unknown_operation(word).at(Some(word_at.clone())));
                };
                let target = self.value(WantedValue::Place)?;
                (Operation::Insert { place, target, directive: self.directive()? }, at)
            }
        })
    }

    /// True for the prologue or the epilogue of a pipeline.
    fn is_straight(&self, value: ValueId) -> bool {
        matches!(self.recorder.kind(value), Some(ValueKind::Prologue | ValueKind::Epilogue))
    }

    fn tag(&mut self) -> Parsed<Arc<str>> {
        let Token::Quoted(tag) = self.cursor.peek() else {
            let fault = self.cursor.expected("a tag");
            return Err(fault.help("tags are quoted: `\"read_a\"`"));
        };
        let tag = tag.as_str().into();
        self.cursor.bump();
        Ok(tag)
    }

    fn node_type(&mut self) -> Parsed<NodeType> {
        let Token::Name(word) = *self.cursor.peek() else {
            return Err(self.cursor.expected("a type of nodes"));
        };
        let Some((node_type, _)) = NodeType::all().find(|row| row.1 == word) else {
            let names = || NodeType::all().map(|row| row.1);
            let fault = Diagnostic::invalid(format!("there is no type of nodes `{word}`"));
            return Err(self.cursor.fault(match closest(word, names()) {
                Some(close) => fault.help(format!("did you mean `{close}`?")),
                None => fault.help(format!("the types are {}", names().collect::<Vec<_>>().join(", "))),
            }));
        };
        self.cursor.bump();
        Ok(node_type)
    }

    /// The word of a strategy; which there are is for those to say who have them.
    fn strategy(&mut self) -> Parsed<Arc<str>> {
        let Token::Name(word) = *self.cursor.peek() else {
            let fault = self.cursor.expected("a schedule");
            return Err(fault.help("write a word of `--schedule`: `schedule_loop k_loop prefetch`"));
        };
        self.cursor.bump();
        Ok(word.into())
    }

    fn space(&mut self) -> Parsed<AddressSpace> {
        let space = match *self.cursor.peek() {
            Token::Name(word) => AddressSpace::from_name(word),
            _ => None,
        };
        let space = space.ok_or_else(|| self.cursor.expected("`global` or `shared`"))?;
        self.cursor.bump();
        Ok(space)
    }

    /// The part of the statement after `pipeline`.
    fn pipeline(&mut self) -> Parsed<Pipeline> {
        let target = self.value(WantedValue::Nodes)?;
        let opened = self.cursor.location();
        self.cursor.expect("{")?;
        let mut pipeline =
            Pipeline { target, eliminate_epilogue: false, multi_buffer_count: None, stages: Vec::new() };
        loop {
            self.cursor.skip_newlines();
            if self.cursor.take("}") {
                return Ok(pipeline);
            }
            if *self.cursor.peek() == Token::End {
                let fault = self.cursor.expected("the `}` of the pipeline");
                return Err(fault.note("it was opened here", Some(opened)));
            }
            let read = self.pipelining(&mut pipeline).and_then(|()| self.cursor.end_of_statement());
            if let Err(fault) = read {
                self.fault(fault);
                self.cursor.recover();
                // Without this statement the pipeline is not the one that its author wrote.
                self.unknown = true;
            }
        }
    }

    /// A statement inside a pipeline.
    fn pipelining(&mut self, pipeline: &mut Pipeline) -> Parsed<()> {
        let at = self.cursor.location();
        let Token::Name(word) = *self.cursor.peek() else {
            return Err(self.cursor.expected("`set_stage` or `}`"));
        };
        match word {
            "set_stage" => {
                self.cursor.bump();
                let mut slots = Vec::new();
                while self.cursor.at("(") {
                    slots.push(self.tuple()?);
                }
                pipeline.stages.push(Stage { slots, location: at });
            }
            "eliminate_epilogue" => {
                self.cursor.bump();
                pipeline.eliminate_epilogue = true;
            }
            "multi_buffer_count" => {
                self.cursor.bump();
                pipeline.multi_buffer_count = Some(self.number()?.0);
            }
            _ => {
                let fault = Diagnostic::invalid(format!("no statement of a pipeline starts with `{word}`"));
                let operation = OPERATIONS.iter().any(|row| row.0 == word)
                    || self.cursor.at_second("=")
                    || self.cursor.at_second(",");
                return Err(self.cursor.fault(match closest(word, PIPELINE.iter().copied()) {
                    Some(close) => fault.help(format!("did you mean `{close}`?")),
                    None if operation => fault.help("put it before the pipeline or after it"),
                    None => fault.help(format!("they are {}", PIPELINE.join(", "))),
                }));
            }
        }
        Ok(())
    }
}

/// The fault of a word that names no operation.
fn unknown_operation(word: &str) -> Diagnostic {
    if PIPELINE.contains(&word) {
        return Diagnostic::invalid(format!("`{word}` outside of a pipeline"))
            .help("write it inside the braces of `pipeline k_loop { ... }`");
    }
    if is_word(word) && word != "_" {
        return Diagnostic::invalid(format!("`{word}` stands nowhere"))
            .help(format!("write `insert_before place {word} ...`, or put it into a cluster"));
    }
    let fault = Diagnostic::invalid(format!("there is no operation `{word}`"));
    match closest(word, OPERATIONS.iter().map(|row| row.0).chain(PIPELINE.iter().copied())) {
        Some(close) => fault.help(format!("did you mean `{close}`?")),
        None => fault.help("the operations are listed in the documentation of schedules' text form"),
    }
}

/// The fault of an operation with more or fewer names before it than it has results.
fn wrong_count(word: &str, wanted: usize, targets: &[DefinedValue<'_>], word_at: Location) -> Diagnostic {
    let results = |count: usize| if count == 1 { "1 result".to_owned() } else { format!("{count} results") };
    let fault = match (wanted, targets.first()) {
        (0, _) => Diagnostic::invalid(format!("`{word}` has no result"))
            .help(format!("write `{word}` without `name =`")),
        (_, None) => Diagnostic::invalid(format!("the result of `{word}` has no name")).help(match wanted {
            1 => format!("write `name = {word} ...`"),
            _ => format!("write `name, other = {word} ...`: it has {}", results(wanted)),
        }),
        _ => Diagnostic::invalid(format!(
            "`{word}` has {}, and {} named",
            results(wanted),
            match targets.len() {
                1 => "1 is".to_owned(),
                count => format!("{count} are"),
            }
        ))
        .help("`_` stands for a result that is not used"),
    };
    fault.at(Some(targets.first().map_or(word_at, |target| target.at.clone())))
}
