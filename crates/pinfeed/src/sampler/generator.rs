//! PyTorch's CPU generator: MT19937 (Matsumoto, Nishimura 1998), seeded by one
//! 32-bit word.

use std::fmt;

const N: usize = 624;
const M: usize = 397;

/// PyTorch's CPU random number generator, bit for bit: what
/// `torch.Generator().manual_seed(seed)` draws, this draws.
#[derive(Clone)]
pub struct Generator {
    state: [u32; N],
    /// The next word of `state` to give out; `N`: make new ones first.
    next: usize,
}

impl Generator {
    /// A generator seeded as `torch.manual_seed` does: only the low 32 bits of
    /// a seed reach the state.
    pub fn manual_seed(seed: u64) -> Self {
        let mut state = [0u32; N];
        state[0] = seed as u32;
        for i in 1..N {
            let before = state[i - 1];
            state[i] = (before ^ (before >> 30)).wrapping_mul(1_812_433_253).wrapping_add(i as u32);
        }
        Generator { state, next: N }
    }

    fn refill(&mut self) {
        let s = &mut self.state;
        let twist = |a: u32, b: u32| {
            let y = (a & 0x8000_0000) | (b & 0x7fff_ffff);
            (y >> 1) ^ if b & 1 == 1 { 0x9908_b0df } else { 0 }
        };
        for i in 0..N - M {
            s[i] = s[i + M] ^ twist(s[i], s[i + 1]);
        }
        for i in N - M..N - 1 {
            s[i] = s[i + M - N] ^ twist(s[i], s[i + 1]);
        }
        s[N - 1] = s[M - 1] ^ twist(s[N - 1], s[0]);
        self.next = 0;
    }

    /// The next 32 bits.
    #[inline]
    pub fn random_u32(&mut self) -> u32 {
        if self.next == N {
            self.refill();
        }
        let mut y = self.state[self.next];
        self.next += 1;
        y ^= y >> 11;
        y ^= (y << 7) & 0x9d2c_5680;
        y ^= (y << 15) & 0xefc6_0000;
        y ^ (y >> 18)
    }

    /// The next 64 bits: two draws, the first one on top.
    pub fn random_u64(&mut self) -> u64 {
        let high = u64::from(self.random_u32());
        high << 32 | u64::from(self.random_u32())
    }

    /// What `torch.empty((), dtype=torch.int64).random_()` draws: 63 bits.
    pub fn random_i64(&mut self) -> i64 {
        (self.random_u64() & (i64::MAX as u64)) as i64
    }
}

impl fmt::Debug for Generator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Generator").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first draws after `torch.manual_seed(0)` and `(42)`; and only the low
    /// half of a seed counts.
    #[test]
    fn as_torch() {
        let mut generator = Generator::manual_seed(0);
        assert_eq!(generator.random_u32(), 2_357_136_044);
        assert_eq!(generator.random_u32(), 2_546_248_239);
        assert_eq!(Generator::manual_seed(42).random_u32(), 1_608_637_542);
        assert_eq!(Generator::manual_seed(0).random_i64(), 900_450_186_894_289_455);
        let low = Generator::manual_seed(5).random_u64();
        assert_eq!(Generator::manual_seed(5 + (1 << 32)).random_u64(), low);
    }
}
