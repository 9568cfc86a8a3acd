//! A connection while it is attended to by tokio: bare, or within TLS. What runs on both does not know which it has.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use rustls::Connection;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::TlsStream;

/// A connection, bare or within TLS.
#[derive(Debug)]
pub(crate) enum Stream {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

impl Stream {
    /// The socket below.
    pub(crate) fn socket(&self) -> &TcpStream {
        match self {
            Stream::Plain(stream) => stream,
            Stream::Tls(stream) => stream.get_ref().0,
        }
    }

    /// The socket, without tokio, and the state of TLS if it is spoken.
    pub(crate) fn into_parts(self) -> io::Result<(std::net::TcpStream, Option<Box<Connection>>)> {
        match self {
            Stream::Plain(stream) => Ok((stream.into_std()?, None)),
            Stream::Tls(stream) => {
                let (stream, session) = match *stream {
                    TlsStream::Client(stream) => {
                        let (stream, session) = stream.into_inner();
                        (stream, Connection::from(session))
                    }
                    TlsStream::Server(stream) => {
                        let (stream, session) = stream.into_inner();
                        (stream, Connection::from(session))
                    }
                };
                Ok((stream.into_std()?, Some(Box::new(session))))
            }
        }
    }
}

impl AsyncRead for Stream {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Stream::Plain(stream) => Pin::new(stream).poll_read(context, into),
            Stream::Tls(stream) => Pin::new(stream.as_mut()).poll_read(context, into),
        }
    }
}

impl AsyncWrite for Stream {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Stream::Plain(stream) => Pin::new(stream).poll_write(context, bytes),
            Stream::Tls(stream) => Pin::new(stream.as_mut()).poll_write(context, bytes),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Stream::Plain(stream) => Pin::new(stream).poll_flush(context),
            Stream::Tls(stream) => Pin::new(stream.as_mut()).poll_flush(context),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Stream::Plain(stream) => Pin::new(stream).poll_shutdown(context),
            Stream::Tls(stream) => Pin::new(stream.as_mut()).poll_shutdown(context),
        }
    }
}
