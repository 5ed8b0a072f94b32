//! The binary, run as a user runs it: its exit code, its figures, its words.

mod data;
mod output;
mod refusals;
mod report;
mod run;
