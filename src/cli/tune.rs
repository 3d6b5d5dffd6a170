//! `groundswell tune`: the best choices for a kernel and a shape, by time mode.

use std::fmt::Write;

use groundswell::kernels::Choices;
use groundswell::templates;
use groundswell::tuning::{
    ChoiceValue, ConstraintCount, Database, JudgedCandidate, Point, RefusedCandidate, SearchLevel, Template,
    Tuned, Tuner,
};
use serde_json::{Map, Value, json};

use super::arguments::{Tune, target_named};
use super::failure::Failure;
use super::job::dtype;
use super::outcome::VerbOutcome;
use super::terminal::{Style, paint, progress};

/// The template of the kernel that is asked for.
fn template(arguments: &Tune) -> Result<Box<dyn Template>, Failure> {
    let named = |argument: &str, name: &Option<String>| {
        name.as_ref().map(|name| dtype(argument, name)).transpose().map_err(Failure::usage)
    };
    let inputs = named("--dtype", &arguments.dtype)?;
    let output = named("--out-dtype", &arguments.out_dtype)?;
    let given: Vec<(&str, i64)> = arguments.set.iter().map(|(name, value)| (name.as_str(), *value)).collect();
    let choices = Choices { dtype: inputs, output, ..Choices::default() };
    templates::find(&arguments.kernel, &given, choices).map_err(Failure::usage)
}

/// The verb.
pub fn tune(arguments: &Tune) -> Result<VerbOutcome, Failure> {
    let target = target_named(&arguments.target)?;
    let template = template(arguments)?;
    let level = SearchLevel::of_number(arguments.how.level).unwrap_or_default();
    let mut tuner = Tuner::new(target)?.level(level).search(arguments.how.search);
    if let Some(budget) = arguments.how.budget {
        tuner = tuner.budget(budget);
    }
    if let Some((part, parts)) = arguments.how.shard {
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
    let choice = |(name, value): (&str, &ChoiceValue)| (name.to_owned(), json!(value.to_string()));
    Value::Object(point.values().map(choice).collect::<Map<_, _>>())
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
    let constraint = |count: &ConstraintCount| json!({ "name": &*count.name, "before": count.before, "after": count.after });
    let refused = |refused: &RefusedCandidate| json!({ "choices": choices(&refused.point), "reason": refused.reason.message });
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
