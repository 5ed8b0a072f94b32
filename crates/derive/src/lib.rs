//! Derive macros of pinfeed.
