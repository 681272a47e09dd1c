//! Money in integers, so that a total is exactly the sum of its parts.

use serde::{Deserialize, Serialize};

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Sub};

/// An amount in US dollars, in steps of 10⁻¹⁵.
///
/// A price of a millionth of a dollar per million tokens, times a multiplier with three decimal places, is
/// still an integral number of steps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Money(i128);

/// The number of steps per dollar.
const STEPS: i128 = 1_000_000_000_000_000;

impl Money {
    /// Zero dollars.
    pub const ZERO: Self = Self(0);

    /// Returns an amount from steps of 10⁻¹⁵ dollars.
    pub const fn from_steps(steps: i128) -> Self {
        Self(steps)
    }

    /// Returns the amount in steps of 10⁻¹⁵ dollars.
    pub const fn steps(self) -> i128 {
        self.0
    }

    /// Converts a floating-point amount from another program; `None` if it is not finite or is 10¹⁵ or more.
    pub fn from_f64(dollars: f64) -> Option<Self> {
        // Nine decimal places are as precise as such sums are.
        (dollars.is_finite() && dollars.abs() < 1e15)
            .then(|| Self((dollars * 1e9).round() as i128 * (STEPS / 1_000_000_000)))
    }

    /// Returns the nearest floating-point number, for ratios and charts.
    pub fn to_f64(self) -> f64 {
        self.0 as f64 / STEPS as f64
    }

    /// Formats the amount for display with two decimal places, or four below a cent.
    pub fn short(self) -> String {
        let digits = if self.0 != 0 && self.0.abs() < STEPS / 100 { 4 } else { 2 };
        let unit = STEPS / 10_i128.pow(digits);
        let rounded = (self.0.abs() + unit / 2) / unit;
        let scale = 10_i128.pow(digits);
        let sign = if self.0 < 0 { "-" } else { "" };
        let width = digits as usize;
        format!("{sign}${}.{:0width$}", with_separators(rounded / scale), rounded % scale)
    }
}

/// Formats a number with thousands separators.
fn with_separators(number: i128) -> String {
    let digits = number.to_string();
    let groups = digits.as_bytes().rchunks(3).rev();
    groups.map(String::from_utf8_lossy).collect::<Vec<_>>().join(",")
}

/// Formats the exact amount as a decimal number without trailing zeros.
impl fmt::Display for Money {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.0 < 0 { "-" } else { "" };
        let steps = self.0.abs();
        write!(f, "{sign}{}", steps / STEPS)?;
        if steps % STEPS != 0 {
            let digits = format!("{:015}", steps % STEPS);
            write!(f, ".{}", digits.trim_end_matches('0'))?;
        }
        Ok(())
    }
}

impl Add for Money {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self(self.0 + other.0)
    }
}

impl Sub for Money {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Self(self.0 - other.0)
    }
}

impl AddAssign for Money {
    fn add_assign(&mut self, other: Self) {
        self.0 += other.0;
    }
}

impl Sum for Money {
    fn sum<I: Iterator<Item = Self>>(amounts: I) -> Self {
        amounts.fold(Self::ZERO, Add::add)
    }
}

/// Parses a decimal number and multiplies it by 10^`digits`; `None` if it is malformed, negative, too large,
/// or has more decimal places.
pub(crate) fn decimal(text: &str, digits: u32) -> Option<u64> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let fraction = fraction.trim_end_matches('0');
    let all_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || !all_digits(whole) || !all_digits(fraction) || fraction.len() > digits as usize {
        return None;
    }
    let scale = 10_u64.checked_pow(digits)?;
    let part: u64 = if fraction.is_empty() { 0 } else { fraction.parse().ok()? };
    let part = part * 10_u64.pow(digits - fraction.len() as u32);
    whole.parse::<u64>().ok()?.checked_mul(scale)?.checked_add(part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_have_an_exact_and_a_short_form() {
        let amount = Money(500_005_000_000_000);
        assert_eq!((amount.to_string(), amount.short()), ("0.500005".into(), "$0.50".into()));
        assert_eq!(Money(-1_234_567_000_000_000_000).short(), "-$1,234.57");
        assert_eq!(Money(7_505_000_000_000).short(), "$0.0075");
        assert_eq!(Money(7_505_000_000_001).to_string(), "0.007505000000001");
        assert_eq!((Money::ZERO.to_string(), Money::ZERO.short()), ("0".into(), "$0.00".into()));
        assert_eq!(Money::from_f64(0.1), Some(Money(STEPS / 10)));
        assert_eq!(Money::from_f64(f64::NAN), None);
    }

    #[test]
    fn decimals_are_read_without_rounding() {
        assert_eq!(decimal("0.125", 9), Some(125_000_000));
        assert_eq!(decimal("75", 9), Some(75_000_000_000));
        assert_eq!(decimal("1.1", 3), Some(1100));
        assert_eq!(decimal("1.10000", 3), Some(1100));
        for odd in ["", "-1", "1e3", ".5", "1.2345", "x", "99999999999999999999"] {
            assert_eq!(decimal(odd, 3), None, "{odd}");
        }
    }
}
