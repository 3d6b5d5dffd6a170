//! Work on all cores, by threads that live as long as one call.

use std::cell::Cell;
use std::num::NonZero;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Mutex, OnceLock};

/// Threads that run at the same time, as far as the system says.
fn cores() -> usize {
    static CORES: OnceLock<usize> = OnceLock::new();
    *CORES.get_or_init(|| std::thread::available_parallelism().map_or(1, NonZero::get))
}

thread_local! {
    /// The thread is one of several that work.
    static WORKS: Cell<bool> = const { Cell::new(false) };
}

/// The time during which a thread is one of several that work.
struct Working;

impl Working {
    fn begin() -> Working {
        WORKS.set(true);
        Working
    }
}

impl Drop for Working {
    fn drop(&mut self) {
        WORKS.set(false);
    }
}

/// Runs `work` on as many threads as there are cores, but on no more than `most`; the caller's thread is one
/// of them. A panic of any is passed on.
///
/// On one of these threads it is that thread alone that works, as the other cores have work already.
pub(crate) fn run(most: u64, work: impl Fn() + Sync) {
    let threads = if WORKS.get() { 1 } else { most.clamp(1, cores() as u64) };
    if threads == 1 {
        return work();
    }
    let work = || {
        let _working = Working::begin();
        work();
    };
    std::thread::scope(|scope| {
        for _ in 1..threads {
            scope.spawn(work);
        }
        work();
    });
}

/// Calls `f` with every item, on no more than `most` threads. Threads take items one by one, in order.
pub(crate) fn for_each<I>(items: I, most: u64, f: impl Fn(I::Item) + Sync)
where
    I: Iterator + Send,
{
    for_each_with(items, most, || (), |(), item| f(item));
}

/// The same with a state of each thread's own, which it makes with `start`.
pub(crate) fn for_each_with<I, S>(
    items: I,
    most: u64,
    start: impl Fn() -> S + Sync,
    f: impl Fn(&mut S, I::Item) + Sync,
) where
    I: Iterator + Send,
{
    let items = Mutex::new(items);
    // A poisoned lock means that the iterator panicked in another thread, which `run` passes on.
    let next = || items.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).next();
    run(most, || {
        let mut state = start();
        while let Some(item) = next() {
            f(&mut state, item);
        }
    });
}

/// Works on the numbers below `count`, which start in order, on as many threads as there are cores, until one
/// fails. Each thread makes a state of its own, and hands it to `finish` when there is nothing left to do.
///
/// # Errors
/// That of the lowest number that fails: it is the same whatever the threads do.
pub(crate) fn until_failure<S, E: Send>(
    count: u64,
    start: impl Fn() -> S + Sync,
    work: impl Fn(&mut S, u64) -> Result<(), E> + Sync,
    finish: impl FnMut(S) + Send,
) -> Result<(), E> {
    let (next, failed) = (AtomicU64::new(0), AtomicBool::new(false));
    let outcome = Mutex::new((finish, None::<(u64, E)>));
    run(count, || {
        let (mut state, mut failure) = (start(), None);
        while !failed.load(Relaxed) {
            let number = next.fetch_add(1, Relaxed);
            if number >= count {
                break;
            }
            if let Err(error) = work(&mut state, number) {
                failed.store(true, Relaxed);
                failure = Some((number, error));
            }
        }
        // A poisoned lock means that another thread panicked, which `run` passes on.
        let mut outcome = outcome.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let (finish, first) = &mut *outcome;
        finish(state);
        if let Some(new) = failure
            && first.as_ref().is_none_or(|first| new.0 < first.0)
        {
            *first = Some(new);
        }
    });
    let (_, failure) = outcome.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner());
    failure.map_or(Ok(()), |(_, error)| Err(error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lowest_number_that_fails_is_reported() {
        let mut done = 0;
        let add = |sum: &mut u64, number| {
            *sum += 1;
            if number < 70 { Ok(()) } else { Err(number) }
        };
        assert_eq!(until_failure(100, || 0, add, |sum| done += sum), Err(70));
        assert!(done >= 71, "all below it have been worked on");
        done = 0;
        assert_eq!(until_failure(70, || 0, add, |sum| done += sum), Ok(()));
        assert_eq!(done, 70);
    }

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
