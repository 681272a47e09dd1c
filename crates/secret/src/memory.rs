//! Returns memory to the system.

/// Lists up to this size are freed as usual. It is the size from which glibc allocates a block of its own.
const MIN_LONG: usize = 128 << 10;

/// Frees a list that may be long, and returns its memory to the system.
///
/// When a long block is freed, glibc expects more of that size, and keeps up to twice as much for them. A
/// block that was shortened before it is freed has no such effect.
pub fn free_now<T>(mut list: Vec<T>) {
    if list.capacity() * size_of::<T>() > MIN_LONG {
        list.clear();
        list.shrink_to(1);
    }
}
