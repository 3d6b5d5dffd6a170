//! The colours of pipes in pictures and pages: those of Okabe and Ito, which colour-blind people can tell
//! apart, on light and on dark ground.

use super::record::Pipe;

/// The colour in which what a pipe does is drawn.
pub(super) const fn of_pipe(pipe: Pipe) -> &'static str {
    match pipe {
        Pipe::Valu => "#cc79a7",
        Pipe::Matrix => "#0072b2",
        Pipe::Scalar => "#56b4e9",
        Pipe::Lds => "#009e73",
        Pipe::LdsBanks => "#6fc7ab",
        Pipe::Vector => "#e69f00",
        Pipe::Branch => "#999999",
    }
}
