//! Where a server's reply ends, found before it is parsed: a peer that sends without an end must not
//! fill the memory. Pure.

use crate::store::net::deadline::Activity;

/// A line is a status, an error or a length.
const LONGEST_LINE: usize = 64 * 1024;

/// A script's answer is a list of entries, each with a list of fields.
const DEEPEST: usize = 8;

/// What a reply may be at most.
#[derive(Clone, Copy)]
struct Most {
    bytes: usize,
    /// Of all its lists together. In memory an element takes ten times as much as its shortest text.
    elements: usize,
}

impl Most {
    const fn of(doing: Activity) -> Self {
        match doing {
            // The longest answer lists all tokens and waiters: some 40,000 groups.
            Activity::Asking => Self {
                bytes: 64 << 20,
                elements: 2_000_000,
            },
            _ => Self {
                bytes: LONGEST_LINE,
                elements: 0,
            },
        }
    }
}

/// A reply that is being received.
#[derive(Default)]
pub(super) struct Reply {
    /// How much of it is known.
    known: usize,
    /// How many elements each open list still has.
    open: Vec<usize>,
    elements: usize,
}

impl Reply {
    /// The length of the first reply in these bytes, if it is whole. Until then each call has what the
    /// last one had, and more.
    pub(super) fn end(&mut self, bytes: &[u8], doing: Activity) -> Result<Option<usize>, String> {
        let most = Most::of(doing);
        loop {
            let rest = bytes.get(self.known..).unwrap_or_default();
            let Some(line) = line(rest)? else {
                return Ok(None);
            };
            let (size, elements) = header(line)?;
            let end = self.known.saturating_add(size);
            let all = self.elements.saturating_add(elements);
            if end > most.bytes || all > most.elements || self.open.len() >= DEEPEST {
                return Err("its reply is longer than any that was asked for".into());
            }
            if bytes.len() < end {
                return Ok(None);
            }
            (self.known, self.elements) = (end, all);
            if elements > 0 {
                self.open.push(elements);
            } else if self.is_whole() {
                *self = Self::default();
                return Ok(Some(end));
            }
        }
    }

    /// After an element: whether no list is open any more.
    fn is_whole(&mut self) -> bool {
        while let Some(left) = self.open.last_mut() {
            *left -= 1;
            if *left > 0 {
                return false;
            }
            self.open.pop();
        }
        true
    }
}

/// The first line without its end, if it is whole.
fn line(bytes: &[u8]) -> Result<Option<&[u8]>, String> {
    let part = bytes.get(..LONGEST_LINE).unwrap_or(bytes);
    match part.windows(2).position(|end| end == b"\r\n") {
        Some(at) => Ok(bytes.get(..at)),
        None if part.len() == LONGEST_LINE => Err("it sends a line without an end".into()),
        None => Ok(None),
    }
}

/// How many bytes begin with this line that are one element, and how many elements follow them.
fn header(line: &[u8]) -> Result<(usize, usize), String> {
    let number = || {
        let text = std::str::from_utf8(line.get(1..).unwrap_or_default()).ok();
        let number: Option<i64> = text.and_then(|text| text.parse().ok());
        let number = number.ok_or("it sends no length where one should be")?;
        // Nothing has the length -1.
        Ok::<_, String>(usize::try_from(number).ok())
    };
    let head = line.len() + 2;
    match line.first() {
        Some(b'+' | b'-' | b':') => Ok((head, 0)),
        Some(b'$') => {
            let text = number()?.map_or(0, |length| length.saturating_add(2));
            Ok((head.saturating_add(text), 0))
        }
        Some(b'*') => Ok((head, number()?.unwrap_or(0))),
        _ => Err("it sends something else than a reply".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ASKING: Activity = Activity::Asking;

    #[test]
    fn a_reply_ends_where_its_last_element_does() {
        for reply in [
            "+OK\r\n",
            "-ERR no\r\n",
            ":7\r\n",
            "$-1\r\n",
            "*-1\r\n",
            "*0\r\n",
            "$4\r\na\r\nb\r\n",
            "*2\r\n*2\r\n$1\r\na\r\n*0\r\n:1\r\n",
            "*1\r\n*1\r\n*1\r\n$0\r\n\r\n",
        ] {
            let all = format!("{reply}+next\r\n");
            let mut found = Reply::default();
            for cut in 0..reply.len() {
                assert_eq!(
                    found.end(&all.as_bytes()[..cut], ASKING),
                    Ok(None),
                    "{reply}"
                );
            }
            assert_eq!(found.end(all.as_bytes(), ASKING), Ok(Some(reply.len())));
            assert_eq!(found.end(b"+next\r\n", ASKING), Ok(Some(7)), "the next one");
            let parsed = redis::parse_redis_value(reply.as_bytes());
            assert!(parsed.is_ok(), "{reply}: {parsed:?}");
        }
    }

    #[test]
    fn what_is_longer_than_any_reply_is_refused_as_soon_as_it_says_so() {
        let line = "x".repeat(LONGEST_LINE);
        for (reply, doing) in [
            ("$67108860\r\n".to_owned(), ASKING),
            ("$9223372036854775807\r\n".to_owned(), ASKING),
            ("*2000001\r\n".to_owned(), ASKING),
            ("*2\r\n*1999999\r\n".to_owned(), ASKING),
            ("*1\r\n".repeat(DEEPEST + 1), ASKING),
            (format!("+{line}"), ASKING),
            ("*1\r\n".to_owned(), Activity::LoggingIn),
            ("$65536\r\n".to_owned(), Activity::LoggingIn),
            ("HTTP/1.1 400\r\n".to_owned(), ASKING),
            ("\r\n".to_owned(), ASKING),
            ("$x\r\n".to_owned(), ASKING),
        ] {
            let refused = Reply::default().end(reply.as_bytes(), doing);
            assert!(refused.is_err(), "{:?}", reply.get(..20));
        }
        for (longest, doing) in [
            ("*2\r\n$60000000\r\n", ASKING),
            ("$67108851\r\n", ASKING),
            ("*2000000\r\n", ASKING),
            ("$65526\r\n", Activity::LoggingIn),
        ] {
            let legal = Reply::default().end(longest.as_bytes(), doing);
            assert_eq!(legal, Ok(None), "{longest:?}");
        }
    }
}
