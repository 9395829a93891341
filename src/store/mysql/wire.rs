//! The packets of a connection: a header of four bytes with length and number, and the payload. And the
//! text protocol: a statement, and the answers to it.

use std::io;

use mysql_common::constants::CapabilityFlags;
use mysql_common::io::ParseBuf;
use mysql_common::packets::{Column, ErrPacket};
use mysql_common::proto::MyDeserialize;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::fault::{Fault, Said};
use crate::store::net::deadline::Activity;
use crate::store::net::dial::Stream;
use crate::store::net::limit::{Allowance, LONGEST_ANSWER, LONGEST_LOGIN};

/// The longest payload of one packet; a longer one goes on in the next.
const LONGEST: usize = 0xff_ff_ff;

/// What a cell, a row or an answer takes besides its bytes.
const PER_CELL: usize = 48;

/// How many bytes are read at once.
const CHUNK: usize = 16 * 1024;

/// The command of a statement in text.
pub(super) const COM_QUERY: u8 = 3;

/// The command of the end.
const COM_QUIT: u8 = 1;

/// Another answer follows.
pub(super) const MORE_RESULTS: u16 = 8;

/// The server's answer to one statement: its rows, if it has any.
#[derive(Debug, Default)]
pub(in crate::store) struct Answer {
    pub(super) names: Vec<String>,
    /// The cells as texts; `None` for NULL.
    pub(super) rows: Vec<Vec<Option<Vec<u8>>>>,
}

/// A connection's bytes.
pub(super) struct Wire {
    stream: Box<dyn Stream>,
    /// What was read, and not taken yet.
    buffer: Vec<u8>,
    /// Where that begins.
    taken: usize,
    /// The number of the next packet.
    number: u8,
    /// How much memory the rest of what is read may take.
    allowance: Allowance,
}

impl Wire {
    pub(super) fn new(stream: Box<dyn Stream>) -> Self {
        Self {
            stream,
            buffer: Vec::new(),
            taken: 0,
            number: 0,
            allowance: Allowance::of(LONGEST_LOGIN),
        }
    }

    /// This connection over another stream, which is made from this one.
    pub(super) fn into_stream(self) -> (Box<dyn Stream>, u8) {
        (self.stream, self.number)
    }

    pub(super) fn over(stream: Box<dyn Stream>, number: u8) -> Self {
        Self {
            number,
            ..Self::new(stream)
        }
    }

    async fn take(&mut self, count: usize) -> io::Result<&[u8]> {
        while self.buffer.len() - self.taken < count {
            if self.taken > 0 {
                self.buffer.drain(..self.taken);
                self.taken = 0;
            }
            self.buffer.reserve(CHUNK.max(count));
            if self.stream.read_buf(&mut self.buffer).await? == 0 {
                let what = "the server has closed the connection";
                return Err(io::Error::new(io::ErrorKind::UnexpectedEof, what));
            }
        }
        let from = self.taken;
        self.taken += count;
        Ok(self.buffer.get(from..self.taken).unwrap_or_default())
    }

    /// The next payload.
    pub(super) async fn read(&mut self) -> io::Result<Vec<u8>> {
        let mut payload = Vec::new();
        loop {
            let header = self.take(4).await?;
            let &[low, middle, high, number] = header else {
                return Err(io::ErrorKind::InvalidData.into());
            };
            let length = usize::from(low) | usize::from(middle) << 8 | usize::from(high) << 16;
            self.number = number.wrapping_add(1);
            self.allowance.spend(length)?;
            payload.extend_from_slice(self.take(length).await?);
            if length < LONGEST {
                return Ok(payload);
            }
        }
    }

    pub(super) async fn write(&mut self, payload: &[u8]) -> io::Result<()> {
        let mut bytes = Vec::with_capacity(payload.len() + 8);
        // A payload whose length is a multiple of the longest ends with an empty packet.
        let last = payload.len() / LONGEST;
        for at in 0..=last {
            let end = payload.len().min((at + 1) * LONGEST);
            let part = payload.get(at * LONGEST..end).unwrap_or_default();
            let length = u32::try_from(part.len()).unwrap_or_default();
            bytes.extend_from_slice(length.to_le_bytes().get(..3).unwrap_or_default());
            bytes.push(self.number);
            bytes.extend_from_slice(part);
            self.number = self.number.wrapping_add(1);
        }
        self.stream.write_all(&bytes).await?;
        self.stream.flush().await
    }

    /// Says that this is the end: a connection that only closes is an error in the server's log.
    pub(super) async fn quit(&mut self) {
        self.number = 0;
        // The other end may be gone already.
        let _ = self.write(&[COM_QUIT]).await;
    }

    /// Sends statements, whose answers are read later.
    pub(super) async fn send(&mut self, statements: &str) -> Result<(), Fault> {
        let io = |error| Fault::Io(Activity::Asking, error);
        let mut command = Vec::with_capacity(statements.len() + 1);
        command.push(COM_QUERY);
        command.extend_from_slice(statements.as_bytes());
        self.number = 0;
        self.allowance.set(LONGEST_ANSWER);
        self.write(&command).await.map_err(io)
    }

    /// Sends statements, and puts their answers into `answers`, until one fails.
    pub(super) async fn ask(
        &mut self,
        statements: &str,
        answers: &mut Vec<Answer>,
    ) -> Result<(), Fault> {
        self.send(statements).await?;
        self.receive(answers).await
    }

    /// Reads the answers to what was sent.
    pub(super) async fn receive(&mut self, answers: &mut Vec<Answer>) -> Result<(), Fault> {
        let io = |error| Fault::Io(Activity::Asking, error);
        loop {
            let first = self.read().await.map_err(io)?;
            self.allowance.spend(PER_CELL).map_err(io)?;
            let (answer, status) = match first.first() {
                Some(0x00) => (Answer::default(), status_of_ok(&first)?),
                Some(0xff) => return Err(refusal(&first)),
                // The server asks for a file of this host's.
                Some(0xfb) | None => return Err(Fault::nonsense("an unexpected answer")),
                Some(_) => self.rows(&first).await?,
            };
            answers.push(answer);
            if status & MORE_RESULTS == 0 {
                return Ok(());
            }
        }
    }

    /// The rows behind a packet with the number of columns.
    async fn rows(&mut self, first: &[u8]) -> Result<(Answer, u16), Fault> {
        let io = |error| Fault::Io(Activity::Asking, error);
        let mut rest = first;
        let count = length(&mut rest).flatten().unwrap_or_default();
        let mut answer = Answer::default();
        for _ in 0..count {
            let packet = self.read().await.map_err(io)?;
            self.allowance.spend(PER_CELL).map_err(io)?;
            let column = Column::deserialize((), &mut ParseBuf(&packet)).map_err(io)?;
            answer.names.push(column.name_str().into_owned());
        }
        end_of(&self.read().await.map_err(io)?)
            .ok_or_else(|| Fault::nonsense("columns without an end"))?;
        loop {
            let packet = self.read().await.map_err(io)?;
            if packet.first() == Some(&0xff) {
                return Err(refusal(&packet));
            }
            if let Some(status) = end_of(&packet) {
                return Ok((answer, status));
            }
            let cells_and_row = answer.names.len().saturating_add(1);
            self.allowance
                .spend(cells_and_row.saturating_mul(PER_CELL))
                .map_err(io)?;
            let row = cells(&packet, answer.names.len());
            answer
                .rows
                .push(row.ok_or_else(|| Fault::nonsense("a row that ends too early"))?);
        }
    }
}

/// The error in a packet.
pub(super) fn refusal(packet: &[u8]) -> Fault {
    let parsed = |capabilities| ErrPacket::deserialize(capabilities, &mut ParseBuf(packet));
    // An error in the place of the handshake, such as that of a host that is not let in, has no SQL state.
    let has_state = packet.get(3) == Some(&b'#');
    match parsed(match has_state {
        true => CapabilityFlags::CLIENT_PROTOCOL_41,
        false => CapabilityFlags::empty(),
    }) {
        Ok(ErrPacket::Error(error)) => Fault::Said(Said::Server {
            code: error.error_code(),
            state: error
                .sql_state_ref()
                .map(|state| state.as_str().into_owned()),
            message: error.message_str().into_owned(),
        }),
        Ok(ErrPacket::Progress(_)) | Err(_) => Fault::nonsense("an error that can't be read"),
    }
}

/// A number of variable length; inside, `None` stands for NULL.
fn length(rest: &mut &[u8]) -> Option<Option<usize>> {
    let (&first, mut after) = rest.split_first()?;
    let bytes = match first {
        0..=0xfa => {
            *rest = after;
            return Some(Some(usize::from(first)));
        }
        0xfb => {
            *rest = after;
            return Some(None);
        }
        0xfc => 2,
        0xfd => 3,
        _ => 8,
    };
    let number = after.get(..bytes)?;
    after = after.get(bytes..)?;
    let number = number
        .iter()
        .rev()
        .fold(0_u64, |sum, byte| sum << 8 | u64::from(*byte));
    *rest = after;
    usize::try_from(number).ok().map(Some)
}

fn cells(mut rest: &[u8], count: usize) -> Option<Vec<Option<Vec<u8>>>> {
    let mut cells = Vec::with_capacity(count);
    for _ in 0..count {
        cells.push(match length(&mut rest)? {
            None => None,
            Some(length) => {
                let cell = rest.get(..length)?;
                rest = rest.get(length..)?;
                Some(cell.to_vec())
            }
        });
    }
    Some(cells)
}

fn number_at(packet: &[u8], at: usize) -> Option<u16> {
    let bytes = packet.get(at..at + 2)?;
    Some(u16::from_le_bytes(bytes.try_into().ok()?))
}

/// The status in the packet that ends columns or rows; `None` for any other.
fn end_of(packet: &[u8]) -> Option<u16> {
    let is_end = packet.first() == Some(&0xfe) && packet.len() < 9;
    is_end.then(|| number_at(packet, 3).unwrap_or_default())
}

fn status_of_ok(packet: &[u8]) -> Result<u16, Fault> {
    let mut rest = packet.get(1..).unwrap_or_default();
    // The numbers of rows and of the last row.
    let counted = length(&mut rest).and_then(|_| length(&mut rest));
    counted
        .and_then(|_| number_at(rest, 0))
        .ok_or_else(|| Fault::nonsense("an answer that ends too early"))
}

#[cfg(test)]
#[path = "wire_tests.rs"]
mod tests;
