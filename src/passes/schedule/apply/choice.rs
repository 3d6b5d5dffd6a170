//! Which strategies a loop could have, what a trip was estimated to take under each, and which one it got.

use std::fmt;

use crate::ir::expr::{LastingName, lasting_name};

/// What bounds a trip.
#[derive(Copy, Clone, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub enum TripBound {
    /// The matrix cores.
    Matrix,
    /// The vector ALUs.
    Vector,
    /// LDS.
    Lds,
    /// Bytes from the level that compute units share.
    Loads,
    /// None of them: waves wait for results and for each other.
    Latency,
}

impl TripBound {
    /// Its name in reports.
    pub fn name(self) -> &'static str {
        match self {
            TripBound::Matrix => "matrix cores",
            TripBound::Vector => "VALU",
            TripBound::Lds => "LDS",
            TripBound::Loads => "loads",
            TripBound::Latency => "latency",
        }
    }
}

/// What a trip of a workgroup needs.
#[derive(Copy, Clone, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub struct TripNeeds {
    /// Clk of the matrix cores.
    pub matrix: u32,
    /// Clk of the vector ALUs.
    pub vector: u32,
    /// Clk of the ports of LDS.
    pub lds: u32,
    /// Clk of the level that compute units share.
    pub loads: u32,
    /// Bytes per 1000 clk that it would load at the speed of its matrix cores, or of its busiest unit if it
    /// has no matrix instructions.
    pub asked: u32,
    /// Bytes per 1000 clk that a compute unit has of that level while all load.
    pub had: u32,
}

impl TripNeeds {
    /// Clk of the unit that it needs longest.
    pub(crate) fn longest(&self) -> u32 {
        self.matrix.max(self.vector).max(self.lds).max(self.loads)
    }
}

/// The strategies among which a loop's schedule was chosen.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub struct ScheduleChoice {
    /// The loop.
    pub what: String,
    /// The strategies, in the order of the table of strategies.
    pub candidates: Vec<ScheduleCandidate>,
}

/// A strategy that a loop could have.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub struct ScheduleCandidate {
    /// Its name.
    #[serde(with = "lasting_name")]
    pub strategy: LastingName,
    /// What it would take.
    pub outcome: CandidateOutcome,
    /// Whether the loop got it.
    pub chosen: bool,
}

/// What became of a candidate.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub enum CandidateOutcome {
    /// A trip would take so long.
    Estimated(EstimatedTrip),
    /// It does not suit the loop.
    Refused(String),
}

/// What a trip of one iteration is estimated to take.
#[derive(Copy, Clone, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub struct EstimatedTrip {
    /// Clk of a workgroup's trip while the compute unit runs as many workgroups as it holds.
    pub clk: u32,
    /// Clk of a trip of a workgroup that has the compute unit for itself.
    pub alone: u32,
    /// Clk of all trips of a launch's workgroup, with what its pipeline does before and after the steady ones
    /// and the way of that code to the compute unit: beside as many workgroups as the compute unit holds, and
    /// alone. `None` if no bound of the number of trips is known.
    pub whole: Option<[u64; 2]>,
    /// What bounds it.
    pub bound: TripBound,
    /// What it needs of each unit.
    pub needs: TripNeeds,
    /// Workgroups that the compute unit holds.
    pub workgroups: u32,
    /// Vector registers of a wave, about.
    pub registers: u32,
}

impl ScheduleCandidate {
    /// What a trip would take, if it suits.
    pub fn estimate(&self) -> Option<&EstimatedTrip> {
        match &self.outcome {
            CandidateOutcome::Estimated(trip) => Some(trip),
            CandidateOutcome::Refused(_) => None,
        }
    }
}

/// The estimate and what bounds it, or why there is none.
impl fmt::Display for ScheduleCandidate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}: ", self.strategy, if self.chosen { ", chosen" } else { "" })?;
        match &self.outcome {
            CandidateOutcome::Refused(why) => f.write_str(why),
            CandidateOutcome::Estimated(EstimatedTrip { clk, alone, bound, needs, workgroups, .. }) => {
                write!(f, "{clk} clk, bound by {} (", bound.name())?;
                for (name, clk) in
                    [("matrix cores", needs.matrix), ("VALU", needs.vector), ("LDS", needs.lds)]
                {
                    if clk > 0 {
                        write!(f, "{name} {clk}, ")?;
                    }
                }
                let [asked, had] = [needs.asked, needs.had].map(|bytes| f64::from(bytes) / 1000.0);
                let loads = needs.loads;
                write!(f, "loads {loads}: {asked:.1} of {had:.1} bytes per clk)")?;
                match workgroups {
                    1 => Ok(()),
                    _ => write!(f, "; {workgroups} workgroups at a time, {alone} clk alone"),
                }
            }
        }
    }
}
