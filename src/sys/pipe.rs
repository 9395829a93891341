//! A pipe that this process reads without waiting.

use std::io::{self, ErrorKind, PipeReader, PipeWriter, Read as _, pipe};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use nix::unistd::{dup2_stderr, dup2_stdout};
use rustix::io::{ioctl_fionbio, ioctl_fionread};

/// The end of a pipe that is read. Nonblocking, closed on exec.
#[derive(Debug)]
pub struct Outlet(PipeReader);

/// The result of a read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flow {
    /// So many bytes were read.
    Bytes(usize),
    /// There is nothing now.
    Nothing,
    /// The end: no process has the other end.
    Closed,
}

impl Outlet {
    /// Makes a pipe. A write to the other end waits as usual; that end closes on exec too.
    ///
    /// # Errors
    /// What pipe(2) says: out of descriptors or memory.
    pub fn pair() -> io::Result<(Self, OwnedFd)> {
        let (reader, writer): (PipeReader, PipeWriter) = pipe()?;
        ioctl_fionbio(&reader, true)?;
        Ok((Self(reader), writer.into()))
    }

    /// Reads what is there, at most as much as fits.
    pub fn read(&mut self, buffer: &mut [u8]) -> io::Result<Flow> {
        loop {
            return match self.0.read(buffer) {
                Ok(0) => Ok(Flow::Closed),
                Ok(count) => Ok(Flow::Bytes(count)),
                Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(Flow::Nothing),
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => Err(error),
            };
        }
    }

    /// How many bytes are in the pipe.
    pub fn filled(&self) -> usize {
        let count = ioctl_fionread(&self.0).unwrap_or_default();
        usize::try_from(count).unwrap_or(usize::MAX)
    }
}

impl AsFd for Outlet {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Makes a descriptor the stdout and the stderr of this process, and of the program that it
/// executes.
pub fn print_to(fd: BorrowedFd<'_>) -> io::Result<()> {
    dup2_stdout(fd)?;
    dup2_stderr(fd)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::Write as _;

    use super::*;

    #[test]
    fn a_read_never_waits() {
        let (mut outlet, inlet) = Outlet::pair().unwrap();
        let mut buffer = [0; 4];
        assert_eq!(outlet.read(&mut buffer).unwrap(), Flow::Nothing);
        let mut inlet = File::from(inlet);
        inlet.write_all(b"hello").unwrap();
        assert_eq!(outlet.filled(), 5);
        assert_eq!(outlet.read(&mut buffer).unwrap(), Flow::Bytes(4));
        assert_eq!(&buffer, b"hell");
        drop(inlet);
        assert_eq!(outlet.read(&mut buffer).unwrap(), Flow::Bytes(1));
        assert_eq!(outlet.read(&mut buffer).unwrap(), Flow::Closed);
        assert_eq!(outlet.filled(), 0);
    }
}
