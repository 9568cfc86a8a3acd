//! A model.
