//! Random numbers, drawn from the kernel each time: a generator with a state of
//! its own would repeat itself in a virtual machine that was cloned while it ran.

use std::io;

use rustix::rand::{GetRandomFlags, getrandom};

/// 64 random bits.
///
/// # Errors
/// What getrandom(2) says: the kernel has no such call, or a sandbox forbids it.
pub fn bits64() -> io::Result<u64> {
    Ok(u64::from_ne_bytes(bytes()?))
}

/// 128 random bits.
pub fn bits128() -> io::Result<u128> {
    Ok(u128::from_ne_bytes(bytes()?))
}

fn bytes<const N: usize>() -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    let mut filled = 0;
    // Up to 256 bytes come in one piece, except before the pool is ready.
    while let Some(rest) = bytes.get_mut(filled..).filter(|rest| !rest.is_empty()) {
        match getrandom(rest, GetRandomFlags::empty()) {
            Ok(drawn) => filled += drawn,
            Err(rustix::io::Errno::INTR) => {}
            Err(err) => return Err(err.into()),
        }
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_draws_differ() {
        assert_ne!(bits128().unwrap(), bits128().unwrap());
        assert_ne!(bits64().unwrap(), bits64().unwrap());
    }
}
