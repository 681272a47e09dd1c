//! The time and new ids. Tests use fixed ones.

use threadline_entry::Millis;

/// The source of times and ids.
pub trait Clock: Send + Sync {
    /// The current time.
    fn now(&self) -> Millis;
    /// A new random UUID.
    fn new_uuid(&self) -> String;
}

/// The time of the system, and random ids.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "this is the clock that others get as an argument")]
    fn now(&self) -> Millis {
        let time = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        Millis::try_from(time.as_millis()).unwrap_or(Millis::MAX)
    }

    fn new_uuid(&self) -> String {
        uuid::Uuid::new_v4().to_string()
    }
}
