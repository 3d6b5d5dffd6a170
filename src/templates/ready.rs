//! Any ready kernel as a template: the sizes of its blocks, its waves and its schedule are choices.

use crate::codegen::target::TargetId;
use crate::kernels::{Choices, KernelEntry, Waves, find};
use crate::prelude::*;
use crate::tuning::{ChoiceValue, InstanceKernel, Point, SearchLevel, Template, TuningSpace};

/// A ready kernel of [`list`](crate::kernels::list) for the values of its symbols. What its symbols call
/// blocks (`BLOCK_M` and so on) is chosen around the defaults, in powers of two.
///
/// # Example
/// ```
/// use groundswell::prelude::*;
/// use groundswell::templates::ReadyTemplate;
/// use groundswell::tuning::{SearchLevel, Template};
///
/// let softmax = ReadyTemplate::new("softmax", &[("M", 4096), ("N", 1024)])?;
/// let space = softmax.space(Target::GFX942, SearchLevel::One)?.enumerate()?;
/// assert!(space.points.len() > 2);
/// # Ok::<(), Diagnostic>(())
/// ```
#[derive(Clone)]
pub struct ReadyTemplate {
    entry: &'static KernelEntry,
    values: Vec<(&'static str, i64)>,
    choices: Choices,
}

/// Waves along rows and columns that are tried.
const WAVES: [[i64; 2]; 8] = [[1, 1], [2, 1], [1, 2], [2, 2], [4, 1], [1, 4], [4, 2], [8, 1]];

impl ReadyTemplate {
    /// The ready kernel of that name with these values of its symbols, and the defaults of the others.
    ///
    /// # Errors
    /// No kernel has the name, or the kernel no symbol that is given.
    pub fn new(name: &str, values: &[(&str, i64)]) -> Result<ReadyTemplate, Diagnostic> {
        let entry = find(name).ok_or_else(|| {
            Diagnostic::invalid(format!("no ready kernel is called `{name}`"))
                .help("`groundswell list` shows all of them")
        })?;
        if let Some((unknown, _)) =
            values.iter().find(|given| entry.symbols.iter().all(|s| s.name != given.0))
        {
            let names: Vec<&str> = entry.symbols.iter().map(|symbol| symbol.name).collect();
            return Err(Diagnostic::invalid(format!("{name} has no symbol {unknown}"))
                .help(format!("it has {}", names.join(", "))));
        }
        let given = |name: &str| values.iter().find(|value| value.0 == name).map(|value| value.1);
        Ok(ReadyTemplate { entry, values: entry.values(&given), choices: Choices::default() })
    }

    /// The same with dtypes and a matrix instruction.
    #[must_use]
    pub fn choices(mut self, choices: Choices) -> ReadyTemplate {
        self.choices = choices;
        self
    }

    /// The value of a symbol.
    pub fn value(&self, name: &str) -> Option<i64> {
        self.values.iter().find(|value| value.0 == name).map(|value| value.1)
    }

    fn blocks(&self) -> impl Iterator<Item = (&'static str, i64)> {
        self.values.iter().copied().filter(|(name, _)| name.starts_with("BLOCK_"))
    }
}

impl Template for ReadyTemplate {
    fn name(&self) -> &str {
        self.entry.name
    }

    fn task(&self) -> String {
        let dtype = self.choices.dtype.unwrap_or(self.entry.dtype);
        let output = self.choices.output.map_or(String::new(), |output| format!(",{output}"));
        let sizes = self.values.iter().filter(|(name, _)| !name.starts_with("BLOCK_"));
        let sizes: Vec<String> = sizes.map(|(name, value)| format!("{name}={value}")).collect();
        format!("{dtype}{output}:{}", sizes.join(","))
    }

    fn space(&self, _: Target, level: SearchLevel) -> Result<TuningSpace, Diagnostic> {
        let reach = match level {
            SearchLevel::Zero => 0,
            SearchLevel::One => 1,
            SearchLevel::Two => 2,
        };
        let mut space = TuningSpace::new();
        for (name, default) in self.blocks() {
            let smaller = (1..=reach).map(|by| default >> by).filter(|&block| block > 0);
            let larger = (1..=reach).filter_map(|by| default.checked_shl(by));
            let values: Vec<i64> = std::iter::once(default).chain(smaller).chain(larger).collect();
            space = space.choice(name, values);
        }
        if let Some(usual) = self.choices.waves.or(self.entry.waves) {
            let usual = [i64::from(usual.m), i64::from(usual.n)];
            let others = WAVES.into_iter().filter(move |&waves| level > SearchLevel::Zero && waves != usual);
            let near = others.filter(|waves| {
                level == SearchLevel::Two
                    || waves[0] * waves[1] <= usual[0].saturating_mul(usual[1]).saturating_mul(2)
            });
            space = space.choice("waves", std::iter::once(usual).chain(near).map(ChoiceValue::from));
        }
        let schedules: &[&str] = match level {
            SearchLevel::Zero => &["none"],
            SearchLevel::One => &["none", "auto"],
            SearchLevel::Two => {
                &["none", "prefetch", "modulo", "interleaved", "pingpong", "two_phase", "auto"]
            }
        };
        Ok(space.choice("schedule", schedules.iter().copied()))
    }

    fn instantiate(&self, target: TargetId, point: &Point) -> Result<Vec<InstanceKernel>, Diagnostic> {
        let mut choices = self.choices.clone();
        if let Some([m, n]) = point.numbers::<2>("waves") {
            let along = |number: i64| u32::try_from(number).unwrap_or(0);
            choices.waves = Some(Waves::new(along(m), along(n)));
        }
        let kernel = self.entry.kernel(&choices)?;
        let value = |(name, default): (&'static str, i64)| (name, point.number(name).unwrap_or(default));
        let chosen = |name: &str| self.values.iter().map(|&v| value(v)).find(|v| v.0 == name).map(|v| v.1);
        let mut options =
            Options::new(target).schedule(Schedule::from_name(point.word("schedule").unwrap_or("none"))?);
        for (name, value) in self.entry.values(&chosen) {
            options = options.set(name, value);
        }
        Ok(vec![InstanceKernel { kernel, options, sizes: Vec::new() }])
    }
}
