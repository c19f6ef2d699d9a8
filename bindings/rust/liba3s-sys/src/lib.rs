//! The C functions of libA3S.
//!
//! [`load`] opens the library and gives its [`Functions`]; what each function does, who owns
//! what, and which thread may call it is said in `a3s.h` and repeated at the table's fields.
//! Everything here is `unsafe` to call; the crate `a3s-code-core` is the safe way in.
#![allow(non_camel_case_types)]

#[cfg(not(target_os = "linux"))]
compile_error!("libA3S is built for Linux with glibc 2.34 or newer");

use std::ffi::c_char;

mod error;
#[cfg(not(feature = "link"))]
mod open;

pub use error::LoadError;

/// A text of the library: UTF-8, `len` bytes, then a NUL. Free it with `a3s_buf_free`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct a3s_buf {
    /// The first byte, or null.
    pub ptr: *mut c_char,
    /// Bytes without the NUL.
    pub len: usize,
}

/// Receives a batch of events: user data, one JSON array, its length.
pub type a3s_event_fn = Option<unsafe extern "C" fn(user_data: usize, json_array: *const c_char, len: usize)>;

/// Ends user data; called exactly once.
pub type a3s_free_fn = Option<unsafe extern "C" fn(user_data: usize)>;

/// As a length: the text ends with a NUL.
pub const A3S_NTS: usize = usize::MAX;

/// The file that is opened.
pub const SONAME: &str = "liba3s.so.1";

/// Makes the table of functions of its list, and how it is filled.
macro_rules! table {
    ($($(#[$doc:meta])* fn $name:ident($($arg:ident: $type:ty),*) $(-> $result:ty)?;)*) => {
        /// The functions of the library that is loaded, by their names in `a3s.h`.
        #[derive(Clone, Copy, Debug)]
        pub struct Functions {
            $($(#[$doc])* pub $name: unsafe extern "C" fn($($arg: $type),*) $(-> $result)?,)*
        }

        impl Functions {
            /// Name and Rust signature of every function, in the order of the header.
            pub const SIGNATURES: &'static [(&'static str, &'static str)] = &[
                $((stringify!($name), stringify!(($($arg: $type),*) $(-> $result)?)),)*
            ];

            /// Asks `symbol` for the address of every function.
            ///
            /// # Safety
            /// The addresses must be those of the functions of `a3s.h`.
            #[cfg(not(feature = "link"))]
            pub(crate) unsafe fn find<E>(symbol: impl Fn(&'static std::ffi::CStr) -> Result<*mut std::ffi::c_void, E>) -> Result<Self, E> {
                Ok(Self {
                    $($name: {
                        let name = match std::ffi::CStr::from_bytes_with_nul(concat!(stringify!($name), "\0").as_bytes()) {
                            Ok(name) => name,
                            Err(_) => unreachable!(),
                        };
                        let address = symbol(name)?;
                        // SAFETY: the caller vouches for the address, and the types come from the header's own source.
                        unsafe { std::mem::transmute::<*mut std::ffi::c_void, unsafe extern "C" fn($($type),*) $(-> $result)?>(address) }
                    },)*
                })
            }

            #[cfg(feature = "link")]
            pub(crate) fn linked() -> Self {
                unsafe extern "C" {
                    $(fn $name($($arg: $type),*) $(-> $result)?;)*
                }
                Self { $($name,)* }
            }
        }
    };
}

// The table must stand behind its macro.
#[rustfmt::skip]
mod generated;

pub use generated::*;

/// The library of this process, opened and checked at the first call.
///
/// A failure is not kept: the next call tries again. In a child that was forked after the
/// library was loaded this succeeds, and every function answers `A3S_E_FORKED`.
///
/// # Errors
/// [`LoadError`] says where the library was looked for, or what does not fit.
pub fn load() -> Result<&'static Functions, LoadError> {
    static LOADED: std::sync::OnceLock<Functions> = std::sync::OnceLock::new();
    if let Some(functions) = LOADED.get() {
        return Ok(functions);
    }
    let functions = functions()?;
    check(&functions)?;
    // Two threads may both have opened it: the dynamic linker gave them the same library.
    Ok(LOADED.get_or_init(|| functions))
}

#[cfg(not(feature = "link"))]
fn functions() -> Result<Functions, LoadError> {
    open::library()
}

#[cfg(feature = "link")]
fn functions() -> Result<Functions, LoadError> {
    Ok(Functions::linked())
}

/// Compares the version this crate was made for with the library's.
fn check(functions: &Functions) -> Result<(), LoadError> {
    // SAFETY: both functions take and give numbers only and work in every state of the library.
    let (status, found) = unsafe { ((functions.a3s_abi_check)(A3S_ABI_VERSION), (functions.a3s_abi_version)()) };
    if status == A3S_OK {
        return Ok(());
    }
    Err(LoadError::Abi { wanted: A3S_ABI_VERSION, found })
}
