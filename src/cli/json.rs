//! The JSON of reports; its keys are the program's promise to scripts.

use std::time::Duration;

use groundswell::compile::{Parameter, Size};
use groundswell::device::LoggedTensor;
use groundswell::prelude::*;
use groundswell::report::{CandidateOutcome, Report, ScheduleChoice};
use serde_json::{Map, Value, json};

use super::job::{Job, Times};

/// One object on one line.
pub fn line(value: &Value) -> Vec<u8> {
    let mut line = value.to_string().into_bytes();
    line.push(b'\n');
    line
}

/// Microseconds with three decimals.
pub fn microseconds(time: Duration) -> f64 {
    time.as_nanos() as f64 / 1000.0
}

/// Names and times as an object, in order.
pub fn phases(phases: &[(&'static str, Duration)]) -> Value {
    Value::Object(phases.iter().map(|&(name, time)| (name.to_string(), microseconds(time).into())).collect())
}

/// The keys of every compilation.
pub fn compilation(job: &Job, executable: &Executable, times: &Times) -> Map<String, Value> {
    let report = executable.report();
    let value = json!({
        "kernel": executable.name(),
        "target": executable.target().name,
        "symbols": symbols(job),
        "compile_us": microseconds(times.total),
        "phases_us": phases(&times.phases),
        "expanded_nodes": report.expanded_nodes,
        "instructions": report.instructions,
        "barriers": report.barriers,
        "loop": main_loop(report),
        "stores": stores(report),
        "vgprs": report.vgprs,
        "agprs": report.agprs,
        "sgprs": report.sgprs,
        "lds_bytes": report.lds_bytes,
        "lds_accesses": lds_accesses(report),
        "split_accesses": split_accesses(report),
        "masked_accesses": masked_accesses(report),
        "unshared_reads": unshared_reads(report),
        "conversions": conversions(report),
        "reductions": reductions(report),
        "scratch_bytes": report.scratch_bytes,
        "spills": spills(report),
        "warnings": executable.warnings(),
        "code_bytes": report.code_bytes,
        "waves_per_simd": report.waves_per_simd,
        "limited_by": report.limited_by.to_string(),
        "seldom": report.seldom_instructions,
        "loops_of_masks": report.loops_of_masks,
        "branches_of_masks": report.branches_of_masks,
        "schedule": schedule(report),
        "direct_loads": { "tiles": report.direct_loads, "why": report.direct_loads_why },
    });
    match value {
        Value::Object(map) => map,
        _ => Map::new(),
    }
}

/// The schedule asked for, the one applied, and why they differ.
fn schedule(report: &Report) -> Value {
    let (applied, why) = (report.schedule_applied, &report.schedule_why);
    let choices: Vec<Value> = report.schedule_choices.iter().map(schedule_choice).collect();
    json!({ "requested": report.schedule_requested, "applied": applied, "why": why, "choices": choices })
}

/// What a trip of a loop would take under each strategy, or why that does not suit it.
fn schedule_choice(choice: &ScheduleChoice) -> Value {
    let candidates = choice.candidates.iter().map(|candidate| {
        let (strategy, chosen) = (candidate.strategy, candidate.chosen);
        match &candidate.outcome {
            CandidateOutcome::Refused(why) => {
                json!({ "schedule": strategy, "chosen": chosen, "refused": why })
            }
            CandidateOutcome::Estimated(trip) => json!({
                "schedule": strategy,
                "chosen": chosen,
                "clk": trip.clk,
                "alone": trip.alone,
                "whole": trip.whole.map(|[whole, _]| whole),
                "bound": trip.bound.name(),
                "matrix": trip.needs.matrix,
                "valu": trip.needs.vector,
                "lds": trip.needs.lds,
                "loads": trip.needs.loads,
                "asked": f64::from(trip.needs.asked) / 1000.0,
                "had": f64::from(trip.needs.had) / 1000.0,
                "workgroups": trip.workgroups,
                "vgprs": trip.registers,
            }),
        }
    });
    json!({ "loop": choice.what, "candidates": candidates.collect::<Vec<Value>>() })
}

fn symbols(job: &Job) -> Value {
    Value::Object(job.bindings.iter().map(|&(s, v)| (s.name().to_string(), v.into())).collect())
}

fn main_loop(report: &Report) -> Value {
    report.main_loop.map_or(Value::Null, |mix| {
        Value::Object(
            mix.entries().into_iter().map(|(name, count)| (name.to_string(), count.into())).collect(),
        )
    })
}

/// Stores to global memory: how many there are of each width, the widest first.
fn stores(report: &Report) -> Value {
    report.stores.entries().map(|(bytes, count)| json!({ "bytes": bytes, "count": count })).collect()
}

/// The values that did not stay in the registers of their kind; null if all did.
fn spills(report: &Report) -> Value {
    report.spills.as_ref().map_or(Value::Null, |spills| {
        json!({
            "to_scratch": spills.counts.to_scratch,
            "to_lanes": spills.counts.to_lanes,
            "to_agprs": spills.counts.to_agprs,
            "rematerialised": spills.counts.rematerialised,
            "instructions": spills.counts.inserted,
            "file": spills.file.to_string(),
            "peak": spills.peak,
            "at": spills.location.as_ref().map(ToString::to_string),
        })
    })
}

fn lds_accesses(report: &Report) -> Value {
    let access = |a: &groundswell::report::LdsAccessReport| json!({ "kind": a.kind, "what": a.what, "conflict_degree": a.conflict_degree });
    report.lds_accesses.iter().map(access).collect()
}

fn split_accesses(report: &Report) -> Value {
    let access = |a: &groundswell::report::SplitAccessReport| json!({ "kind": a.kind, "what": a.what, "elements": a.elements, "possible": a.possible, "why": a.why });
    report.split_accesses.iter().map(access).collect()
}

fn masked_accesses(report: &Report) -> Value {
    let access = |a: &groundswell::report::MaskedAccessReport| json!({ "kind": a.kind, "memory": a.memory, "dims": a.dims, "why": a.why });
    report.masked_accesses.iter().map(access).collect()
}

fn unshared_reads(report: &Report) -> Value {
    let read = |r: &groundswell::report::UnsharedReadReport| json!({ "what": r.what, "memory": r.memory, "why": r.why });
    report.unshared_reads.iter().map(read).collect()
}

fn conversions(report: &Report) -> Value {
    let conversion = |c: &groundswell::report::ConversionReport| {
        json!({
            "what": c.what, "user": c.user, "way": c.way.text(), "from": c.from, "to": c.to,
            "vector_instructions": c.vector_instructions, "lds_instructions": c.lds_instructions,
        })
    };
    report.conversions.iter().map(conversion).collect()
}

/// The orders of reductions, which 64 bits of hexadecimal digits tell apart: JSON has no integers of 64 bits.
fn reductions(report: &Report) -> Value {
    let tree = |tree: &groundswell::report::ReductionTree| {
        let hash = format!("{:016x}", tree.hash);
        json!({ "operation": tree.operation, "dim": tree.dim, "hash": hash })
    };
    report.reductions.iter().map(tree).collect()
}

/// The resources of a launch; its grid is null where sizes are not known yet.
pub fn launch(executable: &Executable, grid: Option<[u32; 3]>) -> Value {
    let arguments: Vec<Value> = executable.parameters().iter().map(argument).collect();
    json!({
        "grid": grid,
        "block": executable.block(),
        "lds_bytes": executable.report().lds_bytes,
        "kernarg_bytes": executable.kernarg_bytes(),
        "args": arguments,
    })
}

fn argument(parameter: &Parameter) -> Value {
    let size = |size: &Size| match size {
        Size::Static(n) => json!(n),
        Size::Dynamic(symbol) => json!(symbol.name()),
    };
    match parameter {
        Parameter::Buffer { name, dtype, shape, strides, written, offset } => {
            let shape: Vec<Value> = shape.iter().map(size).collect();
            let mut buffer = json!({
                "name": &**name, "kind": "buffer", "dtype": dtype.name(), "shape": shape,
                "access": if *written { "read_write" } else { "read_only" }, "offset": offset,
            });
            if !strides.is_empty() {
                // Each stride is the product of a list.
                let strides: Vec<Vec<Value>> = strides.iter().map(|s| s.iter().map(size).collect()).collect();
                buffer["strides"] = json!(strides);
            }
            buffer
        }
        Parameter::Log { name, dtype, shape, offset, .. } => {
            let shape: Vec<Value> = shape.iter().map(size).collect();
            json!({
                "name": &**name, "kind": "log", "dtype": dtype.name(), "shape": shape, "offset": offset,
            })
        }
        Parameter::Scalar { name, dtype, offset } => {
            json!({ "name": &**name, "kind": "scalar", "dtype": dtype.name(), "offset": offset })
        }
        Parameter::Symbol { symbol, offset } => {
            json!({ "name": symbol.name(), "kind": "symbol", "dtype": "i32", "offset": offset })
        }
    }
}

/// What a kernel has logged: all elements, row after row.
pub fn logged(log: &LoggedTensor) -> Value {
    let elements = match log.tensor.as_slice::<i64>() {
        Some(elements) => elements.iter().map(|&element| element.into()).collect(),
        None if log.tensor.dtype().is_float() => log.tensor.to_f64().into_iter().map(number).collect(),
        None => {
            log.tensor.to_f64().into_iter().map(|element| (element as i64).into()).collect::<Vec<Value>>()
        }
    };
    json!({
        "name": log.name,
        "file": log.at.as_ref().map(|at| &*at.file),
        "line": log.at.as_ref().map(|at| at.line),
        "dtype": log.tensor.dtype().name(),
        "shape": log.tensor.shape(),
        "elements": elements,
    })
}

/// Scalar arguments by name.
pub fn scalars(scalars: &[(String, ScalarValue)]) -> Value {
    let value = |value: ScalarValue| match value {
        // As it is written, and not as the nearest f64.
        ScalarValue::F32(value) => value.to_string().parse().map_or(Value::Null, number),
        ScalarValue::F64(value) => number(value),
        ScalarValue::I32(value) => value.into(),
        ScalarValue::I64(value) => value.into(),
    };
    Value::Object(scalars.iter().map(|(name, scalar)| (name.clone(), value(*scalar))).collect())
}

/// A number, or null where JSON cannot represent it.
pub fn number(value: f64) -> Value {
    serde_json::Number::from_f64(value).map_or(Value::Null, Value::Number)
}
