//! Locks that outlive whoever panicked with them.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// What is locked up. What a thread that panicked left there is taken as it is: the panic itself is told elsewhere.
pub(crate) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The same, for the last one who asks.
pub(crate) fn unlocked<T>(mutex: Mutex<T>) -> T {
    mutex.into_inner().unwrap_or_else(PoisonError::into_inner)
}
