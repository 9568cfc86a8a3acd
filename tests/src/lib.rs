//! Shared pieces of the suites: finding fixtures and comparing them with what came out.
