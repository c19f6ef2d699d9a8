//! The table of functions against the public header, and against the library that was built.

use std::path::Path;

use liba3s_sys::Functions;

fn root() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..")
}

/// Rust's name for a C type.
fn rust(c: &str) -> &str {
    match c {
        "uint32_t" => "u32",
        "int32_t" => "i32",
        "int64_t" => "i64",
        "uint64_t" => "u64",
        "size_t" | "uintptr_t" => "usize",
        "const char *" => "*const c_char",
        "char *" => "*mut c_char",
        "a3s_buf *" => "*mut a3s_buf",
        "a3s_handle *" => "*mut a3s_handle",
        "uint64_t *" => "*mut u64",
        "size_t *" => "*mut usize",
        other => other,
    }
}

/// The prototypes of the header as (name, Rust signature).
fn prototypes(header: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for line in header.lines().filter(|l| l.ends_with(");") && l.contains("a3s_") && !l.starts_with([' ', '*', '#', '\t'])) {
        if line.starts_with("typedef") {
            continue;
        }
        let (head, rest) = line.split_once('(').expect("a prototype");
        let at = head.find("a3s_").filter(|_| !head.starts_with("a3s_status") && !head.starts_with("a3s_handle"));
        let at = at.unwrap_or_else(|| head.rfind("a3s_").expect("a name"));
        let (result, name) = (head[..at].trim(), head[at..].trim());
        let params = rest.trim_end_matches(");");
        let params: Vec<String> = if params == "void" { vec![] } else { params.split(", ").map(param).collect() };
        let result = if result == "void" { String::new() } else { format!(" -> {}", rust(result)) };
        found.push((name.to_owned(), format!("({}){result}", params.join(", "))));
    }
    found
}

fn param(c: &str) -> String {
    let at = c.rfind([' ', '*']).expect("a type and a name") + 1;
    let (kind, name) = (c[..at].trim(), &c[at..]);
    format!("{}: {}", if name == "fn" { "r#fn" } else { name }, rust(kind))
}

#[test]
fn the_table_is_the_header() {
    let header = std::fs::read_to_string(root().join("include/a3s.h")).expect("the header");
    let want = prototypes(&header);
    assert!(want.len() >= 27, "{want:?}");
    let got: Vec<(String, String)> = Functions::SIGNATURES.iter().map(|(name, signature)| ((*name).to_owned(), plain(signature))).collect();
    assert_eq!(got, want);
}

/// A signature as it is printed by the macro, without its odd blanks.
fn plain(signature: &str) -> String {
    let joined = signature.split_whitespace().collect::<Vec<_>>().join(" ");
    joined
        .replace("( ", "(")
        .replace(" )", ")")
        .replace(" : ", ": ")
        .replace(" ,", ",")
        .replace("* const", "*const")
        .replace("* mut", "*mut")
}

#[test]
fn the_library_fits() {
    let library = liba3s_sys::load().expect("the library; run ./build.sh build");
    assert!(std::ptr::eq(library, liba3s_sys::load().expect("the same")));
    // SAFETY: takes nothing, gives a number.
    let version = unsafe { (library.a3s_abi_version)() };
    assert_eq!(version >> 16, liba3s_sys::A3S_ABI_VERSION >> 16);
    // SAFETY: takes nothing, gives a static C string.
    let info = unsafe { std::ffi::CStr::from_ptr((library.a3s_build_info)()) };
    let info = info.to_str().expect("text");
    assert!(info.contains(liba3s_sys::A3S_VERSION), "{info}");
    // SAFETY: takes a number, gives a static C string.
    let name = unsafe { std::ffi::CStr::from_ptr((library.a3s_status_name)(liba3s_sys::A3S_E_TIMEOUT)) };
    assert_eq!(name.to_str(), Ok("E_TIMEOUT"));
}
