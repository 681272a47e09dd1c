//! Division of files into jobs, each of which fills one segment.

use crate::segment::SEGMENT_SIZE;

/// Jobs are not made smaller than this for the sake of more threads.
const MIN_JOB_SIZE: u64 = SEGMENT_SIZE / 4;

/// Divides items with a number of bytes each into jobs of at most one segment, in their order. Only a job of
/// one large item is larger.
///
/// Jobs fill their segments, because similar files compress better together. The last ones, one per thread,
/// are of similar size instead, so that no thread is idle while another one copies a whole segment.
pub(crate) fn split_by_size<T>(items: Vec<(u64, T)>, n_threads: usize) -> Vec<Vec<T>> {
    let mut jobs = Vec::new();
    let (mut job, mut job_size) = (Vec::new(), 0);
    let mut left: u64 = items.iter().map(|(size, _)| size).sum();
    let mut limit = SEGMENT_SIZE;
    for (size, item) in items {
        let is_full = job_size + size > SEGMENT_SIZE || job_size + size / 2 > limit;
        if is_full && !job.is_empty() {
            jobs.push(std::mem::take(&mut job));
            left -= std::mem::take(&mut job_size);
            let per_thread = left.div_ceil(n_threads.max(1) as u64);
            if jobs.len().is_multiple_of(n_threads.max(1)) && per_thread <= SEGMENT_SIZE {
                limit = per_thread.max(MIN_JOB_SIZE);
            }
        }
        job.push(item);
        job_size += size;
    }
    if !job.is_empty() {
        jobs.push(job);
    }
    jobs
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the sizes of the jobs for files of these sizes, in megabytes.
    fn sizes(files: &[u64], n_threads: usize) -> Vec<u64> {
        let items = files.iter().map(|&size| (size << 20, size)).collect();
        split_by_size(items, n_threads).into_iter().map(|job| job.into_iter().sum()).collect()
    }

    #[test]
    fn jobs_fill_segments_and_the_last_ones_are_balanced() {
        assert_eq!(sizes(&[], 2), [0; 0]);
        assert_eq!(sizes(&[1; 10], 2), [10]);
        assert_eq!(sizes(&[1; 20], 2), [16, 4]);
        assert_eq!(sizes(&[1; 54], 2), [16, 16, 11, 11]);
        assert_eq!(sizes(&[1; 54], 1), [16, 16, 16, 6]);
        // There is a thread for each segment.
        assert_eq!(sizes(&[1; 54], 4), [16, 16, 16, 6]);
        // Too little to be divided.
        assert_eq!(sizes(&[1; 37], 2), [16, 16, 4, 1]);
        assert_eq!(sizes(&[1; 130], 4), [16, 16, 16, 16, 16, 16, 16, 16, 2]);
    }

    #[test]
    fn large_files_are_jobs_of_their_own() {
        assert_eq!(sizes(&[40, 1, 1], 2), [40, 2]);
        assert_eq!(sizes(&[9, 9, 9, 9], 2), [9, 9, 9, 9]);
        assert_eq!(sizes(&[0, 40, 0], 2), [0, 40, 0]);
    }
}
