//! Image folders: from directories and archives, good ones and bad ones.

#![cfg(feature = "image")]

mod archives;
mod damage;
mod directories;
mod images;
mod links;
mod make;
mod real;
