//! Plans of the library on networks: closed forms, what follows from a change of the network, and that every run ends.

mod closed;
mod ends;
mod joined;
mod library;
mod network;
mod places;
mod reports;
mod responds;
