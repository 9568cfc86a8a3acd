//! What carries messages to ranks of other machines, as a porter needs it.

use coll_exec::{Fault, Interest, Link, Transport};
use coll_tcp::TcpTransport;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::Exchange;

/// A transport that a porter can share its time between with a device.
///
/// Of [`Transport`] it uses what moves bytes; a porter never waits for links alone, so it rests.
pub trait Network: Transport + Send {
    /// Sleeps until a link may do what is asked of it, but no longer than `most`, which is no fault. Time counts towards
    /// the limit after which a rank is late only if there are interests: without any, nobody is waited for.
    ///
    /// # Errors
    /// A rank is lost or late, or one has given up.
    fn rest(&mut self, interests: &[Interest], most: Duration) -> Result<(), Fault>;

    /// Tells all ranks that this one gives up, and why.
    fn give_up(&mut self, reason: &str);
}

/// A [`TcpTransport`] for [`Shared`](crate::Shared): it carries messages between machines, and tells all ranks the few bytes by
/// which a call is made ready. Clones are of one transport.
#[derive(Clone, Debug)]
pub struct OverTcp(Arc<Mutex<TcpTransport>>);

impl OverTcp {
    /// Takes a transport that is connected on every channel of the plans that will run, or will be by [`OverTcp::connect`].
    pub fn new(transport: TcpTransport) -> OverTcp {
        OverTcp(Arc::new(Mutex::new(transport)))
    }

    /// Makes links that are not there yet; the ranks at their other ends do so too.
    ///
    /// # Errors
    /// A rank does not come, or cannot be reached.
    pub fn connect(&self, links: &[Link]) -> Result<(), coll_tcp::ConnectError> {
        self.transport().connect(links)
    }

    /// From now on, to sleep for `limit` in all without a byte moving is a fault.
    pub fn begin(&self, limit: Duration) {
        self.transport().begin(limit);
    }

    /// Leaves in good order, once nothing else holds the transport: drop the calls and the rank before. Says whether it did.
    pub fn shutdown(self) -> bool {
        let transport = Arc::into_inner(self.0);
        let transport = transport.map(|held| held.into_inner().unwrap_or_else(PoisonError::into_inner));
        transport.map(TcpTransport::shutdown).is_some()
    }

    fn transport(&self) -> MutexGuard<'_, TcpTransport> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Transport for OverTcp {
    fn try_send(&mut self, link: Link, parts: &[&[u8]]) -> Result<usize, Fault> {
        self.transport().try_send(link, parts)
    }

    fn try_recv(&mut self, link: Link, into: &mut [u8]) -> Result<usize, Fault> {
        self.transport().try_recv(link, into)
    }

    fn wait(&mut self, interests: &[Interest]) -> Result<(), Fault> {
        self.transport().wait(interests)
    }
}

impl Network for OverTcp {
    fn rest(&mut self, interests: &[Interest], most: Duration) -> Result<(), Fault> {
        let mut transport = self.transport();
        if interests.is_empty() {
            transport.progressed();
        }
        transport.wait_for(interests, most).map(|_| ())
    }

    fn give_up(&mut self, reason: &str) {
        self.transport().abort(reason);
    }
}

impl Exchange for OverTcp {
    fn exchange(&mut self, bytes: Vec<u8>) -> Result<Vec<Vec<u8>>, String> {
        self.transport().exchange(bytes).map_err(|fault| fault.to_string())
    }
}
