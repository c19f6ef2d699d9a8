//! Without the feature `link` there is nothing to do. With it: where the library is.

use std::env;
use std::path::{Path, PathBuf};

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-env-changed=A3S_LIB_DIR");
    if env::var_os("CARGO_FEATURE_LINK").is_none() {
        return;
    }
    println!("cargo:rustc-link-lib=dylib=a3s");
    if let Some(dir) = folder() {
        println!("cargo:rustc-link-search=native={}", dir.display());
        // Reaches this crate's own tests only; programs set their own path or install the library.
        println!("cargo:rustc-link-arg=-Wl,-rpath,{}", dir.display());
        println!("cargo:libdir={}", dir.display());
    }
}

/// The folder named by `A3S_LIB_DIR`, or the `build/` of the checkout; else the linker knows.
fn folder() -> Option<PathBuf> {
    if let Some(dir) = env::var_os("A3S_LIB_DIR") {
        return Some(PathBuf::from(dir));
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
    let built = root.join("build/liba3s.so").exists() && root.join("go.mod").exists();
    built.then(|| root.join("build")).and_then(|dir| dir.canonicalize().ok())
}
