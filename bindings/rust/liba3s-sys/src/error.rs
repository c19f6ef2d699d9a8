//! Why the library could not be loaded.

use std::fmt;
use std::path::PathBuf;

use crate::SONAME;

/// Why the library could not be loaded, in words that say what to do.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum LoadError {
    /// There is no such file in any of the places.
    Missing {
        /// What was looked for, in order.
        looked: Vec<PathBuf>,
        /// Whether `A3S_LIB_DIR` named the only place.
        named: bool,
    },
    /// The file is there, and the dynamic linker refuses it.
    Unloadable {
        /// The file.
        path: PathBuf,
        /// The dynamic linker's words.
        reason: String,
    },
    /// The library lacks a function: it is another one, or older than this crate.
    Symbol {
        /// The file.
        path: PathBuf,
        /// The function.
        name: String,
    },
    /// The library is of another major version, or older than this crate.
    Abi {
        /// `A3S_ABI_VERSION` of this crate.
        wanted: u32,
        /// That of the library.
        found: u32,
    },
    /// The program is linked with musl, into which a Go library cannot be loaded.
    Musl,
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing { looked, named } => {
                let hint = if *named { "A3S_LIB_DIR names no file" } else { "set A3S_LIB_DIR, put it beside the program, or run ./build.sh build" };
                write!(f, "the native library {SONAME} was not found ({hint}); looked for:")?;
                looked.iter().try_for_each(|path| write!(f, "\n  {}", path.display()))
            }
            Self::Unloadable { path, reason } => write!(f, "{} cannot be loaded: {reason}", path.display()),
            Self::Symbol { path, name } => {
                write!(f, "{} has no function {name}: it is not {SONAME}, or it is older than this crate", path.display())
            }
            Self::Abi { wanted, found } => {
                let (w, g) = ((wanted >> 16, wanted & 0xffff), (found >> 16, found & 0xffff));
                write!(f, "the native library has ABI {}.{} and this crate needs {}.{} of the same major version: use the two of one release", g.0, g.1, w.0, w.1)
            }
            Self::Musl => f.write_str(
                "this program is linked with musl, which cannot load the native library (it needs glibc 2.34 or newer): build for a -gnu target",
            ),
        }
    }
}

impl std::error::Error for LoadError {}
