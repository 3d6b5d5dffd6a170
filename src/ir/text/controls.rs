//! Control operations, as kernels and schedules write them.

use std::fmt::Write as _;

use super::cursor::{Cursor, Parsed};
use super::lex::Token;
use crate::ir::diagnostic::Diagnostic;
use crate::ir::node::{Control, Predicate, WaveBound, WaveCondition};

/// The control operation that comes next, if one does.
pub(super) fn control(cursor: &mut Cursor<'_>) -> Parsed<Option<Control>> {
    let Token::Name(word) = *cursor.peek() else { return Ok(None) };
    if !Control::WORDS.contains(&word) {
        return Ok(None);
    }
    cursor.bump();
    let at = Some(cursor.location());
    let control = match word {
        "workgroup_barrier" => Ok(Control::WorkgroupBarrier),
        "scheduling_barrier" => Ok(Control::SchedulingBarrier),
        "interleave_by_cost" => Ok(Control::InterleaveByCost),
        "skip_unit_factors" => Ok(Control::SkipUnitFactors),
        "set_wave_priority" => Control::priority(cursor.signed_integer()?),
        "wait_for_loads" => Control::loads(cursor.signed_integer()?),
        "wait_for_shared" => Control::shared(cursor.signed_integer()?),
        _ => return Ok(Some(Control::ConditionalBarrier(condition(cursor)?))),
    };
    control.map(Some).map_err(|fault| fault.at(at))
}

/// A condition on the number of a wave: `ge 4`, `lt waves / 2`.
pub(super) fn condition(cursor: &mut Cursor<'_>) -> Parsed<WaveCondition> {
    let predicate = predicate(cursor)?;
    let at = cursor.location();
    let bound = if cursor.take_word("waves") {
        if cursor.at("//") {
            let fault = Diagnostic::invalid("expected `/`, found `//`");
            return Err(cursor.fault(fault.help("write `waves / 2`, which is rounded down too")));
        }
        let divisor = if cursor.take("/") { cursor.signed_integer()? } else { 1 };
        u32::try_from(divisor).ok().map(WaveBound::WavesOver)
    } else if cursor.at("-") || matches!(cursor.peek(), Token::Integer(_)) {
        u32::try_from(cursor.signed_integer()?).ok().map(WaveBound::Wave)
    } else {
        let fault = cursor.expected("a wave's number or `waves`");
        return Err(fault.help("write `ge 4` or `ge waves / 2`"));
    };
    let condition = WaveCondition { predicate, bound: bound.unwrap_or(WaveBound::WavesOver(0)) };
    Control::ConditionalBarrier(condition).checked().map_err(|fault| fault.at(Some(at)))?;
    Ok(condition)
}

/// The name of a comparison.
pub(super) fn predicate(cursor: &mut Cursor<'_>) -> Parsed<Predicate> {
    let word = match *cursor.peek() {
        Token::Name(word) => word,
        _ => "",
    };
    let Some(&predicate) = Predicate::ALL.iter().find(|predicate| predicate.word() == word) else {
        let all: Vec<_> = Predicate::ALL.iter().map(|predicate| predicate.word()).collect();
        let fault = cursor.expected("a predicate");
        return Err(fault.help(format!("the predicates are {}", all.join(", "))));
    };
    cursor.bump();
    Ok(predicate)
}

/// The operands after the word of a control operation.
pub(in crate::ir) fn write_control(out: &mut String, control: Control) {
    let _ = match control {
        Control::WorkgroupBarrier
        | Control::SchedulingBarrier
        | Control::InterleaveByCost
        | Control::SkipUnitFactors => Ok(()),
        Control::ConditionalBarrier(condition) => write!(out, " {condition}"),
        Control::SetWavePriority(priority) => write!(out, " {priority}"),
        Control::WaitForLoads(count) | Control::WaitForShared(count) => write!(out, " {count}"),
    };
}
