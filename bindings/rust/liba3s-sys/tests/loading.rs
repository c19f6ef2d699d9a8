//! What is said when the library is not there or does not fit. Each case is a process of its own,
//! since a process loads one library.
#![cfg(not(feature = "link"))]

use std::path::{Path, PathBuf};
use std::process::Command;

use liba3s_sys::{Functions, LoadError, A3S_ABI_VERSION};

/// The child: loads the library and prints what came of it.
#[test]
fn child() {
    if std::env::var_os("A3S_TEST_CHILD").is_none() {
        return;
    }
    match liba3s_sys::load() {
        Ok(_) => println!("loaded"),
        Err(err) => {
            let again = liba3s_sys::load().expect_err("a failure is not kept, and fails again");
            assert_eq!(err, again);
            println!("{err:?}\n{err}");
        }
    }
}

fn load(variables: &[(&str, &Path)]) -> String {
    let me = std::env::current_exe().expect("this test");
    let mut command = Command::new(me);
    command.args(["--exact", "child", "--nocapture"]).env("A3S_TEST_CHILD", "1").env_remove("A3S_LIB").env_remove("A3S_LIB_DIR");
    command.envs(variables.iter().copied());
    let out = command.output().expect("the child");
    assert!(out.status.success(), "{out:?}");
    String::from_utf8(out.stdout).expect("text")
}

/// A folder of this test's own.
fn folder(name: &str) -> PathBuf {
    let dir = std::env::temp_dir().join(format!("a3s-sys-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&dir).expect("a folder");
    dir
}

/// Builds a library with some functions, each of which gives a number.
fn fake(dir: &Path, functions: &[(&str, u32)]) {
    let source: String = functions.iter().map(|(name, number)| format!("unsigned {name}(void) {{ return {number}u; }}\n")).collect();
    std::fs::write(dir.join("fake.c"), source).expect("the source");
    let built =
        Command::new("cc").args(["-shared", "-fPIC", "-o"]).arg(dir.join("liba3s.so.1")).arg(dir.join("fake.c")).status().expect("cc");
    assert!(built.success());
}

#[test]
fn it_is_found_where_it_was_built() {
    assert!(load(&[]).contains("loaded"));
    let build = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../build");
    for name in ["A3S_LIB_DIR", "A3S_LIB"] {
        assert!(load(&[(name, &build)]).contains("loaded"), "{name}: a folder");
        assert!(load(&[(name, &build.join("liba3s.so.1"))]).contains("loaded"), "{name}: a file");
    }
}

#[test]
fn a_missing_library_is_named() {
    let dir = folder("missing");
    let said = load(&[("A3S_LIB_DIR", &dir)]);
    assert!(
        said.contains("Missing")
            && said.contains(&*dir.join("liba3s.so.1").to_string_lossy())
            && said.contains("A3S_LIB_DIR names no file"),
        "{said}"
    );
    std::fs::remove_dir_all(dir).expect("it was there");
}

#[test]
fn a_file_that_is_no_library_is_refused() {
    let dir = folder("text");
    std::fs::write(dir.join("liba3s.so.1"), "not a library").expect("a file");
    let said = load(&[("A3S_LIB_DIR", &dir)]);
    assert!(said.contains("Unloadable") && said.contains("cannot be loaded"), "{said}");
    std::fs::remove_dir_all(dir).expect("it was there");
}

#[test]
fn a_library_without_a_function_is_refused() {
    let dir = folder("symbol");
    fake(&dir, &[("a3s_abi_version", A3S_ABI_VERSION), ("a3s_abi_check", 0)]);
    let said = load(&[("A3S_LIB_DIR", &dir)]);
    assert!(said.contains("Symbol") && said.contains("has no function a3s_build_info"), "{said}");
    std::fs::remove_dir_all(dir).expect("it was there");
}

#[test]
fn a_library_of_another_version_is_refused() {
    let dir = folder("abi");
    let functions: Vec<(&str, u32)> = Functions::SIGNATURES
        .iter()
        .map(|(name, _)| match *name {
            "a3s_abi_version" => (*name, 2 << 16),
            "a3s_abi_check" => (*name, liba3s_sys::A3S_E_ABI as u32),
            _ => (*name, 0),
        })
        .collect();
    fake(&dir, &functions);
    let said = load(&[("A3S_LIB_DIR", &dir)]);
    assert!(said.contains("Abi") && said.contains("has ABI 2.0 and this crate needs 1."), "{said}");
    std::fs::remove_dir_all(dir).expect("it was there");
}

/// On musl there is nothing to load into; the words say what to do.
#[test]
fn errors_say_what_to_do() {
    assert!(LoadError::Musl.to_string().contains("-gnu target"));
    let err = LoadError::Missing { looked: vec!["/a/liba3s.so.1".into()], named: false };
    assert!(err.to_string().contains("./build.sh build") && err.to_string().contains("/a/liba3s.so.1"));
}
