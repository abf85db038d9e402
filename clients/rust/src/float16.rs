//! float16 numbers, for which Rust has no type.

use std::fmt;

const FRACTION: u32 = 10;
const BIAS: i32 = 15;
const INFINITY: u16 = 0x7c00;

const WIDE_FRACTION: u32 = 52;
const WIDE_BIAS: i32 = 1023;

/// A float16 number as its bits (IEEE 754 binary16). Numbers are equal if their bits are equal.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct Float16(u16);

impl Float16 {
    /// Creates the number with these bits.
    pub const fn from_bits(bits: u16) -> Self {
        Self(bits)
    }

    /// Returns the bits.
    pub const fn to_bits(self) -> u16 {
        self.0
    }

    /// Rounds to the nearest float16, with ties to even. Numbers beyond its range become infinities.
    pub fn from_f64(number: f64) -> Self {
        let sign = u16::from(number.is_sign_negative()) << 15;
        if number.is_nan() {
            let payload = (number.to_bits() >> (WIDE_FRACTION - FRACTION)) as u16 & 0x3ff;
            return Self(sign | INFINITY | payload | 0x200);
        }
        if number.is_infinite() {
            return Self(sign | INFINITY);
        }
        // The spacing of float16 numbers at this magnitude; all subnormal numbers have the same spacing.
        let exponent = (number.to_bits() >> WIDE_FRACTION & 0x7ff) as i32 - WIDE_BIAS;
        let step = exponent.max(1 - BIAS) - FRACTION as i32;
        if step > BIAS - FRACTION as i32 {
            return Self(sign | INFINITY);
        }
        let steps = (number.abs() * power_of_two(-step)).round_ties_even() as u32;
        // Adjacent numbers have adjacent bits, across exponents too, up to infinity.
        let binade = (step + BIAS + FRACTION as i32 - 1) as u32;
        Self(sign | ((binade << FRACTION) + steps) as u16)
    }

    /// Returns the number exactly. Preserves the payload of a NaN.
    pub fn to_f64(self) -> f64 {
        let sign = u64::from(self.0 >> 15) << 63;
        let fraction = u64::from(self.0 & 0x3ff);
        let wide = match i32::from(self.0 >> FRACTION & 0x1f) {
            0 => (fraction as f64 * power_of_two(1 - BIAS - FRACTION as i32)).to_bits(),
            0x1f => 0x7ff << WIDE_FRACTION | fraction << (WIDE_FRACTION - FRACTION),
            stated => {
                let exponent = (stated - BIAS + WIDE_BIAS) as u64;
                exponent << WIDE_FRACTION | fraction << (WIDE_FRACTION - FRACTION)
            }
        };
        f64::from_bits(sign | wide)
    }
}

/// Returns a power of two. The exponent must be that of a normal number.
fn power_of_two(exponent: i32) -> f64 {
    f64::from_bits(((exponent + WIDE_BIAS) as u64) << WIDE_FRACTION)
}

impl From<Float16> for f64 {
    fn from(number: Float16) -> Self {
        number.to_f64()
    }
}

impl fmt::Debug for Float16 {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.to_f64(), formatter)
    }
}

impl fmt::Display for Float16 {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.to_f64(), formatter)
    }
}

#[cfg(test)]
mod tests {
    use super::Float16;

    #[test]
    fn every_number_there_and_back() {
        for bits in 0..=u16::MAX {
            let number = Float16::from_bits(bits);
            let quiet = if number.to_f64().is_nan() { 0x200 } else { 0 };
            assert_eq!(Float16::from_f64(number.to_f64()).to_bits(), bits | quiet);
        }
    }

    #[test]
    fn halfway_goes_to_the_even_one() {
        for bits in 0..0x7c00u16 {
            let below = Float16::from_bits(bits).to_f64();
            let above = if bits == 0x7bff { 65536.0 } else { Float16::from_bits(bits + 1).to_f64() };
            let even = bits + (bits & 1);
            assert_eq!(Float16::from_f64((below + above) / 2.0).to_bits(), even);
            assert_eq!(Float16::from_f64(-(below + above) / 2.0).to_bits(), even | 0x8000);
            assert_eq!(Float16::from_f64(below * 0.75 + above * 0.25).to_bits(), bits);
        }
    }

    #[test]
    fn beyond_the_range_is_infinite() {
        for number in [65520.0, 1e6, f64::MAX, f64::INFINITY] {
            assert_eq!(Float16::from_f64(number).to_bits(), 0x7c00);
        }
        assert_eq!(Float16::from_f64(65519.99).to_bits(), 0x7bff);
        assert_eq!(Float16::from_f64(1e-300).to_bits(), 0);
    }
}
