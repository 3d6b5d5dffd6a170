//! Mappings over powers of two, as matrices of bits.
use super::{Dim, MappingError, Place, Source, TaskMapping};

/// A mapping whose extents are powers of two: each bit of a worker's number, and each bit of a task's place
/// in the list, moves the index by a vector of its own, and the index is the exclusive or of these. The
/// vectors are the columns of a matrix over bits; that of a product has the inner factor's columns in the low
/// bits and the outer factor's, moved up by the bits of the inner shape, above them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LinearForm {
    dims: usize,
    tasks: Vec<Vec<u32>>,
    workers: Vec<Vec<u32>>,
}

impl LinearForm {
    /// For each bit of a task's place in its worker's list, from the lowest, what it moves the index by.
    pub fn task_columns(&self) -> &[Vec<u32>] {
        &self.tasks
    }

    /// The same for each bit of the worker's number.
    pub fn worker_columns(&self) -> &[Vec<u32>] {
        &self.workers
    }

    /// The index of a task of a worker; bits beyond the columns do not count.
    pub fn index(&self, worker: u32, task: u32) -> Vec<u32> {
        let mut index = vec![0; self.dims];
        for (columns, number) in [(&self.workers, worker), (&self.tasks, task)] {
            for (bit, column) in columns.iter().enumerate().filter(|(bit, _)| number >> bit & 1 == 1) {
                debug_assert!(bit < 32);
                index.iter_mut().zip(column).for_each(|(index, moved)| *index ^= moved);
            }
        }
        index
    }
}

impl TaskMapping {
    /// The mapping as a matrix over bits.
    ///
    /// # Errors
    /// As [`TaskMapping::checked`]; the first extent of a factor that is no power of two.
    pub fn linear_form(&self) -> Result<LinearForm, MappingError> {
        let parts = self.parts()?;
        let odd = |extent: u32| MappingError::NotPowersOfTwo { mapping: parts.text(), extent };
        let layout = parts.layout.as_ref().ok_or_else(|| odd(0))?;
        if let Some(mode) = layout.modes().iter().find(|mode| !mode.extent.is_power_of_two()) {
            return Err(odd(mode.extent));
        }
        let dims = parts.shape.len();
        let columns = |source: Source| {
            let bits = 0..layout.extent(source).ilog2();
            let place = |bit: u32| match source {
                Source::Lane => Place { lane: 1 << bit, ..Place::default() },
                Source::Register | Source::Replica | Source::Wave => {
                    Place { replica: 1 << bit, ..Place::default() }
                }
            };
            bits.map(|bit| (0..dims).map(|dim| layout.coordinate(Dim(dim as u8), place(bit))).collect())
                .collect()
        };
        Ok(LinearForm { dims, tasks: columns(Source::Replica), workers: columns(Source::Lane) })
    }
}
