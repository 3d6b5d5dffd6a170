//! How far a launch is: for whoever shows it while the launch runs, and for what is said about a launch that
//! takes too long.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// How far a launch is. One that lives as long as the process can be given to launches
/// ([`LaunchConfig::progress`](super::LaunchConfig::progress)), one after the other.
#[derive(Debug, Default)]
pub struct LaunchProgress {
    ended: AtomicU64,
    workgroups: AtomicU64,
}

impl LaunchProgress {
    /// Of a launch that has not begun.
    pub const fn new() -> LaunchProgress {
        LaunchProgress { ended: AtomicU64::new(0), workgroups: AtomicU64::new(0) }
    }

    /// Workgroups that have ended, and all that are simulated. In time mode these are a part of the launch.
    pub fn workgroups(&self) -> (u64, u64) {
        (self.ended.load(Relaxed), self.workgroups.load(Relaxed))
    }

    /// So many workgroups are about to be simulated.
    pub(super) fn begin(&self, workgroups: u64) {
        self.ended.store(0, Relaxed);
        self.workgroups.store(workgroups, Relaxed);
    }

    /// One more has ended.
    pub(super) fn one_ended(&self) {
        self.ended.fetch_add(1, Relaxed);
    }
}

impl PartialEq for LaunchProgress {
    /// Only one is the same as itself.
    fn eq(&self, other: &LaunchProgress) -> bool {
        std::ptr::eq(self, other)
    }
}

impl Eq for LaunchProgress {}

/// A launch that was stopped because it took longer on the host than it may.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Overrun {
    /// How long it may take, in milliseconds.
    pub milliseconds: u64,
    /// How much of that had gone before it began: earlier launches, and in time mode the estimate.
    pub spent_before: u64,
    /// Workgroups that had ended.
    pub ended: u64,
    /// All that are simulated.
    pub workgroups: u64,
}

impl fmt::Display for Overrun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Overrun { milliseconds, spent_before, ended, workgroups } = *self;
        write!(f, "the launch did not end within {:?}", Duration::from_millis(milliseconds))?;
        if spent_before > 0 {
            write!(f, ", of which {:?} had gone before it began", Duration::from_millis(spent_before))?;
        }
        write!(f, ", and was stopped: {ended} of {workgroups} workgroups had ended")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_overrun_says_how_far_the_launch_was() {
        let overrun = Overrun { milliseconds: 1500, spent_before: 0, ended: 3, workgroups: 64 };
        let says = "the launch did not end within 1.5s, and was stopped: 3 of 64 workgroups had ended";
        assert_eq!(overrun.to_string(), says);
        let later = Overrun { spent_before: 400, ..overrun };
        assert!(later.to_string().contains("within 1.5s, of which 400ms had gone before it began, and"));
    }
}
