//! Sockets as this crate wants them: listeners with room for everyone at once, connections that notice a dead
//! machine.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};
use std::time::Duration;

use socket2::{Domain, Protocol, SockRef, Socket, TcpKeepalive, Type};

use crate::error::StartError;

/// How many connections may wait to be accepted; the system cuts it to what it allows. All ranks come at once.
const BACKLOG: i32 = 4096;

/// Listens at an address. Its port may be one that an ended process just had.
pub(crate) fn listen(address: SocketAddr) -> Result<TcpListener, StartError> {
    try_listen(address).map_err(|error| match error.kind() {
        std::io::ErrorKind::AddrInUse => StartError::PortTaken { address },
        _ => StartError::Listen { address, detail: error.to_string() },
    })
}

/// Listens at any address of this machine, of both families if it has them.
pub(crate) fn listen_anywhere() -> Result<TcpListener, StartError> {
    let both = SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0));
    listen(both).or_else(|_| listen(SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0))))
}

fn try_listen(address: SocketAddr) -> std::io::Result<TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    if let SocketAddr::V6(v6) = address {
        socket.set_only_v6(!v6.ip().is_unspecified())?;
    }
    // A port of 0 must be free, not merely free to share: so sharing is allowed only afterwards, for whoever binds it
    // next, while the last connections to it fade out.
    socket.set_reuse_address(address.port() != 0)?;
    socket.bind(&address.into())?;
    socket.set_reuse_address(true)?;
    socket.listen(BACKLOG)?;
    socket.set_nonblocking(true)?;
    Ok(socket.into())
}

/// Sends what is written at once, and asks an idle peer for a sign of life, so that a machine that went dark (and
/// firewalls that forget idle connections) are noticed within half a minute.
pub(crate) fn prepare(stream: &tokio::net::TcpStream) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let keepalive = TcpKeepalive::new()
        .with_time(Duration::from_secs(10))
        .with_interval(Duration::from_secs(5))
        .with_retries(3);
    SockRef::from(stream).set_tcp_keepalive(&keepalive)
}

/// Sets both buffers of a link. Left alone, the system sizes them as it learns the path.
pub(crate) fn set_buffers(stream: &tokio::net::TcpStream, size_bytes: usize) -> std::io::Result<()> {
    let socket = SockRef::from(stream);
    socket.set_send_buffer_size(size_bytes)?;
    socket.set_recv_buffer_size(size_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_link_sends_at_once_and_notices_an_idle_peer_s_end() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let stream = tokio::net::TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        prepare(&stream).unwrap();
        let socket = SockRef::from(&stream);
        assert!(socket.keepalive().unwrap() && socket.tcp_nodelay().unwrap());
        let noticed = socket.tcp_keepalive_time().unwrap()
            + socket.tcp_keepalive_interval().unwrap() * socket.tcp_keepalive_retries().unwrap();
        assert_eq!(noticed, Duration::from_secs(25));
    }
}
