//! Division by a constant, as a multiplication.
//!
//! For 32-bit numbers, the quotient of n by d is the upper half of the product
//! of n and 2^64 / d, rounded up (Lemire, Kaser and Kurz, "Faster remainder by
//! direct computation", 2019).

use crate::core::branch::unlikely;

/// A divisor from 1 to 2^32 - 1.
#[derive(Debug, Clone, Copy)]
pub struct Divisor {
    divisor: u32,
    /// 2^64 / divisor, rounded up; 0 stands for 2^64, the reciprocal of 1.
    reciprocal: u64,
}

impl Divisor {
    /// `None` for 0 and for values of more than 32 bits.
    pub fn new(divisor: u64) -> Option<Self> {
        let divisor = u32::try_from(divisor).ok().filter(|&divisor| divisor > 0)?;
        let reciprocal = (u64::MAX / u64::from(divisor)).wrapping_add(1);
        Some(Self { divisor, reciprocal })
    }

    /// Quotient and remainder of `number` by it.
    #[inline]
    pub fn divide(self, number: u32) -> (u32, u32) {
        if unlikely(self.reciprocal == 0) {
            return (number, 0);
        }
        let quotient = ((u128::from(number) * u128::from(self.reciprocal)) >> 64) as u32;
        (quotient, number - quotient * self.divisor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::rng::Stream;

    #[test]
    fn it_divides_as_the_processor_does() {
        let mut stream = Stream::named(1, "divisor");
        let edges =
            [1, 2, 3, 4, 7, 8, 641, 1 << 16, (1 << 31) - 1, 1 << 31, u32::MAX - 1, u32::MAX];
        let check = |divisor: u32, number: u32| {
            let divide = Divisor::new(u64::from(divisor)).unwrap();
            assert_eq!(divide.divide(number), (number / divisor, number % divisor));
        };
        for divisor in edges {
            for number in edges {
                check(divisor, number);
            }
            for _ in 0..1000 {
                let number = stream.next_u64() as u32;
                check(divisor, number);
                // Next to a multiple, where rounding would show.
                check(divisor, number / divisor * divisor);
                check(divisor, (number / divisor * divisor).wrapping_sub(1));
            }
        }
        for _ in 0..10_000 {
            let divisor = (stream.next_u64() as u32 >> stream.below(32)).max(1);
            check(divisor, stream.next_u64() as u32);
        }
    }

    #[test]
    fn nothing_is_divided_by_zero_or_by_what_is_too_large() {
        assert!(Divisor::new(0).is_none());
        assert!(Divisor::new(1 << 32).is_none());
    }
}
