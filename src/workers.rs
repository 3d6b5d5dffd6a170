//! Work on all cores, by threads that live as long as one call.

use std::num::NonZero;
use std::sync::{Mutex, OnceLock};

/// Threads that run at the same time, as far as the system says.
fn cores() -> usize {
    static CORES: OnceLock<usize> = OnceLock::new();
    *CORES.get_or_init(|| std::thread::available_parallelism().map_or(1, NonZero::get))
}

/// Runs `work` on as many threads as there are cores, but on no more than `most`; the caller's thread is one
/// of them. A panic of any is passed on.
pub(crate) fn run(most: u64, work: impl Fn() + Sync) {
    let threads = most.clamp(1, cores() as u64);
    std::thread::scope(|scope| {
        for _ in 1..threads {
            scope.spawn(&work);
        }
        work();
    });
}

/// Calls `f` with every item, on no more than `most` threads. Threads take items one by one, in order.
pub(crate) fn for_each<I>(items: I, most: u64, f: impl Fn(I::Item) + Sync)
where
    I: Iterator + Send,
{
    let items = Mutex::new(items);
    // A poisoned lock means that the iterator panicked in another thread, which `run` passes on.
    let next = || items.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).next();
    run(most, || {
        while let Some(item) = next() {
            f(item);
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_item_is_worked_on_once() {
        let mut squares = vec![0; 1000];
        for_each(squares.iter_mut().enumerate(), u64::MAX, |(index, square)| *square += index * index);
        assert!(squares.iter().enumerate().all(|(index, square)| *square == index * index));
        for_each(std::iter::empty::<u32>(), 0, |_| panic!("there is none"));
    }

    #[test]
    #[should_panic]
    fn a_panic_reaches_the_caller() {
        for_each(0..100, 4, |item| assert!(item < 50, "of a thread"));
    }
}
