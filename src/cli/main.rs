//! The `groundswell` program: for people, and with `--json` for scripts.
//!
//! Every verb is a function from its arguments to an [`Outcome`]; only this file prints and exits.

mod arguments;
mod asm;
mod bench;
mod compile;
mod disasm;
mod failure;
mod file;
mod job;
mod json;
mod judgement;
mod kernel_argument;
mod list;
mod listing;
mod outcome;
mod run;
mod sim;
mod terminal;

use std::io::Write;
use std::process::ExitCode;

use clap::Parser;

use arguments::{Arguments, Verb};
use failure::Failure;
use outcome::Outcome;

fn main() -> ExitCode {
    let wants_json = std::env::args_os().any(|argument| argument == "--json");
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) if wants_json && error.use_stderr() => {
            return finish(Err(Failure::arguments(&error.render().to_string())), Mode::Json);
        }
        Err(error) => {
            // A closed pipe is no reason to fail differently.
            let _ = error.print();
            return if error.use_stderr() { ExitCode::FAILURE } else { ExitCode::SUCCESS };
        }
    };
    let mode = if wants_json { Mode::Json } else { Mode::Text };
    let outcome = match &arguments.verb {
        Verb::List(list) => list::list(list),
        Verb::Run(run) => run::run(run),
        Verb::Compile(compile) => compile::compile(compile),
        Verb::Asm(asm) => asm::asm(asm),
        Verb::Sim(sim) => sim::sim(sim),
        Verb::Disasm(disasm) => disasm::disasm(disasm),
        Verb::Bench(bench) => bench::bench(bench),
    };
    finish(outcome, mode)
}

/// Whom the program talks to.
#[derive(Copy, Clone, PartialEq, Eq)]
enum Mode {
    Text,
    Json,
}

fn finish(outcome: Result<Outcome, Failure>, mode: Mode) -> ExitCode {
    let (success, standard, diagnostic) = match (outcome, mode) {
        (Ok(outcome), Mode::Text) => (outcome.success, outcome.text, String::new()),
        (Ok(outcome), Mode::Json) => (outcome.success, json::line(&outcome.json), String::new()),
        (Err(failure), Mode::Text) => (false, Vec::new(), failure.render()),
        (Err(failure), Mode::Json) => (false, json::line(&failure.json()), String::new()),
    };
    // Whoever closed the pipe does not want the rest.
    let _ = std::io::stderr().write_all(diagnostic.as_bytes());
    let mut out = std::io::stdout().lock();
    let _ = out.write_all(&standard).and_then(|()| out.flush());
    if success { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
