//! Exit codes: the program's promise to scripts.

use std::process::ExitCode;

use groundswell::diagnostic::Kind;

/// How the program ends.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Exit {
    /// The work is done, and what was checked holds.
    Worked = 0,
    /// A check failed, or the input is at fault.
    Failed = 1,
    /// The arguments are at fault.
    Usage = 2,
    /// The request is valid, but cannot be fulfilled here.
    Cannot = 3,
}

/// The text of `--help` about them.
pub const EXIT_CODES: &str = "\
Exit codes:
  0  it worked, and what was checked holds
  1  a check failed, or the input is at fault: a kernel, a text, an object, a file that cannot be read
  2  usage: unknown or malformed arguments, or arguments that do not go together
  3  it cannot be done here: a limit, a missing device, something not supported, a file that cannot be written";

impl From<Kind> for Exit {
    fn from(kind: Kind) -> Exit {
        match kind {
            Kind::Invalid | Kind::Denied => Exit::Failed,
            Kind::Limit | Kind::Unsupported | Kind::Bug => Exit::Cannot,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> ExitCode {
        ExitCode::from(exit as u8)
    }
}
