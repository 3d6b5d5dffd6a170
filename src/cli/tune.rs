//! `groundswell tune`: the best choices for a kernel and a shape, by time mode.

use std::fmt::Write;
use std::path::PathBuf;

use clap::Args;
use groundswell::kernels::{Choices, Form};
use groundswell::simulator::time::ClockChoice;
use groundswell::templates::{Matmul, ReadyTemplate};
use groundswell::tuning::{
    Budget, Database, JudgedCandidate, Point, Search, SearchLevel, Template, Tuned, Tuner,
};
use serde_json::{Map, Value, json};

use super::arguments::{binding, target_named};
use super::failure::Failure;
use super::job::dtype;
use super::judgement::{clock, seconds};
use super::outcome::VerbOutcome;
use super::terminal::{Style, paint, progress};

/// What is tuned, and how.
#[derive(Args)]
pub struct Tune {
    /// A name from `list`
    pub kernel: String,
    /// Bind a symbol
    #[arg(short = 's', long = "set", value_name = "SYM=N", value_parser = binding)]
    pub set: Vec<(String, i64)>,
    /// The chip to tune for, with modes if wanted: gfx942:sramecc+:xnack-
    #[arg(long, value_name = "TARGET", default_value = "gfx942")]
    pub target: String,
    /// Element type of the inputs
    #[arg(long, value_name = "DTYPE")]
    pub dtype: Option<String>,
    /// Element type of the output of a product
    #[arg(long, value_name = "DTYPE")]
    pub out_dtype: Option<String>,
    /// How much is tried: 0 what is taken without tuning, 1 what is usually among the best, 2 everything
    #[arg(long, value_name = "LEVEL", default_value_t = 1, value_parser = clap::value_parser!(u8).range(0..=2))]
    pub level: u8,
    /// In which order: exhaustive, halving (all with one round of workgroups, the best with more), or guided
    /// by what the template expects and by the neighbours of the best
    #[arg(long, value_name = "SEARCH", default_value = "guided", value_parser = search)]
    pub search: Search,
    /// When to stop: after so many candidates (100), after so many seconds (10s), or once nothing is expected
    /// that is better by more than so much (2%)
    #[arg(long, value_name = "N|Ns|N%", value_parser = budget)]
    pub budget: Option<Budget>,
    /// Search only part I of N parts of the space (from 1 on); databases merge the results
    #[arg(long, value_name = "I/N", value_parser = shard)]
    pub shard: Option<(u32, u32)>,
    /// Add the winner to this file; winners of many searches are kept there as text
    #[arg(long, value_name = "FILE")]
    pub database: Option<PathBuf>,
    /// The clock: sustained, greatest, or from 1 to 10000 MHz; without this, sustained
    #[arg(long, value_name = "CLOCK", value_parser = clock)]
    pub clock: Option<ClockChoice>,
    /// Candidates to show
    #[arg(long, value_name = "N", default_value_t = 8)]
    pub show: usize,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

fn search(word: &str) -> Result<Search, String> {
    let found = Search::ALL.iter().find(|search| search.0 == word);
    found
        .map(|search| search.1)
        .ok_or_else(|| format!("{word} is none of {}", Search::ALL.map(|s| s.0).join(", ")))
}

fn budget(text: &str) -> Result<Budget, String> {
    let none = Budget::default();
    if let Some(part) = text.strip_suffix('%') {
        let part: f64 = part.parse().map_err(|_| format!("{text} is no percentage"))?;
        return Ok(Budget { regret: Some(part / 100.0), ..none });
    }
    if let Some(time) = text.strip_suffix('s') {
        return Ok(Budget { time: Some(seconds(time)?), ..none });
    }
    match text.parse() {
        Ok(0) | Err(_) => {
            Err(format!("{text} is no number of candidates, of seconds (10s) or percentage (2%)"))
        }
        Ok(count) => Ok(Budget { candidates: Some(count), ..none }),
    }
}

fn shard(text: &str) -> Result<(u32, u32), String> {
    let parts =
        text.split_once('/').and_then(|(part, parts)| Some((part.parse().ok()?, parts.parse().ok()?)));
    match parts {
        Some((part, parts)) if (1..=parts).contains(&part) => Ok((part - 1, parts)),
        _ => Err(format!("{text} is no part of a space, as 1/4 is")),
    }
}

/// The template of the kernel that is asked for.
fn template(arguments: &Tune) -> Result<Box<dyn Template>, Failure> {
    let named = |argument: &str, name: &Option<String>| {
        name.as_ref().map(|name| dtype(argument, name)).transpose().map_err(Failure::usage)
    };
    let inputs = named("--dtype", &arguments.dtype)?;
    let output = named("--out-dtype", &arguments.out_dtype)?;
    let form = match arguments.kernel.as_str() {
        "gemm" => Some(Form::ABt),
        "gemm_ab" => Some(Form::AB),
        "gemm_atb" => Some(Form::AtB),
        "gemm_atbt" => Some(Form::AtBt),
        _ => None,
    };
    let given: Vec<(&str, i64)> = arguments.set.iter().map(|(name, value)| (name.as_str(), *value)).collect();
    let choices = Choices { dtype: inputs, output, ..Choices::default() };
    let ready = ReadyTemplate::new(&arguments.kernel, &given).map_err(Failure::usage)?.choices(choices);
    let Some(form) = form else { return Ok(Box::new(ready)) };
    let size = ["M", "N", "K"].map(|name| ready.value(name).unwrap_or(1));
    let matmul = Matmul::new(size).form(form);
    let matmul = inputs.map_or(matmul.clone(), |dtype| matmul.inputs(dtype));
    Ok(Box::new(output.map_or(matmul.clone(), |dtype| matmul.output(dtype))))
}

/// The verb.
pub fn tune(arguments: &Tune) -> Result<VerbOutcome, Failure> {
    let target = target_named(&arguments.target)?;
    let template = template(arguments)?;
    let level = SearchLevel::of_number(arguments.level).unwrap_or_default();
    let mut tuner = Tuner::new(target)?.level(level).search(arguments.search);
    if let Some(budget) = arguments.budget {
        tuner = tuner.budget(budget);
    }
    if let Some((part, parts)) = arguments.shard {
        tuner = tuner.shard(part, parts);
    }
    if let Some(clock) = arguments.clock {
        tuner = tuner.clock(clock);
    }
    let bar = progress("searching");
    let tuned = tuner.tune_with_progress(&*template, &|judged, most| {
        bar.set_message(format!("{judged} of at most {most} candidates judged"));
        true
    })?;
    bar.finish_and_clear();
    if let Some(path) = &arguments.database {
        let mut own = Database::default();
        own.add(tuned.record());
        own.add_to(path)?;
    }
    Ok(VerbOutcome::done(report(arguments, &tuned), to_json(arguments, &tuned)))
}

fn pruned(tuned: &Tuned) -> usize {
    tuned.constraints().iter().map(|count| count.before - count.after).sum()
}

fn report(arguments: &Tune, tuned: &Tuned) -> String {
    let best = tuned.best();
    let mut out = String::new();
    let title = format!("{}: {}", arguments.kernel, best.point);
    let _ = writeln!(out, "{}", paint(Style::Bold, &title));
    let bound = best.time.bound.map(|bound| format!(", its loop bound by {bound}")).unwrap_or_default();
    let _ = writeln!(out, "  {:.1} us on {}{bound}", best.time.microseconds, tuned.record().key.device());
    let _ = writeln!(out, "  {}", tuned.why());
    let _ =
        writeln!(out, "\n{:>10}  {:>5} {:>6} {:>5} {:>5}  choices", "us", "cores", "loop", "tail", "VGPRs");
    for JudgedCandidate { point, time } in tuned.candidates().iter().take(arguments.show) {
        let percent = |share: f64| format!("{:.0} %", 100.0 * share);
        let [matrix, in_loop, tail] =
            [time.shares.matrix, time.shares.main_loop, time.shares.tail].map(percent);
        let registers = time.registers[0] + time.registers[1];
        let spills = if time.scratch_bytes > 0 { ", spills" } else { "" };
        let _ = writeln!(
            out,
            "{:>10.1}  {matrix:>5} {in_loop:>6} {tail:>5} {registers:>5}  {point}{spills}",
            time.microseconds
        );
    }
    let (judged, refused) = (tuned.candidates().len(), tuned.refused().len());
    let _ = writeln!(
        out,
        "\n{judged} of {} candidates judged in {:.2} s; {} pruned, {refused} refused",
        tuned.points(),
        tuned.elapsed().as_secs_f64(),
        pruned(tuned)
    );
    for count in tuned.constraints().iter().filter(|count| count.after < count.before) {
        let _ = writeln!(out, "  {} of {} have {}", count.after, count.before, count.name);
    }
    if let Some(first) = tuned.refused().first() {
        let _ = writeln!(out, "  refused, the first of them: {}: {}", first.point, first.reason.message);
    }
    out
}

fn choices(point: &Point) -> Value {
    let value = |value: &groundswell::tuning::ChoiceValue| value.to_string();
    Value::Object(point.values().map(|(name, it)| (name.to_owned(), json!(value(it)))).collect::<Map<_, _>>())
}

fn candidate(candidate: &JudgedCandidate) -> Value {
    let time = &candidate.time;
    json!({
        "choices": choices(&candidate.point),
        "us": time.microseconds,
        "bound": time.bound,
        "shares": time.shares,
        "vgprs": time.registers[0],
        "agprs": time.registers[1],
        "lds_bytes": time.lds_bytes,
        "scratch_bytes": time.scratch_bytes,
        "launches": time.launches,
        "sampled": time.sampled,
    })
}

fn to_json(arguments: &Tune, tuned: &Tuned) -> Value {
    let record = tuned.record();
    let constraint = |count: &groundswell::tuning::ConstraintCount| json!({ "name": &*count.name, "before": count.before, "after": count.after });
    let refused = |refused: &groundswell::tuning::RefusedCandidate| json!({ "choices": choices(&refused.point), "reason": refused.reason.message });
    json!({
        "kernel": arguments.kernel,
        "target": arguments.target,
        "key": record.key.to_string(),
        "best": candidate(tuned.best()),
        "why": tuned.why(),
        "candidates": tuned.candidates().len(),
        "points": tuned.points(),
        "pruned": pruned(tuned),
        "constraints": tuned.constraints().iter().map(constraint).collect::<Vec<_>>(),
        "refused": tuned.refused().iter().map(refused).collect::<Vec<_>>(),
        "ranking": tuned.candidates().iter().take(arguments.show).map(candidate).collect::<Vec<_>>(),
        "seconds": tuned.elapsed().as_secs_f64(),
    })
}
