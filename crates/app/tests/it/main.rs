//! The application layer over homes on disk.

mod load;
