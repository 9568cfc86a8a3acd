//! The TCP transport: ranks find each other, connect, move bytes, and learn of each other's end.
//!
//! A [`Rendezvous`] server, hosted by a launcher or by one of the ranks, gathers the ranks of a job. Each rank calls
//! [`join`](join()) and gets a [`TcpTransport`], which moves bytes for `coll-exec`. Two kinds of connections exist:
//!
//! - The **control connection**, one from each rank to the server: registration, comparison of what the ranks are
//!   about to do, small exchanges, what the ranks are doing when one of them stalls, and the news that a rank gave up or
//!   is gone. A background thread of each rank attends to it with tokio, which no other crate knows.
//! - **Links**, one for each pair of peers and channel that a plan uses, made when it first needs them: plain
//!   non-blocking sockets, driven by the calling thread. No thread stands between the executor and the kernel.
//!
//! Either is bare or within TLS ([`JoinOptions::tls`]). Every connection proves that it belongs to the job before it is heard. Nothing read from the network is trusted
//! for a length, and nothing waits without a time limit. Whoever waits in vain is told who is to blame.
//!
//! How to read it, from the bottom: `token`, `tls`, `stream` and `wire` (how and what is said), `call` and `inquiry` (what ranks do, and what the
//! server makes of it), `roster` and `job` (what the server decides: pure state, no sockets), `server`; then `options`,
//! `address`, `dial`, `accept`, `links`, `join` (how a rank starts and connects), `control` and `board` (its two
//! threads), `session` (TLS on a link), `wires`, `spin`, `transport` and `stall` (how it runs, and what it does when nothing moves).

mod accept;
mod address;
mod board;
mod call;
mod control;
mod desk;
mod dial;
mod error;
#[cfg(test)]
mod fuzz;
mod handshake;
mod host;
mod inquiry;
mod interfaces;
mod job;
mod join;
mod links;
mod options;
mod roster;
mod server;
mod session;
mod socket;
mod spin;
mod stall;
mod stream;
mod tls;
mod token;
mod transport;
mod wire;
mod wires;

pub use board::Watch;
pub use call::Call;
pub use error::{Attempt, ConnectError, Disagreement, LinkFailure, Opinion, RankList, StartError};
pub use join::join;
pub use options::JoinOptions;
pub use server::Rendezvous;
pub use token::Token;
pub use transport::{Aborter, Counters, TcpTransport};
pub use wire::{BLOB_LIMIT_BYTES, PROTOCOL_VERSION};
