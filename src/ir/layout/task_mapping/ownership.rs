//! Who has a task, and where in its registers: mappings read the other way round. One list of factors says
//! both which worker owns an element and which of its registers holds it: the place of the task in the
//! worker's list. As a data layout that is the same list with one place in each `spatial` factor and rows in
//! each `repeat` factor.
use super::text::tuple_text;
use super::{Dim, MappingError, MappingParts, Mode, Source, TaskMapping};
use smallvec::SmallVec;

/// Places that are compared to find the first one in which two mappings differ.
const COMPARED: u32 = 1 << 16;

impl MappingParts {
    /// The worker that has a task, and the place of the task in its list.
    fn owner(&self, index: &[u32]) -> Result<(u32, u32), MappingError> {
        let (mapping, dims) = (self.text(), self.shape.len());
        if index.len() != dims {
            return Err(MappingError::Rank { mapping, dims, asked: index.len() });
        }
        if index.iter().zip(&self.shape).any(|(index, extent)| index >= extent) {
            let (shape, index) = (tuple_text(&self.shape), tuple_text(index));
            return Err(MappingError::NoSuchTask { mapping, shape, index });
        }
        let copies = |mode: &Mode| mode.extent > 1 && (mode.dim.is_none() || mode.stride == 0);
        let Some(layout) = self.layout.as_ref().filter(|layout| !layout.modes().iter().any(copies)) else {
            return Err(MappingError::NotInjective { mapping });
        };
        // Without copies, the digits of a product number all tasks of its box.
        let coordinate = |dim: Dim| index[usize::from(dim.0)];
        let place = layout.place_of(&[Source::Lane, Source::Replica], coordinate);
        Ok((place.lane, place.replica))
    }
}

impl TaskMapping {
    /// The worker that has a task.
    ///
    /// # Errors
    /// As [`TaskMapping::checked`]; an index outside of the shape; a mapping that gives tasks to several
    /// workers, as a projection does.
    pub fn owner_of(&self, index: impl AsRef<[u32]>) -> Result<u32, MappingError> {
        Ok(self.parts()?.owner(index.as_ref())?.0)
    }

    /// The number of the register of its worker in which the element at `index` is, if each worker holds the
    /// elements of its tasks in their order.
    ///
    /// # Errors
    /// As [`TaskMapping::owner_of`].
    pub fn register_of(&self, index: impl AsRef<[u32]>) -> Result<u32, MappingError> {
        Ok(self.parts()?.owner(index.as_ref())?.1)
    }

    /// Checks that registers which `held` filled can be read by this mapping: that every worker finds each
    /// element of its list in the register of that number.
    ///
    /// # Errors
    /// As [`TaskMapping::checked`], of either; another shape; the first element that is elsewhere, with its
    /// registers and workers.
    pub fn check_reads(&self, held: &TaskMapping) -> Result<(), MappingError> {
        let (read, holds) = (self.parts()?, held.parts()?);
        if read.shape != holds.shape {
            return Err(MappingError::OtherShape {
                held: holds.text(),
                held_shape: tuple_text(&holds.shape),
                read: read.text(),
                read_shape: tuple_text(&read.shape),
            });
        }
        if self.equivalent(held)? {
            return Ok(());
        }
        let tasks = read.tasks().max(1);
        for place in 0..read.workers.saturating_mul(tasks).min(COMPARED) {
            let (read_worker, read_register) = (place / tasks, place % tasks);
            let dims = 0..read.shape.len();
            let index: SmallVec<[u32; 4]> =
                dims.map(|dim| read.coordinate(dim, read_worker, read_register)).collect();
            let (held_worker, held_register) = holds.owner(&index)?;
            if (held_worker, held_register) != (read_worker, read_register) {
                return Err(MappingError::OtherOwner {
                    held: holds.text(),
                    read: read.text(),
                    index: tuple_text(&index),
                    held_register,
                    held_worker,
                    read_register,
                    read_worker,
                });
            }
        }
        Err(MappingError::NoForm {
            object: read.text(),
            reason: "it is not the mapping that filled the registers",
        })
    }
}
