//! Keeps a runtime file in its place, on a thread of its own: the holder of a token does not
//! wait for a file system. A program that cleans directories for temporary files may remove it.

use std::io::{self, ErrorKind};
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

use super::runtime_file::{Holder, RuntimeFile, make_directory};

/// How long the end of a hold waits for the file system.
const PATIENCE: Duration = Duration::from_millis(500);

/// A runtime file that is locked and written, with the thread that keeps it.
#[derive(Debug)]
pub struct RuntimeKeeper {
    orders: Sender<Order>,
    answers: Receiver<Answer>,
    /// A check is under way.
    looking: bool,
}

#[derive(Debug, Clone, Copy)]
enum Order {
    Look,
    GiveUp,
}

#[derive(Debug)]
enum Answer {
    Looked(io::Result<()>),
    GivenUp(io::Result<()>),
}

impl RuntimeKeeper {
    /// Keeps this locked file at this path with these contents.
    ///
    /// # Errors
    /// The system cannot create a thread.
    pub fn start(file: RuntimeFile, path: PathBuf, held: Holder) -> io::Result<Self> {
        let (orders, inbox) = channel();
        let (outbox, answers) = channel();
        let mut kept = Kept { file, path, held };
        let work = move || {
            for order in inbox {
                let (answer, is_last) = match order {
                    Order::Look => (Answer::Looked(kept.look()), false),
                    Order::GiveUp => (Answer::GivenUp(kept.file.give_up()), true),
                };
                if outbox.send(answer).is_err() || is_last {
                    return;
                }
            }
        };
        let thread = thread::Builder::new().name("runtime-file".into());
        thread.stack_size(128 * 1_024).spawn(work)?;
        Ok(Self {
            orders,
            answers,
            looking: false,
        })
    }

    /// Makes the thread check whether the file is still there, and replace it if not. Returns the
    /// result of the last check, if that is known by now. To be called regularly.
    pub fn look(&mut self) -> Option<io::Result<()>> {
        let last = match self.answers.try_recv() {
            Ok(Answer::Looked(result)) => {
                self.looking = false;
                Some(result)
            }
            _ => None,
        };
        if !self.looking {
            self.looking = self.orders.send(Order::Look).is_ok();
        }
        last
    }

    /// The token is given up: from now on every check sees none.
    ///
    /// # Errors
    /// Those of the file system, or that it does not answer.
    pub fn give_up(self) -> io::Result<()> {
        let silent = || io::Error::new(ErrorKind::TimedOut, "its file system does not answer");
        if self.orders.send(Order::GiveUp).is_err() {
            return Err(silent());
        }
        loop {
            match self.answers.recv_timeout(PATIENCE) {
                Ok(Answer::GivenUp(result)) => return result,
                Ok(Answer::Looked(_)) => {}
                Err(_) => return Err(silent()),
            }
        }
    }
}

struct Kept {
    file: RuntimeFile,
    path: PathBuf,
    held: Holder,
}

impl Kept {
    fn look(&mut self) -> io::Result<()> {
        if self.file.is_at(&self.path)? {
            return match self.file.has(&self.held)? {
                true => Ok(()),
                false => self.file.write(&self.held),
            };
        }
        let mut file = match RuntimeFile::open(&self.path) {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                make_directory(&self.path)?;
                RuntimeFile::open(&self.path)?
            }
            opened => opened?,
        };
        if !file.lock()? {
            return Err(io::Error::other("another has locked it"));
        }
        file.write(&self.held)?;
        self.file = file;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;
    use crate::run::runtime_file::held_session;

    fn held() -> Holder {
        Holder {
            group: "job".into(),
            client_id: "a".into(),
            session: "s1".into(),
            fence: "7".into(),
        }
    }

    fn keeper(path: &Path) -> RuntimeKeeper {
        let mut file = RuntimeFile::open(path).unwrap();
        assert!(file.lock().unwrap());
        file.write(&held()).unwrap();
        RuntimeKeeper::start(file, path.to_owned(), held()).unwrap()
    }

    /// Starts a check and waits for its result.
    fn look(keeper: &mut RuntimeKeeper) -> io::Result<()> {
        assert!(keeper.look().is_none());
        keeper.looking = false;
        match keeper.answers.recv().unwrap() {
            Answer::Looked(result) => result,
            Answer::GivenUp(_) => panic!(),
        }
    }

    #[test]
    fn a_removed_file_is_replaced_and_locked() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("own/job.json");
        make_directory(&path).unwrap();
        let mut keeper = keeper(&path);
        let is_held = || held_session(&path).unwrap().is_some();
        look(&mut keeper).unwrap();
        assert!(is_held());
        fs::remove_file(&path).unwrap();
        look(&mut keeper).unwrap();
        assert!(is_held());
        fs::remove_dir_all(folder.path().join("own")).unwrap();
        look(&mut keeper).unwrap();
        assert!(is_held(), "with its directory");
        fs::write(&path, "").unwrap();
        look(&mut keeper).unwrap();
        assert!(is_held(), "with its contents");
        keeper.give_up().unwrap();
        assert!(!is_held());
    }

    #[test]
    fn a_check_begins_when_the_last_one_is_over() {
        let folder = tempfile::tempdir().unwrap();
        let mut keeper = keeper(&folder.path().join("job.json"));
        for _ in 0..3 {
            while keeper.look().is_none() {
                thread::yield_now();
            }
        }
        keeper.give_up().unwrap();
    }

    #[test]
    fn a_file_of_another_process_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("job.json");
        let mut keeper = keeper(&path);
        fs::remove_file(&path).unwrap();
        fs::write(&path, "mine").unwrap();
        assert!(look(&mut keeper).is_err());
        assert_eq!(fs::read_to_string(&path).unwrap(), "mine");
        fs::remove_file(&path).unwrap();
        let other = RuntimeFile::open(&path).unwrap();
        assert!(other.lock().unwrap());
        assert!(look(&mut keeper).is_err());
        drop(other);
        look(&mut keeper).unwrap();
        assert!(held_session(&path).unwrap().is_some());
    }
}
