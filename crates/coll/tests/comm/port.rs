//! A port for ranks to meet at, that nobody takes between the asking and the listening.

use std::net::TcpListener;
use std::sync::atomic::{AtomicU32, Ordering};

/// A free port below those that the system gives to outgoing connections, and another one each time in this process.
pub(crate) fn free_port() -> u16 {
    const FIRST: u32 = 12_000;
    const PORTS: u32 = 18_000;
    static DRAWN: AtomicU32 = AtomicU32::new(0);
    loop {
        let drawn = DRAWN.fetch_add(1, Ordering::Relaxed);
        assert!(drawn < PORTS, "there is a free port");
        // Test processes that run side by side start apart.
        let port = (FIRST + (std::process::id().wrapping_mul(61).wrapping_add(drawn)) % PORTS) as u16;
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}
