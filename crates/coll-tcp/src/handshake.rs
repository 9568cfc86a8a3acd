//! How two sides of a connection prove to each other that they know the job's token: a challenge, a claim, a welcome.
//!
//! Whoever accepts challenges first; whoever connects claims who it is and proves it; the acceptor's welcome carries
//! its own proof. The proofs cover what is claimed, so that none can be used for another rank, link or job.

use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::io::{AsyncRead, AsyncWrite};

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

/// Why a handshake failed, for the side that connected.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HandshakeError {
    #[error("protocol version {theirs}, not {PROTOCOL_VERSION}")]
    Version { theirs: u32 },
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

/// Answers the challenge of whoever accepted this connection. A claim of another version is still made, as the other
/// side has more ranks to tell of it.
pub(crate) async fn introduce<S, W>(stream: &mut S, token: &Token, what: W) -> Result<(), HandshakeError>
where
    S: AsyncRead + AsyncWrite + Unpin,
    W: Statement,
{
    let talk = async {
        let challenge: Challenge = read_message(stream, Limits::HANDSHAKE).await?;
        let nonce = token::nonce().map_err(FrameError::from)?;
        let statement = what.statement();
        let proof = token.prove(&[b"claim", &challenge.nonce, &nonce, statement.as_bytes()]);
        let claim = Claim { version: PROTOCOL_VERSION, nonce, proof, what };
        write_frame(stream, &claim, &[]).await.map_err(FrameError::from)?;
        if challenge.version != PROTOCOL_VERSION {
            return Err(HandshakeError::Version { theirs: challenge.version });
        }
        match read_message(stream, Limits::HANDSHAKE).await? {
            Welcome::Come(proof) => {
                let parts: [&[u8]; 4] = [b"welcome", &challenge.nonce, &nonce, statement.as_bytes()];
                if token.verify(&parts, &proof) { Ok(()) } else { Err(HandshakeError::Unproven) }
            }
            Welcome::TokenRefused => Err(HandshakeError::TokenRefused),
            Welcome::NotHere(why) => Err(HandshakeError::NotHere(why)),
        }
    };
    tokio::time::timeout(PATIENCE, talk).await.unwrap_or(Err(HandshakeError::Silent))
}

/// Challenges whoever connected. `fits` says why a claim is not for here. Answers with the claim if it is proved and
/// fits; a claim of another version is proved all the same, but gets no welcome.
pub(crate) async fn challenge<S, W>(
    stream: &mut S,
    token: &Token,
    fits: impl FnOnce(&W) -> Result<(), String>,
) -> Option<Claim<W>>
where
    S: AsyncRead + AsyncWrite + Unpin,
    W: Statement,
{
    let nonce: Nonce = token::nonce().ok()?;
    let talk = async {
        write_frame(stream, &Challenge { version: PROTOCOL_VERSION, nonce }, &[]).await.ok()?;
        let claim: Claim<W> = read_message(stream, Limits::HANDSHAKE).await.ok()?;
        let statement = claim.what.statement();
        if !token.verify(&[b"claim", &nonce, &claim.nonce, statement.as_bytes()], &claim.proof) {
            write_frame(stream, &Welcome::TokenRefused, &[]).await.ok()?;
            return None;
        }
        if claim.version != PROTOCOL_VERSION {
            return Some(claim);
        }
        if let Err(why) = fits(&claim.what) {
            write_frame(stream, &Welcome::NotHere(why), &[]).await.ok()?;
            return None;
        }
        let proof = token.prove(&[b"welcome", &nonce, &claim.nonce, statement.as_bytes()]);
        write_frame(stream, &Welcome::Come(proof), &[]).await.ok()?;
        Some(claim)
    };
    tokio::time::timeout(PATIENCE, talk).await.ok().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meet(theirs: &str, ours: &str) -> (Result<(), HandshakeError>, Option<Claim<LinkClaim>>) {
        let claim = LinkClaim { generation: 1, from: 2, to: 3, channel: 0 };
        let (theirs, ours) = (Token::from(theirs), Token::from(ours));
        let fits = |claim: &LinkClaim| if claim.to == 3 { Ok(()) } else { Err("no".to_owned()) };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(async {
            let (mut here, mut there) = tokio::io::duplex(1 << 16);
            tokio::join!(introduce(&mut here, &theirs, claim), challenge(&mut there, &ours, fits))
        })
    }

    #[test]
    fn both_sides_need_the_token() {
        let (introduced, claim) = meet("sesame", "sesame");
        introduced.unwrap();
        assert_eq!(claim.unwrap().what.from, 2);
        let (introduced, claim) = meet("sesame", "mustard");
        assert!(matches!(introduced, Err(HandshakeError::TokenRefused)));
        assert!(claim.is_none());
    }

    #[test]
    fn a_welcome_without_the_token_is_not_believed() {
        let claim = LinkClaim { generation: 1, from: 2, to: 3, channel: 0 };
        let token = Token::from("sesame");
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let introduced = runtime.block_on(async {
            let (mut here, mut there) = tokio::io::duplex(1 << 16);
            let impostor = async {
                let challenge = Challenge { version: PROTOCOL_VERSION, nonce: [0; 16] };
                write_frame(&mut there, &challenge, &[]).await.unwrap();
                write_frame(&mut there, &Welcome::Come([7; 32]), &[]).await.unwrap();
            };
            tokio::join!(introduce(&mut here, &token, claim), impostor).0
        });
        assert!(matches!(introduced, Err(HandshakeError::Unproven)));
    }
}
