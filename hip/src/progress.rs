//! How far a launch is, on the terminal of a program that `groundswell hip` runs.
//!
//! It is a line on standard error that appears once a launch takes long, and goes before the program goes on,
//! so it does not mix with what the program prints. A thread of its own draws it.

use std::io::{self, IsTerminal, Write};
use std::sync::{Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use groundswell::simulator::LaunchProgress;

/// How long a launch takes before it is shown.
const PATIENCE: Duration = Duration::from_millis(500);
/// How often the line is drawn.
const INTERVAL: Duration = Duration::from_millis(100);
/// Characters of a kernel's name: the line has to fit.
const NAME: usize = 36;

/// The launch that is shown.
struct ShownLaunch {
    kernel: String,
    begin: Instant,
    is_drawn: bool,
}

static PROGRESS: LaunchProgress = LaunchProgress::new();
static SHOWN: Mutex<Option<ShownLaunch>> = Mutex::new(None);
static CHANGED: Condvar = Condvar::new();

fn shown() -> MutexGuard<'static, Option<ShownLaunch>> {
    // A poisoned lock guards a line on the terminal.
    SHOWN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A launch that is shown until this is dropped.
pub(crate) struct Showing;

impl Showing {
    /// Shows a launch, if the terminal is there and no other launch is shown.
    pub(crate) fn start(kernel: &str) -> Option<Showing> {
        if !io::stderr().is_terminal() || !has_watcher() {
            return None;
        }
        let mut shown = shown();
        if shown.is_some() {
            return None;
        }
        let kernel = kernel.chars().take(NAME).collect();
        *shown = Some(ShownLaunch { kernel, begin: Instant::now(), is_drawn: false });
        CHANGED.notify_one();
        Some(Showing)
    }

    /// Where the launch notes how far it is.
    pub(crate) fn progress(&self) -> &'static LaunchProgress {
        &PROGRESS
    }
}

impl Drop for Showing {
    fn drop(&mut self) {
        if shown().take().is_some_and(|launch| launch.is_drawn) {
            draw("");
        }
    }
}

/// Starts the thread that draws, once; false if the system has none left.
fn has_watcher() -> bool {
    static WATCHER: OnceLock<bool> = OnceLock::new();
    *WATCHER.get_or_init(|| std::thread::Builder::new().spawn(watch).is_ok())
}

fn watch() {
    let mut shown = shown();
    loop {
        let wait = match &mut *shown {
            None => {
                shown = CHANGED.wait(shown).unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            Some(launch) => match PATIENCE.checked_sub(launch.begin.elapsed()) {
                Some(rest) if !rest.is_zero() => rest,
                _ => {
                    launch.is_drawn = true;
                    draw(&line(launch, PROGRESS.workgroups()));
                    INTERVAL
                }
            },
        };
        shown = CHANGED.wait_timeout(shown, wait).unwrap_or_else(PoisonError::into_inner).0;
    }
}

fn line(launch: &ShownLaunch, (ended, workgroups): (u64, u64)) -> String {
    let seconds = launch.begin.elapsed().as_secs();
    format!("{}: {ended} of {workgroups} workgroups, {seconds} s", launch.kernel)
}

/// Puts a text in place of the line that the cursor is in.
fn draw(text: &str) {
    // Whoever has closed the terminal does not miss it.
    let _ = write!(io::stderr(), "\r\x1b[2K{text}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_says_how_far_the_launch_is() {
        let launch = ShownLaunch { kernel: "k".to_owned(), begin: Instant::now(), is_drawn: false };
        assert_eq!(line(&launch, (3, 64)), "k: 3 of 64 workgroups, 0 s");
    }
}
