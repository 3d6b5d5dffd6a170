//! What each lane holds of the operands of a matrix instruction, as task mappings.
use super::mma::{MmaShape, Sparsity};
use super::task_mapping::{MappingError, TaskMapping};
use super::{Dim, Layout, LayoutError, Mma, Mode, Source};
use crate::ir::types::DType;

/// Which elements of A, B and C each lane of a wave holds for a matrix instruction, in the order of its
/// registers: task mappings with 64 workers.
///
/// The maps of A have the indices (i, k), those of B (k, j), those of C and D (i, j). Instructions of several
/// blocks ([`MmaConfig::of_blocks`]) have the number of the block in front of these.
///
/// # Example
/// ```
/// use groundswell::author::Mma;
/// use groundswell::mapping::{MappingError, MmaConfig};
/// let config = MmaConfig::new(Mma::F32_16x16x16_F16)?;
/// assert_eq!(config.a_load_map().to_string(), "spatial(16,4, ranks=[1,0])*repeat(1,4)");
/// let mut held = Vec::new();
/// for [k, j] in config.b_load_map().on(17)? {
///     held.push((k, j));
/// }
/// assert_eq!(held, [(4, 1), (5, 1), (6, 1), (7, 1)]);
/// assert_eq!((config.a_elements(), config.b_elements(), config.c_elements()), (4, 4, 4));
/// # Ok::<(), MappingError>(())
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MmaConfig {
    shape: [u32; 4],
    maps: [TaskMapping; 3],
    elements: [u32; 3],
}

impl MmaConfig {
    /// The operands of an instruction.
    ///
    /// # Errors
    /// An instruction whose lanes hold copies: a product of lanes one by one, where there are no matrix
    /// instructions.
    pub fn new(mma: Mma) -> Result<MmaConfig, MappingError> {
        let [first, second] = [Dim(0), Dim(1)];
        let unit = |factor: usize, k: Dim| Mode::new(Source::Register, mma.held(factor).elements, k, 1);
        let elements_of = |layout: Layout, unit: Mode| {
            // Several elements in a unit, such as two in a byte, follow one another along k.
            let unit = Layout::new([unit]).and_then(|unit| layout.compose(&unit));
            unit.map_err(|error| too_large(mma.name(), error))
        };
        let layouts = [
            elements_of(mma.a_layout(first, second), unit(0, second))?,
            elements_of(mma.b_layout(second, first), unit(1, first))?,
            mma.c_layout(first, second),
        ];
        MmaConfig::of_layouts([mma.m(), mma.n(), mma.k(), 1], layouts, 2, mma.name())
    }

    /// The operands of a dense instruction of some blocks, `[m, n, k, blocks]`, with accumulators of a dtype:
    /// `D[block] = A[block] * B[block] + C[block]`. Of one block the maps have the same three indices.
    ///
    /// # Errors
    /// A shape that no instruction has.
    pub fn of_blocks(shape: [u32; 4], accumulator: DType) -> Result<MmaConfig, MappingError> {
        let [m, n, k, blocks] = shape;
        let name = format!("{m}x{n}x{k} of {blocks} blocks to {accumulator}");
        let rule = MmaShape::new(shape, accumulator.bits(), Sparsity::Dense)
            .map_err(|error| too_large(&name, error))?;
        let [block, first, second] = [Dim(0), Dim(1), Dim(2)];
        let layouts = [
            rule.a_layout(first, second, Some(block)),
            rule.b_layout(second, first, Some(block)),
            rule.c_layout(first, second, Some(block)),
        ];
        MmaConfig::of_layouts(shape, layouts, 3, &name)
    }

    fn of_layouts(
        shape: [u32; 4],
        layouts: [Layout; 3],
        dims: usize,
        name: &str,
    ) -> Result<MmaConfig, MappingError> {
        let [a, b, c] = layouts.map(|layout| TaskMapping::of_layout(&layout, dims, name));
        let maps = [a?, b?, c?];
        let mut elements = [0; 3];
        for (elements, map) in elements.iter_mut().zip(&maps) {
            *elements = map.tasks_per_worker()?;
        }
        Ok(MmaConfig { shape, maps, elements })
    }

    /// Those of all instructions of all chips that have such maps.
    pub fn all() -> impl Iterator<Item = (Mma, MmaConfig)> {
        Mma::all().filter_map(|mma| Some((mma, MmaConfig::new(mma).ok()?)))
    }

    /// Rows of A and D.
    pub const fn m(&self) -> u32 {
        self.shape[0]
    }

    /// Columns of B and D.
    pub const fn n(&self) -> u32 {
        self.shape[1]
    }

    /// Columns of A and rows of B.
    pub const fn k(&self) -> u32 {
        self.shape[2]
    }

    /// Products that one instruction makes.
    pub const fn blocks(&self) -> u32 {
        self.shape[3]
    }

    /// Which elements (i, k) of A a lane holds.
    pub const fn a_load_map(&self) -> &TaskMapping {
        &self.maps[0]
    }

    /// Which elements (k, j) of B a lane holds.
    pub const fn b_load_map(&self) -> &TaskMapping {
        &self.maps[1]
    }

    /// Which elements (i, j) of C and D a lane holds.
    pub const fn c_store_map(&self) -> &TaskMapping {
        &self.maps[2]
    }

    /// Elements of A in each lane.
    pub const fn a_elements(&self) -> u32 {
        self.elements[0]
    }

    /// Elements of B in each lane.
    pub const fn b_elements(&self) -> u32 {
        self.elements[1]
    }

    /// Elements of C and D in each lane.
    pub const fn c_elements(&self) -> u32 {
        self.elements[2]
    }
}

fn too_large(name: &str, error: LayoutError) -> MappingError {
    match error {
        LayoutError::NotAnMmaShape => MappingError::NoForm {
            object: name.to_owned(),
            reason: "a wave of 64 lanes cannot hold its operands by the rule of matrix instructions",
        },
        _ => MappingError::TooLarge { mapping: name.to_owned() },
    }
}
