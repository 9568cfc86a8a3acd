//! The job's token, and how a connection proves that it knows it without saying it.
//!
//! Both sides draw a nonce; each answers the other's with HMAC-SHA-256 (RFC 2104) keyed by the token, over a label
//! that differs by direction and purpose, so that an answer is good for one connection and one claim only. This
//! keeps strangers and other jobs out. It does not hide the data: TLS does ([`crate::tls`]), whose key is made from the
//! token as well.

use std::fmt;
use std::fs::File;
use std::io::{self, Read};

use sha2::{Digest, Sha256};

/// What one side draws and the other must answer.
pub(crate) type Nonce = [u8; 16];
/// The answer.
pub(crate) type Proof = [u8; 32];

/// The secret that the ranks of a job share. Its text is never printed.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Token(String);

impl Token {
    /// Draws 128 random bits. A launcher does this once and hands the text to each rank.
    pub fn random() -> io::Result<Token> {
        let bytes = random_bytes::<16>()?;
        Ok(Token(bytes.iter().map(|byte| format!("{byte:02x}")).collect()))
    }

    /// The text, to be handed to the ranks and to nobody else.
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// The proof for a list of parts. Each part's length is part of what is proved, so parts cannot run together.
    pub(crate) fn prove(&self, parts: &[&[u8]]) -> Proof {
        let mut message = Vec::new();
        for part in parts {
            message.extend_from_slice(&(part.len() as u64).to_le_bytes());
            message.extend_from_slice(part);
        }
        hmac_sha256(self.0.as_bytes(), &message)
    }

    /// Whether `proof` is the proof for `parts`. Takes as long whether the first byte differs or the last.
    pub(crate) fn verify(&self, parts: &[&[u8]], proof: &Proof) -> bool {
        let right = self.prove(parts);
        let differing = right.iter().zip(proof).fold(0, |bits, (a, b)| bits | (a ^ b));
        differing == 0
    }
}

impl From<&str> for Token {
    fn from(text: &str) -> Token {
        Token(text.to_owned())
    }
}

impl From<String> for Token {
    fn from(text: String) -> Token {
        Token(text)
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(..)")
    }
}

/// Draws a nonce from the system's source of randomness.
pub(crate) fn nonce() -> io::Result<Nonce> {
    random_bytes()
}

fn random_bytes<const N: usize>() -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes)
}

fn hmac_sha256(key: &[u8], message: &[u8]) -> Proof {
    const BLOCK_BYTES: usize = 64;
    let mut block = [0u8; BLOCK_BYTES];
    if key.len() > BLOCK_BYTES {
        block[..32].copy_from_slice(&Sha256::digest(key));
    } else {
        block[..key.len()].copy_from_slice(key);
    }
    let inner = Sha256::new().chain_update(block.map(|byte| byte ^ 0x36)).chain_update(message).finalize();
    let outer = Sha256::new().chain_update(block.map(|byte| byte ^ 0x5c)).chain_update(inner).finalize();
    outer.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    #[test]
    fn hmac_matches_the_published_vectors() {
        // RFC 4231, test cases 2 and 6 (a key longer than a block).
        assert_eq!(
            hex(&hmac_sha256(b"Jefe", b"what do ya want for nothing?")),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"
        );
        assert_eq!(
            hex(&hmac_sha256(&[0xaa; 131], b"Test Using Larger Than Block-Size Key - Hash Key First")),
            "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54"
        );
    }

    #[test]
    fn a_proof_is_good_for_its_own_parts_and_token_only() {
        let token = Token::from("one");
        let proof = token.prove(&[b"ab", b"c"]);
        assert!(token.verify(&[b"ab", b"c"], &proof));
        assert!(!token.verify(&[b"a", b"bc"], &proof));
        assert!(!Token::from("two").verify(&[b"ab", b"c"], &proof));
    }

    #[test]
    fn a_token_does_not_print_itself() {
        assert_eq!(format!("{:?}", Token::from("sesame")), "Token(..)");
        assert_ne!(Token::random().unwrap(), Token::random().unwrap());
    }
}
