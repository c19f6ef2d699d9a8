//! Finding the library and opening it with the dynamic linker, without a crate for it.

use std::env;
use std::ffi::{c_char, c_int, c_void, CStr, CString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::{Functions, LoadError, SONAME};

unsafe extern "C" {
    fn dlopen(file: *const c_char, mode: c_int) -> *mut c_void;
    fn dlsym(library: *mut c_void, name: *const c_char) -> *mut c_void;
    fn dlerror() -> *const c_char;
}

const RTLD_NOW: c_int = 2;

/// Opens the library where it is found first.
pub(crate) fn library() -> Result<Functions, LoadError> {
    if cfg!(target_env = "musl") {
        return Err(LoadError::Musl);
    }
    let set = |name| env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
    let named = set("A3S_LIB_DIR").or_else(|| set("A3S_LIB")); // the second is the name in other languages
    let looked = match &named {
        Some(path) if path.is_dir() => vec![path.join(SONAME)],
        Some(path) => vec![path.clone()],
        None => places(),
    };
    if let Some(path) = looked.iter().find(|path| path.is_file()) {
        // One file by one path: a second copy would be a second runtime.
        return open(&path.canonicalize().unwrap_or_else(|_| path.clone()));
    }
    match named {
        Some(_) => Err(LoadError::Missing { looked, named: true }),
        None => system(looked),
    }
}

/// Beside the program, and in the checkout that this crate was built in.
fn places() -> Vec<PathBuf> {
    let mut places = Vec::new();
    if let Some(dir) = env::current_exe().ok().and_then(|exe| exe.parent().map(Path::to_owned)) {
        places.push(dir.join(SONAME));
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
    if let (true, Ok(root)) = (root.join("go.mod").is_file(), root.canonicalize()) {
        places.push(root.join("build").join(SONAME));
    }
    places
}

/// Where the dynamic linker looks.
fn system(mut looked: Vec<PathBuf>) -> Result<Functions, LoadError> {
    let path = PathBuf::from(SONAME);
    match open(&path) {
        Err(LoadError::Unloadable { reason, .. }) if reason.contains("No such file") => {
            looked.push(PathBuf::from(format!("{SONAME} (where the dynamic linker looks)")));
            Err(LoadError::Missing { looked, named: false })
        }
        other => other,
    }
}

fn open(path: &Path) -> Result<Functions, LoadError> {
    let unloadable = |reason: String| LoadError::Unloadable { path: path.to_owned(), reason };
    let file = CString::new(path.as_os_str().as_bytes()).map_err(|e| unloadable(e.to_string()))?;
    // SAFETY: file is a C string; loading runs the library's constructors, which is what is asked for.
    let library = unsafe { dlopen(file.as_ptr(), RTLD_NOW) };
    if library.is_null() {
        return Err(unloadable(reason()));
    }
    let symbol = |name: &'static CStr| {
        // SAFETY: library is open and never closed, name is a C string.
        let address = unsafe { dlsym(library, name.as_ptr()) };
        let missing = || LoadError::Symbol { path: path.to_owned(), name: name.to_string_lossy().into_owned() };
        if address.is_null() {
            Err(missing())
        } else {
            Ok(address)
        }
    };
    // SAFETY: a library of this name exports these functions; their types are compared below, by the ABI version.
    unsafe { Functions::find(symbol) }
}

/// The dynamic linker's words for what went wrong on this thread.
fn reason() -> String {
    // SAFETY: dlerror gives null or a C string that lives until this thread's next dl call.
    let text = unsafe { dlerror() };
    if text.is_null() {
        return "the dynamic linker does not say why".to_owned();
    }
    // SAFETY: as above, and it is not null.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}
