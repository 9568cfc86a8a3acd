//! What is said on control connections and while a link is set up: messages, and the frames that carry them.
//!
//! A frame is twelve bytes (a mark, the head's length, the body's length; little endian), a head in JSON, and a body
//! of plain bytes, which only exchanges use. A reader states how long head and body may be before it looks: a frame
//! that claims more is refused unread, and memory grows with the bytes that came, never with those that were claimed.

use std::io;
use std::net::{IpAddr, SocketAddr};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use crate::call::Report;
use crate::error::Refusal;
use crate::host::Host;
use crate::token::{Nonce, Proof};

/// The version of what is spoken on control connections and links. All ranks and the server must have the same.
pub const PROTOCOL_VERSION: u32 = 2;

/// The longest blob that a rank may give to an exchange, in bytes.
pub const BLOB_LIMIT_BYTES: usize = 16 << 20;

/// The most ranks that a job may have.
pub(crate) const WORLD_LIMIT: u32 = 1 << 16;

const MARK: [u8; 4] = *b"coll";

/// How long the parts of a frame may be.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    pub(crate) head_bytes: usize,
    pub(crate) body_bytes: usize,
}

impl Limits {
    /// Before the other side has proved itself.
    pub(crate) const HANDSHAKE: Limits = Limits { head_bytes: 4 << 10, body_bytes: 0 };
    /// What the server reads of a rank.
    pub(crate) const FROM_RANK: Limits = Limits { head_bytes: 1 << 20, body_bytes: BLOB_LIMIT_BYTES };

    /// What a rank reads of the server: everyone's blobs at once.
    pub(crate) fn from_server(world: u32) -> Limits {
        Limits { head_bytes: 16 << 20, body_bytes: BLOB_LIMIT_BYTES.saturating_mul(world as usize) }
    }
}

/// The first words of whoever accepts a connection.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Challenge {
    pub(crate) version: u32,
    pub(crate) nonce: Nonce,
    /// Whether it has TLS on. Of versions that do not say so it is off.
    #[serde(default)]
    pub(crate) tls: bool,
}

/// The answer to a challenge. Later versions keep its shape, so that versions can be compared.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Claim<W> {
    pub(crate) version: u32,
    pub(crate) nonce: Nonce,
    pub(crate) proof: Proof,
    /// Whether whoever claims has TLS on.
    #[serde(default)]
    pub(crate) tls: bool,
    pub(crate) what: W,
}

/// What a rank claims to the server.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct RankClaim {
    pub(crate) job: String,
    pub(crate) rank: u32,
    pub(crate) world: u32,
    /// How long the rank will still wait for the others, in milliseconds.
    pub(crate) patience_ms: u64,
}

/// What a rank claims to a peer that it connects to.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct LinkClaim {
    pub(crate) generation: u64,
    pub(crate) from: u32,
    pub(crate) to: u32,
    pub(crate) channel: u32,
}

/// What a challenger says to a claim.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Welcome {
    /// Believed; and the challenger's own proof.
    Come(Proof),
    /// The proof is wrong: another job's, or a stranger's.
    TokenRefused,
    /// The proof is right, but this is not for here.
    NotHere(String),
}

/// What the server must know of a rank beside its claim.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Particulars {
    /// Ordered (field, value) pairs that every rank must have the same.
    pub(crate) fingerprint: Vec<(String, String)>,
    /// (peer, channel) of each link that the rank's plan uses.
    pub(crate) links: Vec<(u32, u32)>,
    pub(crate) contact: Contact,
}

/// Where a rank's listener may be found, as far as the rank knows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Contact {
    /// The address that the listener is bound to; may be unspecified.
    pub(crate) listen: SocketAddr,
    /// What the user says that others should connect to; a port of 0 stands for the listener's.
    pub(crate) advertise: Vec<SocketAddr>,
    /// This end of the rank's control connection.
    pub(crate) control_ip: IpAddr,
    pub(crate) host: Host,
    /// Its addresses on the interfaces that its user chose.
    pub(crate) chosen: Vec<IpAddr>,
}

/// A peer, as the server tells a rank of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Entry {
    pub(crate) rank: u32,
    pub(crate) contact: Contact,
    /// Where the server saw its control connection come from.
    pub(crate) observed_ip: IpAddr,
    /// Whether it is on the server's own machine: then the server's address leads to it.
    pub(crate) beside_server: bool,
}

/// From a rank to the server, once proved.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum ToServer {
    /// First of all.
    Register(Box<Particulars>),
    /// All links of this rank are connected.
    Ready,
    /// The frame's body is the rank's part of exchange number `sequence`.
    Blob { sequence: u64 },
    /// The rank's time is up in exchange `sequence`, or before all are connected: who has not come?
    WhoIsMissing { sequence: u64 },
    /// Where are these ranks? A plan connects the rank to them.
    WhereAre { ranks: Vec<u32> },
    /// Nothing moves for this rank: what are the others doing?
    Stalled { sequence: u64, report: Report },
    /// The answer to an inquiry.
    Doing { report: Report },
    /// The rank gives up.
    Abort { reason: String },
    /// The rank is done, and will close.
    Goodbye,
}

/// From the server to a rank, once proved.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum ToRank {
    /// The job will not start.
    Refused(Refusal),
    /// The job starts: these are your peers.
    Start {
        /// Unlike any other job's.
        generation: u64,
        /// The rank whose process the server runs in, if there is one.
        host_rank: Option<u32>,
        peers: Vec<Entry>,
    },
    /// Every rank is connected.
    AllReady,
    /// The frame's body is the blobs of exchange `sequence`, by rank, of these lengths.
    Gathered { sequence: u64, lengths: Vec<u64> },
    /// These ranks have not come to exchange `sequence`, or are not connected yet.
    Missing { sequence: u64, ranks: Vec<u32> },
    /// These are the ranks that were asked for.
    Peers { peers: Vec<Entry> },
    /// Somebody stalls: what is this rank doing?
    Inquire,
    /// What was found out about the rank's stall number `sequence`: who keeps it waiting.
    Explained { sequence: u64, ranks: Vec<u32>, detail: String },
    /// Ranks make different calls under one operation number; it is over.
    Mismatch { operation: u64, detail: String },
    /// A rank is gone without a goodbye, or with one where it was still needed.
    Gone { rank: u32, detail: String },
    /// A rank gave up.
    Aborted { origin: u32, reason: String },
    /// The server ends in good order; the job goes on without it.
    Closing,
}

/// Why no message could be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FrameError {
    #[error("the connection was closed")]
    Closed,
    #[error("{0}")]
    Io(#[from] io::Error),
    #[error("{0}")]
    Garbage(String),
}

/// A message as the bytes of a frame without its body.
pub(crate) fn frame_head<M: Serialize>(message: &M, body_bytes: usize) -> io::Result<Vec<u8>> {
    let head = serde_json::to_vec(message).map_err(io::Error::other)?;
    let too_long = |_| io::Error::other("a frame of 4 GiB or more");
    let mut frame = MARK.to_vec();
    frame.extend_from_slice(&u32::try_from(head.len()).map_err(too_long)?.to_le_bytes());
    frame.extend_from_slice(&u32::try_from(body_bytes).map_err(too_long)?.to_le_bytes());
    frame.extend_from_slice(&head);
    Ok(frame)
}

/// Writes a message and its body.
pub(crate) async fn write_frame<W, M>(writer: &mut W, message: &M, body: &[u8]) -> io::Result<()>
where
    W: AsyncWrite + Unpin,
    M: Serialize,
{
    writer.write_all(&frame_head(message, body.len())?).await?;
    if !body.is_empty() {
        writer.write_all(body).await?;
    }
    writer.flush().await
}

/// Reads a message without a body.
pub(crate) async fn read_message<R, M>(reader: &mut R, limits: Limits) -> Result<M, FrameError>
where
    R: AsyncRead + Unpin,
    M: DeserializeOwned,
{
    Ok(read_frame(reader, limits).await?.0)
}

/// Reads a message and its body. Takes no byte beyond them.
pub(crate) async fn read_frame<R, M>(reader: &mut R, limits: Limits) -> Result<(M, Vec<u8>), FrameError>
where
    R: AsyncRead + Unpin,
    M: DeserializeOwned,
{
    let mut mark = [0; 4];
    match reader.read_exact(&mut mark).await {
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Err(FrameError::Closed),
        Err(error) => return Err(error.into()),
    }
    if mark != MARK {
        return Err(FrameError::Garbage(format!(
            "a frame begins with {:?}, not {:?}",
            show(&mark),
            show(&MARK)
        )));
    }
    let head_bytes = reader.read_u32_le().await? as usize;
    let body_bytes = reader.read_u32_le().await? as usize;
    let head = read_part(reader, "head", head_bytes, limits.head_bytes).await?;
    let body = read_part(reader, "body", body_bytes, limits.body_bytes).await?;
    let message = serde_json::from_slice(&head).map_err(|error| {
        FrameError::Garbage(format!("a head of {head_bytes} bytes is no message: {error}"))
    })?;
    Ok((message, body))
}

async fn read_part<R: AsyncRead + Unpin>(
    reader: &mut R,
    what: &str,
    length: usize,
    limit: usize,
) -> Result<Vec<u8>, FrameError> {
    if length > limit {
        return Err(FrameError::Garbage(format!(
            "a frame's {what} claims {length} bytes, of {limit} allowed"
        )));
    }
    let mut bytes = Vec::new();
    reader.take(length as u64).read_to_end(&mut bytes).await?;
    if bytes.len() < length {
        return Err(FrameError::Io(io::ErrorKind::UnexpectedEof.into()));
    }
    Ok(bytes)
}

fn show(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::{Expect, expect};

    fn read(bytes: &[u8], limits: Limits) -> Result<(ToServer, Vec<u8>), FrameError> {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let mut reader = bytes;
        runtime.block_on(read_frame(&mut reader, limits))
    }

    fn check_refused(bytes: &[u8], expect: Expect) {
        expect.assert_eq(&read(bytes, Limits::FROM_RANK).unwrap_err().to_string());
    }

    #[test]
    fn a_frame_comes_back_as_it_was_sent() {
        let mut frame = frame_head(&ToServer::Blob { sequence: 7 }, 3).unwrap();
        frame.extend_from_slice(b"abcREST");
        let (message, body) = read(&frame, Limits::FROM_RANK).unwrap();
        assert!(matches!(message, ToServer::Blob { sequence: 7 }));
        assert_eq!(body, b"abc");
    }

    #[test]
    fn what_is_no_frame_is_refused_with_the_reason() {
        check_refused(b"", expect!["the connection was closed"]);
        check_refused(b"GET / HTTP/1.1\r\n\r\n", expect![[r#"a frame begins with "GET ", not "coll""#]]);
        check_refused(
            b"coll\xff\xff\xff\xff\0\0\0\0",
            expect!["a frame's head claims 4294967295 bytes, of 1048576 allowed"],
        );
        check_refused(
            b"coll\x02\0\0\0\0\0\0\x10{}",
            expect!["a frame's body claims 268435456 bytes, of 16777216 allowed"],
        );
        check_refused(b"coll\x02\0\0\0\0\0\0\0{", expect!["unexpected end of file"]);
        check_refused(
            b"coll\x02\0\0\0\0\0\0\0{}",
            expect!["a head of 2 bytes is no message: expected value at line 1 column 2"],
        );
    }
}
