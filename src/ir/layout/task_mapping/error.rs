//! What can be wrong with a task mapping.

/// Why a task mapping, or what is asked of it, does not exist. Each message has the mapping, the limit and
/// the number that breaks it.
#[derive(Clone, PartialEq, Eq, Hash, Debug, thiserror::Error)]
pub enum MappingError {
    /// More dimensions than mappings have.
    #[error("{factor} has {dims} dimensions; a task mapping has at most {most}")]
    TooManyDims {
        /// The factor.
        factor: String,
        /// Its dimensions.
        dims: usize,
        /// The limit.
        most: usize,
    },
    /// Ranks that are no order of the dimensions.
    #[error("the ranks {ranks:?} of {factor} are no order of its {dims} dimensions: name each once, from 0")]
    Ranks {
        /// The factor.
        factor: String,
        /// The ranks.
        ranks: Vec<usize>,
        /// Dimensions of the factor.
        dims: usize,
    },
    /// Ranks for something else than one factor.
    #[error("{mapping} is not one factor: give ranks to the factors of a product before they are multiplied")]
    RanksOfProduct {
        /// The mapping.
        mapping: String,
    },
    /// A product of mappings with different numbers of dimensions.
    #[error("{outer} has {outer_dims} dimensions, and {inner} has {inner_dims}: factors have equally many")]
    DimsDiffer {
        /// The factor on the left.
        outer: String,
        /// Its dimensions.
        outer_dims: usize,
        /// The factor on the right.
        inner: String,
        /// Its dimensions.
        inner_dims: usize,
    },
    /// Numbers that do not fit in 32 bits.
    #[error("{mapping} is too large: its workers, its tasks and its coordinates have to fit in 32 bits")]
    TooLarge {
        /// The mapping.
        mapping: String,
    },
    /// A dimension that is not there.
    #[error("{mapping} has {dims} dimensions, numbered from 0; dimension {dim} is not one of them")]
    NoSuchDim {
        /// The mapping.
        mapping: String,
        /// Its dimensions.
        dims: usize,
        /// The one asked for.
        dim: usize,
    },
    /// A worker that is not there.
    #[error("{mapping} has {workers} workers, numbered from 0; worker {worker} is not one of them")]
    NoSuchWorker {
        /// The mapping.
        mapping: String,
        /// Its workers.
        workers: u32,
        /// The one asked for.
        worker: u32,
    },
    /// Indices of another number of dimensions.
    #[error("{mapping} has {dims} dimensions, not {asked}")]
    Rank {
        /// The mapping.
        mapping: String,
        /// Its dimensions.
        dims: usize,
        /// Dimensions of the indices that are given or asked for.
        asked: usize,
    },
    /// A worker that was to have one task.
    #[error("worker {worker} of {mapping} has {tasks} tasks, not one")]
    NotSingle {
        /// The mapping.
        mapping: String,
        /// The worker.
        worker: u32,
        /// Its tasks.
        tasks: u32,
    },
    /// A task that nobody has.
    #[error("{index} lies outside of {shape}, the tasks of {mapping}")]
    NoSuchTask {
        /// The mapping.
        mapping: String,
        /// The tasks that there are.
        shape: String,
        /// The one asked for.
        index: String,
    },
    /// Tasks that several workers have.
    #[error("{mapping} gives a task to several workers, or several times to one: no task has one owner")]
    NotInjective {
        /// The mapping.
        mapping: String,
    },
    /// Registers that were filled by another mapping.
    #[error(
        "values that {held} put into registers are not where {read} looks for them: {index} is register \
         {held_register} of worker {held_worker}, and not register {read_register} of worker {read_worker}"
    )]
    OtherOwner {
        /// The mapping that filled the registers.
        held: String,
        /// The one that reads them.
        read: String,
        /// The first index that is elsewhere.
        index: String,
        /// The register that holds it.
        held_register: u32,
        /// The worker that holds it.
        held_worker: u32,
        /// The register in which it is looked for.
        read_register: u32,
        /// The worker that looks for it.
        read_worker: u32,
    },
    /// Mappings of other shapes, where they have to have the same.
    #[error("{held} has the shape {held_shape}, and {read} the shape {read_shape}")]
    OtherShape {
        /// The one mapping.
        held: String,
        /// Its shape.
        held_shape: String,
        /// The other mapping.
        read: String,
        /// Its shape.
        read_shape: String,
    },
    /// Tasks that cannot be shared evenly.
    #[error(
        "the {tasks} tasks of {shape} cannot be shared evenly by {workers} workers: {tasks} is no multiple"
    )]
    TasksDoNotDivide {
        /// The shape.
        shape: String,
        /// Tasks in it.
        tasks: u64,
        /// The workers.
        workers: u32,
    },
    /// Nothing to share, or nobody to share it.
    #[error(
        "there is nothing to share out of {shape} among {workers} workers: use extents and workers above 0"
    )]
    NothingToShare {
        /// The shape.
        shape: String,
        /// The workers.
        workers: u32,
    },
    /// A mapping without a form over bits.
    #[error("{mapping} is not linear over bits: the extent {extent} is no power of two")]
    NotPowersOfTwo {
        /// The mapping.
        mapping: String,
        /// The first extent that is none.
        extent: u32,
    },
    /// A layout that no product of factors has.
    #[error("{object} is no task mapping: {reason}")]
    NoForm {
        /// The object whose mapping was asked for.
        object: String,
        /// Why.
        reason: &'static str,
    },
    /// A text that is no mapping.
    #[error("`{text}` is no task mapping: at byte {at} {expected} is expected")]
    Text {
        /// The text.
        text: String,
        /// The byte at which it stops being one.
        at: usize,
        /// The tokens that could stand there.
        expected: &'static str,
    },
}
