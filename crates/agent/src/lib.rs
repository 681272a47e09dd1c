//! The loop of the client.
