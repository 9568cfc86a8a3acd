//! Connecting to one of several addresses, of which some may lead nowhere.
//!
//! An address that does not answer must not cost the ones behind it their time: each next address is tried as soon as
//! the one before has failed, or has not answered within [`HEAD_START`] (as RFC 8305 advises). Who is first to connect
//! is heard out before the next one is, so that the other side never holds two connections for the same link.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::task::JoinSet;

use crate::socket;

/// How long an address has before the next one is tried beside it.
const HEAD_START: Duration = Duration::from_millis(250);

/// How long an address may take: a lost packet is tried again soon.
const PATIENCE: Duration = Duration::from_secs(3);

/// Connections to addresses, in the order in which they come about.
pub(crate) struct Race {
    ahead: VecDeque<SocketAddr>,
    running: JoinSet<(SocketAddr, std::io::Result<TcpStream>)>,
    buffer_bytes: Option<usize>,
}

impl Race {
    pub(crate) fn new(addresses: &[SocketAddr], buffer_bytes: Option<usize>) -> Race {
        Race { ahead: addresses.iter().copied().collect(), running: JoinSet::new(), buffer_bytes }
    }

    /// The next address that has connected or failed; nothing once all have.
    pub(crate) async fn next(&mut self) -> Option<(SocketAddr, std::io::Result<TcpStream>)> {
        loop {
            if self.running.is_empty() {
                self.start_next()?;
            }
            tokio::select! {
                Some(outcome) = self.running.join_next() => match outcome {
                    Ok(outcome) => {
                        if outcome.1.is_err() {
                            self.start_next();
                        }
                        return Some(outcome);
                    }
                    // A panic of a task that only connects: none of its own doing is known.
                    Err(_) => continue,
                },
                () = tokio::time::sleep(HEAD_START), if !self.ahead.is_empty() => {
                    self.start_next();
                }
            }
        }
    }

    fn start_next(&mut self) -> Option<()> {
        let (address, buffer_bytes) = (self.ahead.pop_front()?, self.buffer_bytes);
        self.running.spawn(async move { (address, connect_to(address, buffer_bytes).await) });
        Some(())
    }
}

/// Connects to an address, once.
async fn connect_to(address: SocketAddr, buffer_bytes: Option<usize>) -> std::io::Result<TcpStream> {
    let stream = tokio::time::timeout(PATIENCE, TcpStream::connect(address))
        .await
        .map_err(|_| std::io::Error::other(format!("no answer in {} s", PATIENCE.as_secs())))??;
    // Towards a free port of this machine, the system may pick that same port for this end, and connect it to itself.
    if stream.local_addr()? == stream.peer_addr()? {
        return Err(std::io::ErrorKind::ConnectionRefused.into());
    }
    socket::prepare(&stream)?;
    if let Some(size_bytes) = buffer_bytes {
        socket::set_buffers(&stream, size_bytes)?;
    }
    Ok(stream)
}

/// Pauses between tries, from 10 ms doubling to half a second.
pub(crate) struct Backoff(Duration);

impl Backoff {
    pub(crate) fn new() -> Backoff {
        Backoff(Duration::from_millis(10))
    }

    /// How long the next pause is.
    pub(crate) fn next(&self) -> Duration {
        self.0
    }

    pub(crate) async fn wait(&mut self) {
        tokio::time::sleep(self.0).await;
        self.0 = (self.0 * 2).min(Duration::from_millis(500));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::net::TcpListener;

    /// A listener whose queue is full: the system drops what more would come, as a firewall does.
    async fn deaf() -> (Vec<TcpStream>, socket2::Socket, SocketAddr) {
        let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
        socket.bind(&SocketAddr::from(([127, 0, 0, 1], 0)).into()).unwrap();
        socket.listen(0).unwrap();
        let address = socket.local_addr().unwrap().as_socket().unwrap();
        let mut held = Vec::new();
        while let Ok(Ok(stream)) =
            tokio::time::timeout(Duration::from_millis(100), TcpStream::connect(address)).await
        {
            held.push(stream);
        }
        (held, socket, address)
    }

    #[tokio::test]
    async fn addresses_that_do_not_answer_cost_the_next_ones_little() {
        let (_held, _socket, deaf) = deaf().await;
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let good = listener.local_addr().unwrap();
        let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let began = tokio::time::Instant::now();
        let mut race = Race::new(&[deaf, closed, deaf, good], None);
        let (address, outcome) = race.next().await.unwrap();
        assert!(address == closed && outcome.is_err());
        let (address, outcome) = race.next().await.unwrap();
        assert!(address == good && outcome.is_ok());
        assert!(began.elapsed() < Duration::from_secs(2), "it took {:?}", began.elapsed());
    }
}
