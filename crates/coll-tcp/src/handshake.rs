//! How two sides of a connection prove to each other that they know the job's token: a challenge, a claim, a welcome.
//!
//! Whoever accepts challenges first; whoever connects claims who it is and proves it; the acceptor's welcome carries
//! its own proof. The proofs cover what is claimed, so that none can be used for another rank, link or job.
//!
//! The challenge says whether the acceptor has TLS on. If both have, they speak TLS from there on and do all of this
//! again within, where it counts. If only one has, the claim that is made in the clear is proved and says so, and is
//! good for nothing but to tell both sides, as is a claim of another version. So neither waits for the other's kind of
//! first byte, and nobody between them can have a side with TLS do without.

use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;

use crate::error::StartError;
use crate::stream::Stream;
use crate::tls::{self, Tls};
use crate::token::{self, Nonce, Token};
use crate::wire::{Challenge, Claim, FrameError, Limits, LinkClaim, PROTOCOL_VERSION, RankClaim, Welcome};
use crate::wire::{read_message, write_frame};

/// How long either side may take over a handshake before it is taken for a stranger.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);

/// Something that can be claimed and proved.
pub(crate) trait Statement: Clone + Serialize + DeserializeOwned {
    /// What the proof covers, as text that no other kind of claim has.
    fn statement(&self) -> String;
}

impl Statement for RankClaim {
    fn statement(&self) -> String {
        let RankClaim { job, rank, world, patience_ms } = self;
        format!("control\n{rank}\n{world}\n{patience_ms}\n{job}")
    }
}

impl Statement for LinkClaim {
    fn statement(&self) -> String {
        let LinkClaim { generation, from, to, channel } = self;
        format!("link\n{generation}\n{from}\n{to}\n{channel}")
    }
}

/// What a connection of the job is proved by.
#[derive(Clone, Debug)]
pub(crate) struct Keys {
    pub(crate) token: Token,
    /// None if connections are not within TLS.
    pub(crate) tls: Option<Tls>,
}

impl Keys {
    pub(crate) fn new(token: Token, tls: bool) -> Result<Keys, StartError> {
        let tls = if tls { Some(Tls::new(&token)?) } else { None };
        Ok(Keys { token, tls })
    }

    /// Whether TLS is on.
    pub(crate) fn have_tls(&self) -> bool {
        self.tls.is_some()
    }
}

/// Why a handshake failed, for the side that connected.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HandshakeError {
    #[error("protocol version {theirs}, not {PROTOCOL_VERSION}")]
    Version { theirs: u32 },
    #[error("it has TLS {}, and this rank {}: `--tls`, or COLLC_TLS=1, turns it on", on(*theirs), on(!*theirs))]
    Unlike { theirs: bool },
    #[error("it refused the job's token")]
    TokenRefused,
    #[error("it could not prove that it knows the job's token")]
    Unproven,
    #[error("{0}")]
    NotHere(String),
    #[error("it did not answer")]
    Silent,
    #[error("{0}")]
    Frame(#[from] FrameError),
}

/// How a switch is spoken of.
pub(crate) fn on(tls: bool) -> &'static str {
    if tls { "on" } else { "off" }
}

/// Answers the challenge of whoever accepted this connection.
pub(crate) async fn introduce<W: Statement>(
    mut stream: TcpStream,
    keys: &Keys,
    what: W,
) -> Result<Stream, HandshakeError> {
    let talk = async {
        let challenge: Challenge = read_message(&mut stream, Limits::HANDSHAKE).await?;
        match &keys.tls {
            Some(tls) if challenge.tls => {
                let mut stream = Box::new(tls.connect(stream).await.map_err(not_secured)?);
                let challenge: Challenge = read_message(&mut stream, Limits::HANDSHAKE).await?;
                claim(&mut stream, keys, &challenge, what).await?;
                Ok(Stream::Tls(stream))
            }
            _ => {
                claim(&mut stream, keys, &challenge, what).await?;
                Ok(Stream::Plain(stream))
            }
        }
    };
    tokio::time::timeout(PATIENCE, talk).await.unwrap_or(Err(HandshakeError::Silent))
}

/// A key that is not the job's is of another token.
fn not_secured(error: std::io::Error) -> HandshakeError {
    match tls::is_of_another_token(&error) {
        true => HandshakeError::Unproven,
        false => FrameError::from(error).into(),
    }
}

/// Makes a claim and awaits the welcome. A claim of another version, or that does not go with the other side's TLS, is
/// still made, as the other side has more ranks to tell of it.
async fn claim<S, W>(
    stream: &mut S,
    keys: &Keys,
    challenge: &Challenge,
    what: W,
) -> Result<(), HandshakeError>
where
    S: AsyncRead + AsyncWrite + Unpin,
    W: Statement,
{
    let nonce = token::nonce().map_err(FrameError::from)?;
    let statement = what.statement();
    let (token, tls) = (&keys.token, keys.have_tls());
    let proof = token.prove(&[claim_label(tls), &challenge.nonce, &nonce, statement.as_bytes()]);
    let claim = Claim { version: PROTOCOL_VERSION, nonce, proof, tls, what };
    write_frame(stream, &claim, &[]).await.map_err(FrameError::from)?;
    if challenge.version != PROTOCOL_VERSION {
        return Err(HandshakeError::Version { theirs: challenge.version });
    }
    if challenge.tls != tls {
        return Err(HandshakeError::Unlike { theirs: challenge.tls });
    }
    match read_message(stream, Limits::HANDSHAKE).await? {
        Welcome::Come(proof) => {
            let parts: [&[u8]; 4] = [b"welcome", &challenge.nonce, &nonce, statement.as_bytes()];
            if token.verify(&parts, &proof) { Ok(()) } else { Err(HandshakeError::Unproven) }
        }
        Welcome::TokenRefused => Err(HandshakeError::TokenRefused),
        Welcome::NotHere(why) => Err(HandshakeError::NotHere(why)),
    }
}

/// What a claim's proof begins with: whether TLS is on is proved as well.
fn claim_label(tls: bool) -> &'static [u8] {
    if tls { b"claim with TLS" } else { b"claim" }
}

/// Challenges whoever connected. `fits` says why a claim is not for here. Answers with the claim if it is proved and
/// fits. One of another version, or that does not go with this side's TLS, is proved all the same, but gets no welcome:
/// [`Claim::is_like`] tells.
pub(crate) async fn challenge<W: Statement>(
    mut stream: TcpStream,
    keys: &Keys,
    fits: impl FnOnce(&W) -> Result<(), String>,
) -> Option<(Stream, Claim<W>)> {
    let talk = async {
        let nonce = ask(&mut stream, keys).await?;
        match &keys.tls {
            Some(tls) if begins_tls(&stream).await? => {
                let mut stream = Box::new(tls.accept(stream).await.ok()?);
                let nonce = ask(&mut stream, keys).await?;
                let claim = judge(&mut stream, keys, &nonce, fits).await?;
                Some((Stream::Tls(stream), claim))
            }
            _ => {
                let claim = judge(&mut stream, keys, &nonce, |claim: &W| match keys.tls {
                    Some(_) => Err("TLS is on here".to_owned()),
                    None => fits(claim),
                });
                let claim = claim.await?;
                Some((Stream::Plain(stream), claim))
            }
        }
    };
    tokio::time::timeout(PATIENCE, talk).await.ok().flatten()
}

async fn ask<S: AsyncWrite + Unpin>(stream: &mut S, keys: &Keys) -> Option<Nonce> {
    let nonce: Nonce = token::nonce().ok()?;
    let challenge = Challenge { version: PROTOCOL_VERSION, nonce, tls: keys.have_tls() };
    write_frame(stream, &challenge, &[]).await.ok()?;
    Some(nonce)
}

/// Whether what comes is a handshake of TLS, by its first byte.
async fn begins_tls(stream: &TcpStream) -> Option<bool> {
    let mut first = [0];
    let count = stream.peek(&mut first).await.ok()?;
    (count == 1).then_some(first[0] == 0x16)
}

/// Hears a claim and answers it.
async fn judge<S, W>(
    stream: &mut S,
    keys: &Keys,
    nonce: &Nonce,
    fits: impl FnOnce(&W) -> Result<(), String>,
) -> Option<Claim<W>>
where
    S: AsyncRead + AsyncWrite + Unpin,
    W: Statement,
{
    let claim: Claim<W> = read_message(stream, Limits::HANDSHAKE).await.ok()?;
    let statement = claim.what.statement();
    let parts = [claim_label(claim.tls), nonce, &claim.nonce, statement.as_bytes()];
    if !keys.token.verify(&parts, &claim.proof) {
        write_frame(stream, &Welcome::TokenRefused, &[]).await.ok()?;
        return None;
    }
    if !claim.is_like(keys) {
        return Some(claim);
    }
    if let Err(why) = fits(&claim.what) {
        write_frame(stream, &Welcome::NotHere(why), &[]).await.ok()?;
        return None;
    }
    let proof = keys.token.prove(&[b"welcome", nonce, &claim.nonce, statement.as_bytes()]);
    write_frame(stream, &Welcome::Come(proof), &[]).await.ok()?;
    Some(claim)
}

impl<W> Claim<W> {
    /// Whether who claims speaks as this side does.
    pub(crate) fn is_like(&self, keys: &Keys) -> bool {
        self.version == PROTOCOL_VERSION && self.tls == keys.have_tls()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn pair() -> (TcpStream, TcpStream) {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let connecting = TcpStream::connect(listener.local_addr().unwrap());
        let (here, there) = tokio::join!(connecting, listener.accept());
        (here.unwrap(), there.unwrap().0)
    }

    const CLAIM: LinkClaim = LinkClaim { generation: 1, from: 2, to: 3, channel: 0 };

    type Met = (Result<Stream, HandshakeError>, Option<(Stream, Claim<LinkClaim>)>);

    /// A token and whether TLS is on, of who connects and of who accepts.
    async fn meet(theirs: (&str, bool), ours: (&str, bool)) -> Met {
        let keys = |(token, tls): (&str, bool)| Keys::new(Token::from(token), tls).unwrap();
        let (theirs, ours) = (keys(theirs), keys(ours));
        let fits = |claim: &LinkClaim| if claim.to == 3 { Ok(()) } else { Err("no".to_owned()) };
        let (here, there) = pair().await;
        let began = std::time::Instant::now();
        let met = tokio::join!(introduce(here, &theirs, CLAIM), challenge(there, &ours, fits));
        assert!(began.elapsed() < PATIENCE / 2, "one waited for the other");
        met
    }

    #[tokio::test]
    async fn both_sides_need_the_token() {
        for tls in [false, true] {
            let (introduced, claimed) = meet(("sesame", tls), ("sesame", tls)).await;
            assert_eq!(matches!(introduced.unwrap(), Stream::Tls(_)), tls);
            let (stream, claim) = claimed.unwrap();
            assert_eq!((matches!(stream, Stream::Tls(_)), claim.tls, claim.what.from), (tls, tls, 2));
        }
        let (introduced, claim) = meet(("sesame", false), ("mustard", false)).await;
        assert!(matches!(introduced, Err(HandshakeError::TokenRefused)));
        assert!(claim.is_none());
        // Within TLS it is who connects that finds out first.
        let (introduced, claim) = meet(("sesame", true), ("mustard", true)).await;
        assert!(matches!(introduced, Err(HandshakeError::Unproven)), "{introduced:?}");
        assert!(claim.is_none());
    }

    #[tokio::test]
    async fn tls_on_one_side_alone_is_told_on_both() {
        for theirs in [false, true] {
            let (introduced, claimed) = meet(("sesame", theirs), ("sesame", !theirs)).await;
            let error = introduced.unwrap_err();
            assert!(matches!(error, HandshakeError::Unlike { theirs: on } if on != theirs), "{error}");
            assert!(error.to_string().contains("COLLC_TLS=1"));
            let (_, claim) = claimed.unwrap();
            assert_eq!(claim.tls, theirs);
            // Only who knows the token is believed in this, too.
            let (_, claimed) = meet(("mustard", theirs), ("sesame", !theirs)).await;
            assert!(claimed.is_none());
        }
    }

    #[tokio::test]
    async fn who_says_in_the_clear_that_it_has_tls_is_not_let_in() {
        let keys = Keys::new(Token::from("sesame"), true).unwrap();
        let (mut here, there) = pair().await;
        let liar = async {
            let challenge: Challenge = read_message(&mut here, Limits::HANDSHAKE).await.unwrap();
            claim(&mut here, &keys, &challenge, CLAIM).await
        };
        let (told, claimed) = tokio::join!(liar, challenge(there, &keys, |_: &LinkClaim| Ok(())));
        assert!(matches!(told, Err(HandshakeError::NotHere(_))), "{told:?}");
        assert!(claimed.is_none());
    }

    #[tokio::test]
    async fn a_welcome_without_the_token_is_not_believed() {
        let keys = Keys::new(Token::from("sesame"), false).unwrap();
        let (here, mut there) = pair().await;
        let impostor = async {
            let challenge = Challenge { version: PROTOCOL_VERSION, nonce: [0; 16], tls: false };
            write_frame(&mut there, &challenge, &[]).await.unwrap();
            write_frame(&mut there, &Welcome::Come([7; 32]), &[]).await.unwrap();
        };
        let introduced = tokio::join!(introduce(here, &keys, CLAIM), impostor).0;
        assert!(matches!(introduced, Err(HandshakeError::Unproven)));
    }

    #[test]
    fn tls_is_not_had_without_a_token() {
        let error = Keys::new(Token::default(), true).unwrap_err();
        assert!(error.to_string().contains("COLLC_TOKEN"), "{error}");
    }
}
