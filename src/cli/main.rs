//! The `groundswell` program: for people, and with `--json` for scripts.
//!
//! Every verb is a function from its arguments to an [`VerbOutcome`]; only this file exits, and only
//! `outputs` writes.
//!
//! To add a verb, add a file that returns a [`VerbOutcome`], and its arguments in `arguments`.

mod arguments;
mod asm;
mod bench;
mod build;
mod cache_verb;
mod compile;
mod disasm;
mod exit;
mod failure;
mod hip;
mod host_code;
mod inputs;
mod job;
mod json;
mod judgement;
mod kernel_argument;
mod list;
mod listing;
mod outcome;
mod outputs;
mod partial;
mod run;
mod sim;
mod snippet;
mod standard_input;
mod terminal;
mod tune;

use std::io::Write;
use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches};
use groundswell::cache;

use arguments::{CommandLine, Verb};
use exit::{EXIT_CODES, Exit};
use failure::Failure;
use outcome::VerbOutcome;
use outputs::{Audience, Files, TextStream, to_standard_output};

fn main() -> ExitCode {
    let wants_json = std::env::args_os().any(|argument| argument == "--json");
    let audience = if wants_json { Audience::Scripts } else { Audience::People };
    let arguments = match read_arguments() {
        Ok(arguments) => arguments,
        Err(error) if wants_json && error.use_stderr() => {
            return finish(Err(Failure::arguments(&error.render().to_string())), audience).into();
        }
        Err(error) => {
            // A closed pipe is no reason to fail differently.
            let _ = error.print();
            return if error.use_stderr() { Exit::Usage } else { Exit::Worked }.into();
        }
    };
    let mut files = Files::new(audience);
    let outcome = match &arguments.verb {
        Verb::List(list) => list::list(list),
        Verb::Run(run) => run::run(run, &mut files),
        Verb::Compile(compile) => compile::compile(compile, &mut files),
        Verb::Asm(asm) => asm::asm(asm, &mut files),
        Verb::Sim(sim) => sim::sim(sim, &mut files),
        Verb::Hip(arguments) => hip::hip(arguments, &mut files),
        Verb::Disasm(disasm) => disasm::disasm(disasm, &mut files),
        Verb::Build(arguments) => build::build(arguments),
        Verb::Cache(cache) => cache_verb::cache(cache),
        Verb::Bench(bench) => bench::bench(bench),
        Verb::Tune(arguments) => tune::tune(arguments),
    };
    warn_of_cache(audience);
    match (&outcome, audience, files.text_stream()) {
        // An output sent to standard output has it to itself.
        (Ok(done), Audience::People, TextStream::Error) => {
            let _ = std::io::stderr().write_all(&done.text);
            done.exit.into()
        }
        _ => finish(outcome, audience).into(),
    }
}

/// Says on standard error that the cache on disk does not work, if that was asked for and people look.
fn warn_of_cache(audience: Audience) {
    let problem = match cache::on_disk() {
        Ok(cache) => cache.and_then(|cache| cache.problem()),
        Err(unusable) => Some(unusable),
    };
    if let (Some(problem), Audience::People) = (problem, audience) {
        let help = problem.help.as_ref().map(|help| format!("; {help}")).unwrap_or_default();
        // If this fails, nobody looks.
        let _ = writeln!(std::io::stderr(), "warning: {}{help}", problem.message);
    }
}

/// The arguments; the help of every verb explains the exit codes.
fn read_arguments() -> Result<CommandLine, clap::Error> {
    let command = CommandLine::command().after_help(EXIT_CODES);
    let command = command.mut_subcommands(|verb| verb.after_help(EXIT_CODES));
    CommandLine::from_arg_matches(&command.try_get_matches()?)
}

fn finish(outcome: Result<VerbOutcome, Failure>, audience: Audience) -> Exit {
    let (exit, standard, diagnostic) = match (outcome, audience) {
        (Ok(outcome), Audience::People) => (outcome.exit, outcome.text, Vec::new()),
        (Ok(outcome), Audience::Scripts) => {
            let line = outcome.json.as_ref().map(json::line).unwrap_or_default();
            (outcome.exit, line, Vec::new())
        }
        (Err(failure), Audience::People) => (failure.exit(), Vec::new(), failure.render().into_bytes()),
        (Err(failure), Audience::Scripts) => (failure.exit(), json::line(&failure.json()), Vec::new()),
    };
    // If this fails, there is no stream left for reporting it.
    let _ = std::io::stderr().write_all(&diagnostic);
    match to_standard_output(|out| out.write_all(&standard)) {
        Ok(()) => exit,
        Err(error) => {
            let failure = Failure::unwritable(&"standard output", &error);
            let _ = std::io::stderr().write_all(failure.render().as_bytes());
            failure.exit()
        }
    }
}
