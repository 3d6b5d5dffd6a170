//! The report of check mode.

use std::fmt;

use super::cause::{FindingCause, grouped};
use super::finding::{AdviceReader, Finding};
use super::touched::TouchedBytes;

/// Everything that a checked launch found.
#[derive(Clone, PartialEq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct CheckReport {
    /// Name of the kernel.
    pub kernel: String,
    /// Seed of the order of waves and of memory.
    pub seed: u64,
    /// The findings, by address of the instruction; [`CheckReport::causes`] puts together what has one cause,
    /// and so does the report's JSON.
    #[cfg_attr(feature = "serde", serde(serialize_with = "by_cause"))]
    pub findings: Vec<Finding>,
    /// Notes on what does no harm but may be unintended, in the same order.
    #[cfg_attr(feature = "serde", serde(serialize_with = "by_cause"))]
    pub notes: Vec<Finding>,
    /// Instructions that all waves executed.
    pub instructions: u64,
    /// Waves that ran.
    pub waves: u64,
    /// The bytes that it has used.
    #[cfg_attr(feature = "serde", serde(skip))]
    pub touched: TouchedBytes,
}

impl CheckReport {
    /// That of a launch without workgroups.
    pub(crate) fn of_nothing(kernel: &str, seed: u64) -> CheckReport {
        let kernel = kernel.to_owned();
        let touched = TouchedBytes::default();
        CheckReport {
            kernel,
            seed,
            findings: Vec::new(),
            notes: Vec::new(),
            instructions: 0,
            waves: 0,
            touched,
        }
    }

    /// The same with advice for authors of kernels.
    #[must_use]
    pub fn for_kernels(mut self) -> CheckReport {
        self.findings
            .iter_mut()
            .chain(&mut self.notes)
            .for_each(|finding| finding.reader = AdviceReader::Kernels);
        self
    }

    /// The findings by their cause, in the order of the first one of each.
    pub fn causes(&self) -> Vec<FindingCause<'_>> {
        grouped(&self.findings)
    }

    /// The notes by their cause.
    pub fn noted_causes(&self) -> Vec<FindingCause<'_>> {
        grouped(&self.notes)
    }

    /// True if nothing was found, notes aside.
    pub fn is_clean(&self) -> bool {
        self.findings.is_empty()
    }
}

#[cfg(feature = "serde")]
fn by_cause<S: serde::Serializer>(findings: &[Finding], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(grouped(findings))
}

impl fmt::Display for CheckReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let causes = self.causes();
        for cause in causes.iter().chain(&self.noted_causes()) {
            writeln!(f, "{cause}\n")?;
        }
        let (found, places) = (causes.len(), self.findings.len());
        let plural = if found == 1 { "" } else { "s" };
        write!(f, "kernel `{}`, seed {}: {found} finding{plural}", self.kernel, self.seed)?;
        if places > found { write!(f, " at {places} places") } else { Ok(()) }
    }
}
