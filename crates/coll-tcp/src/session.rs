//! A link within TLS while the job runs: bytes go in and out in the clear, and over its non-blocking socket as records.
//!
//! Whoever sends must know that its bytes have been given to the system: between operations nobody comes by to push on
//! what was left in a buffer. So of bytes that have been made into records which the socket did not all take, the last
//! is not reported as taken. Whoever offers it again gets it taken once the records have gone, and until then asks to be
//! woken when the socket can be written. At most [`WRITTEN_AT_A_TIME`] bytes wait in this way.
//!
//! What is received is read from the socket [`READ_AT_A_TIME`] bytes at once and fed to rustls in pieces, which reads
//! 4 KiB at a time by itself. Of what a link needs only this buffer is kept from one message to the next; rustls
//! allocates for each record, of 16 KiB at most.

use std::fmt;
use std::io::{self, ErrorKind, IoSlice, Read, Write};
use std::net::TcpStream;

use rustix::io::Errno;
use rustix::net::{RecvFlags, SendAncillaryBuffer, SendFlags, recv, send, sendmsg};
use rustls::Connection;

use crate::tls::in_words;

/// How many bytes in the clear are made into records before the socket is asked: four records.
const WRITTEN_AT_A_TIME: usize = 64 << 10;

/// How many times one call does so, if the socket takes it all.
const TURNS: usize = 4;

/// How many parts one turn takes.
const PARTS_AT_A_TIME: usize = 16;

/// How many bytes are asked of the socket at a time.
const READ_AT_A_TIME: usize = 64 << 10;

/// The state of TLS on one link.
pub(crate) struct Session {
    tls: Box<Connection>,
    /// Bytes from the socket that rustls has not been fed yet: those from `fed` to `filled`.
    raw: Box<[u8]>,
    fed: usize,
    filled: usize,
    /// A byte that has gone, or is about to, and that was not reported as taken.
    owes: bool,
    /// Whether bytes may be here that poll does not see.
    holds: bool,
    /// What broke it, to be told again.
    broken: Option<String>,
}

impl Session {
    pub(crate) fn new(tls: Box<Connection>) -> Session {
        let raw = vec![0; READ_AT_A_TIME].into_boxed_slice();
        // What came with the end of the handshake lies in rustls' buffers.
        Session { tls, raw, fed: 0, filled: 0, owes: false, holds: true, broken: None }
    }

    /// Whether to look for bytes without waiting for the socket.
    pub(crate) fn holds(&self) -> bool {
        self.holds
    }

    /// As [`coll_exec::Transport::try_send`], over this socket.
    pub(crate) fn send(&mut self, socket: &TcpStream, parts: &[&[u8]]) -> Result<usize, String> {
        if let Some(broken) = &self.broken {
            return Err(broken.clone());
        }
        let offered: usize = parts.iter().map(|part| part.len()).sum();
        if offered == 0 || !self.flush(socket)? {
            return Ok(0);
        }
        let mut taken = usize::from(std::mem::take(&mut self.owes));
        for _ in 0..TURNS {
            if taken == offered {
                break;
            }
            taken += self.seal(parts, taken)?;
            if !self.flush(socket)? {
                self.owes = true;
                return Ok(taken - 1);
            }
        }
        Ok(taken)
    }

    /// Makes records of what follows the first `skipped` bytes. At least one byte: nothing is left to be flushed.
    fn seal(&mut self, parts: &[&[u8]], mut skipped: usize) -> Result<usize, String> {
        let mut slices = [IoSlice::new(&[]); PARTS_AT_A_TIME];
        let (mut count, mut room) = (0, WRITTEN_AT_A_TIME);
        for part in parts {
            let before = skipped.min(part.len());
            skipped -= before;
            let part = &part[before..];
            let part = &part[..part.len().min(room)];
            if part.is_empty() {
                continue;
            }
            if count == PARTS_AT_A_TIME {
                break;
            }
            slices[count] = IoSlice::new(part);
            count += 1;
            room -= part.len();
        }
        match self.tls.writer().write_vectored(&slices[..count]) {
            Ok(0) | Err(_) => Err(self.breaks("TLS: it takes no bytes any more".to_owned())),
            Ok(sealed) => Ok(sealed),
        }
    }

    /// Gives the socket what it takes of the records there are. Says whether none is left.
    fn flush(&mut self, socket: &TcpStream) -> Result<bool, String> {
        while self.tls.wants_write() {
            match self.tls.write_tls(&mut Wire(socket)) {
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(self.breaks(error.to_string())),
            }
        }
        Ok(true)
    }

    /// As [`coll_exec::Transport::try_recv`], over this socket.
    pub(crate) fn recv(&mut self, socket: &TcpStream, into: &mut [u8]) -> Result<usize, String> {
        let mut got = 0;
        loop {
            match self.tls.reader().read(&mut into[got..]) {
                // A word of the end, which is the end of a link as any other is.
                Ok(0) => return self.ended(got, "it closed the connection"),
                Ok(count) => {
                    got += count;
                    if got < into.len() {
                        // Until there is no more, or the end.
                        continue;
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(error) => return self.ended(got, &format!("TLS: {error}")),
            }
            if got == into.len() {
                self.holds = true;
                return Ok(got);
            }
            if let Some(broken) = &self.broken {
                return if got == 0 { Err(broken.clone()) } else { Ok(got) };
            }
            if self.fed == self.filled {
                match recv(socket, &mut self.raw[..], RecvFlags::DONTWAIT) {
                    Ok((0, _)) => {
                        return self.ended(got, "it closed the connection without TLS's word of the end");
                    }
                    Ok((count, _)) => (self.fed, self.filled) = (0, count),
                    Err(Errno::AGAIN | Errno::INTR) => {
                        self.holds = false;
                        return Ok(got);
                    }
                    Err(errno) => return self.ended(got, &io::Error::from(errno).to_string()),
                }
            }
            if let Err(what) = self.feed(socket) {
                return self.ended(got, &what);
            }
        }
    }

    /// Feeds rustls one piece of what has come.
    fn feed(&mut self, socket: &TcpStream) -> Result<(), String> {
        let mut raw = &self.raw[self.fed..self.filled];
        let fed = self.tls.read_tls(&mut raw).map_err(|error| format!("TLS: {error}"))?;
        self.fed += fed;
        if let Err(error) = self.tls.process_new_packets() {
            // The peer should know why; it may be unable to hear it.
            let _ = self.flush(socket);
            return Err(self.breaks(in_words(&error)));
        }
        match fed {
            // After the word of the end nothing more is read.
            0 => self.fed = self.filled,
            // An answer that TLS itself has to give: what does not go now goes with what is sent next.
            _ => drop(self.flush(socket)?),
        }
        Ok(())
    }

    /// The end comes after what was read before it, and is told when asked again.
    fn ended(&mut self, got: usize, why: &str) -> Result<usize, String> {
        let why = self.breaks(why.to_owned());
        if got == 0 { Err(why) } else { Ok(got) }
    }

    /// Keeps the first reason.
    fn breaks(&mut self, why: String) -> String {
        self.holds = true;
        self.broken.get_or_insert(why).clone()
    }

    /// Says that the end is meant, as far as the socket takes it.
    pub(crate) fn part(&mut self, socket: &TcpStream) {
        self.tls.send_close_notify();
        let _ = self.flush(socket);
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session")
            .field("owes", &self.owes)
            .field("broken", &self.broken)
            .finish_non_exhaustive()
    }
}

/// A socket as rustls writes to it: never blocking, and raising no signal when the peer is gone.
struct Wire<'s>(&'s TcpStream);

const QUIETLY: SendFlags = SendFlags::DONTWAIT.union(SendFlags::NOSIGNAL);

impl Write for Wire<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Ok(send(self.0, bytes, QUIETLY)?)
    }

    fn write_vectored(&mut self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        Ok(sendmsg(self.0, parts, &mut SendAncillaryBuffer::default(), QUIETLY)?)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests;
