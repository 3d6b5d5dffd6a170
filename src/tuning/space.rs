//! Spaces of choices: named choices with the values that each may have, and what has to hold of them.
//!
//! A space is a list of steps. A choice multiplies the points found so far by its values, which may depend on
//! the choices before it; a constraint drops points. So points that cannot be completed are dropped early,
//! and what each constraint has dropped is counted.

use std::fmt;
use std::sync::Arc;

use super::point::{ChoiceValue, Point};
use crate::ir::diagnostic::Diagnostic;

/// How much is tried.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub enum SearchLevel {
    /// The point that the template takes if nobody tunes.
    Zero,
    /// Points that are usually among the best: some tens.
    #[default]
    One,
    /// Everything.
    Two,
}

impl SearchLevel {
    /// Every level, from the least on.
    pub const ALL: [SearchLevel; 3] = [SearchLevel::Zero, SearchLevel::One, SearchLevel::Two];

    /// The level of that number.
    pub fn of_number(number: u8) -> Option<SearchLevel> {
        SearchLevel::ALL.get(usize::from(number)).copied()
    }
}

type ChoiceValues = Arc<dyn Fn(&Point) -> Vec<ChoiceValue> + Send + Sync>;
type PointCondition = Arc<dyn Fn(&Point) -> bool + Send + Sync>;

/// A step of a space.
#[derive(Clone)]
enum SpaceStep {
    Choice { name: Arc<str>, values: ChoiceValues },
    Constraint { name: Arc<str>, holds: PointCondition },
}

/// Choices and constraints, in order.
///
/// # Example
/// ```
/// use groundswell::tuning::{Point, TuningSpace};
///
/// let space = TuningSpace::new()
///     .choice("tile", [[64, 64], [128, 128], [256, 256]])
///     .dependent_choice("waves", |point: &Point| {
///         let [m, _] = point.numbers("tile").unwrap_or([64, 64]);
///         [1, 2, 4].into_iter().filter(|waves| m / waves >= 64).map(Into::into).collect()
///     })
///     .constraint("at most 128 rows a wave", |point| {
///         let [m, _] = point.numbers("tile").unwrap_or([0, 0]);
///         m / point.number("waves").unwrap_or(1) <= 128
///     });
/// let found = space.enumerate()?;
/// let points: Vec<String> = found.points.iter().map(|point| point.to_string()).collect();
/// assert_eq!(points[..2], ["tile=64x64 waves=1", "tile=128x128 waves=1"]);
/// assert_eq!((found.constraints[0].before, found.constraints[0].after), (6, 5));
/// # Ok::<(), groundswell::prelude::Diagnostic>(())
/// ```
#[derive(Clone)]
pub struct TuningSpace {
    steps: Vec<SpaceStep>,
    limit: usize,
}

/// The most points of a space, unless it says otherwise.
const MOST_POINTS: usize = 1_200_000;

impl Default for TuningSpace {
    fn default() -> TuningSpace {
        TuningSpace::new()
    }
}

impl fmt::Debug for TuningSpace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.steps.iter().map(|step| match step {
            SpaceStep::Choice { name, .. } => format!("choice {name}"),
            SpaceStep::Constraint { name, .. } => format!("constraint {name}"),
        });
        f.debug_list().entries(names).finish()
    }
}

/// The effect of a constraint on the points that came to it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ConstraintCount {
    /// Its name.
    pub name: Arc<str>,
    /// Points that came to it, of which those after it may become several.
    pub before: usize,
    /// Those of them for which it holds.
    pub after: usize,
}

/// All points of a space.
#[derive(Clone, Debug)]
pub struct EnumeratedSpace {
    /// Its points in order: that of the first choice first, the values of the last choice changing fastest.
    pub points: Vec<Point>,
    /// The effect of each constraint, in order.
    pub constraints: Vec<ConstraintCount>,
}

impl TuningSpace {
    /// The space of a single point without choices.
    pub fn new() -> TuningSpace {
        TuningSpace { steps: Vec::new(), limit: MOST_POINTS }
    }

    /// Adds a choice among values. A value is a number, a few numbers that go together, or a word.
    #[must_use]
    pub fn choice<V: Into<ChoiceValue>>(
        self,
        name: &str,
        values: impl IntoIterator<Item = V>,
    ) -> TuningSpace {
        let values: Vec<ChoiceValue> = values.into_iter().map(Into::into).collect();
        self.dependent_choice(name, move |_| values.clone())
    }

    /// Adds a choice whose values follow from the choices before it.
    #[must_use]
    pub fn dependent_choice(
        mut self,
        name: &str,
        values: impl Fn(&Point) -> Vec<ChoiceValue> + Send + Sync + 'static,
    ) -> TuningSpace {
        self.steps.push(SpaceStep::Choice { name: name.into(), values: Arc::new(values) });
        self
    }

    /// Adds a condition on the choices before it. The name completes the sentence "it does not hold that
    /// ...".
    #[must_use]
    pub fn constraint(
        mut self,
        name: &str,
        holds: impl Fn(&Point) -> bool + Send + Sync + 'static,
    ) -> TuningSpace {
        self.steps.push(SpaceStep::Constraint { name: name.into(), holds: Arc::new(holds) });
        self
    }

    /// The same with room for so many points at a time, instead of 1.2 million.
    #[must_use]
    pub fn limit(mut self, points: usize) -> TuningSpace {
        self.limit = points;
        self
    }

    /// Finds all points.
    ///
    /// # Errors
    /// Two choices of one name; more points than there is room for; no point at all, with the choice or the
    /// constraint that left none.
    pub fn enumerate(&self) -> Result<EnumeratedSpace, Diagnostic> {
        let mut points = vec![Point::default()];
        let mut constraints = Vec::new();
        for step in &self.steps {
            match step {
                SpaceStep::Choice { name, values } => points = self.multiplied(&points, name, values)?,
                SpaceStep::Constraint { name, holds } => {
                    let before = points.len();
                    points.retain(|point| holds(point));
                    let after = points.len();
                    constraints.push(ConstraintCount { name: name.clone(), before, after });
                    if after == 0 {
                        let text = format!("no point of the space is left: of {before} none has `{name}`");
                        return Err(Diagnostic::invalid(text)
                            .help("add values to the choices before the constraint, or weaken it"));
                    }
                }
            }
        }
        Ok(EnumeratedSpace { points, constraints })
    }

    /// The points with each of the values of another choice.
    fn multiplied(
        &self,
        points: &[Point],
        name: &Arc<str>,
        values: &ChoiceValues,
    ) -> Result<Vec<Point>, Diagnostic> {
        if points.iter().any(|point| point.value(name).is_some()) {
            let text = format!("two choices of the space are called `{name}`");
            return Err(Diagnostic::invalid(text).help("give each choice a name of its own"));
        }
        let mut all = Vec::new();
        for point in points {
            for value in values(point) {
                if all.len() == self.limit {
                    let text = format!("the space has more than {} points before `{name}`", self.limit);
                    return Err(Diagnostic::invalid(text).help(
                        "put constraints right after the choices that they are about, or raise the limit",
                    ));
                }
                all.push(point.with(name.clone(), value));
            }
        }
        if all.is_empty() {
            let text = format!("no point of the space is left: `{name}` has no values");
            return Err(Diagnostic::invalid(text).help("give the choice a value for every point before it"));
        }
        Ok(all)
    }
}
