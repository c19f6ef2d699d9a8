//! Runs first_light as somebody at a terminal would. The other examples are run by tests/examples.

use std::path::PathBuf;
use std::process::{Command, Output};

struct Place(PathBuf);

impl Place {
    fn new(name: &str, acl: &str) -> Self {
        let dir = std::env::temp_dir().join(format!("a3s-example-{name}-{}", std::process::id()));
        std::fs::create_dir_all(dir.join("workspace")).expect("a folder");
        std::fs::write(dir.join("agent.acl"), acl).expect("the configuration");
        std::fs::write(dir.join("workspace/parser.txt"), "the configuration is parsed here\nand here\n")
            .expect("a file");
        Self(dir)
    }

    fn run(&self, program: &str, prompt: &str) -> (Output, String) {
        let out = Command::new(program)
            .arg("agent.acl")
            .arg("workspace")
            .arg(prompt)
            .current_dir(&self.0)
            .output()
            .expect("the example");
        let text = String::from_utf8_lossy(&out.stdout).into_owned();
        (out, text)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn first_light() {
    let place = Place::new("light", "default_model = \"offline/search\"\n");
    let (out, text) = place.run(env!("CARGO_BIN_EXE_first_light"), "Where is the configuration parsed?");
    assert!(out.status.success(), "{out:?}");
    assert!(text.contains("parser.txt:1") && text.contains(": completed; session"), "{text}");
    assert!(place.0.join("workspace/.a3s/sessions/v1/sessions").read_dir().expect("it was saved").count() > 0);
}

#[test]
fn first_light_says_what_is_wrong() {
    let place = Place::new("wrong", "default_model = \"nobody/nothing\"\n");
    let (out, _) = place.run(env!("CARGO_BIN_EXE_first_light"), "?");
    assert!(!out.status.success() && String::from_utf8_lossy(&out.stderr).contains("CONFIG_ERROR: "), "{out:?}");
    let usage = Command::new(env!("CARGO_BIN_EXE_first_light")).output().expect("the example");
    assert_eq!(usage.status.code(), Some(2));
}

/// What the guide of the binding shows is what is here.
#[test]
fn the_guide_quotes_the_examples() {
    let here = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let guide = std::fs::read_to_string(here.join("../../bindings/rust/a3s-code-core/README.md")).expect("the guide");
    for file in here.read_dir().expect("the examples") {
        let file = file.expect("an example").path();
        if file.extension().is_some_and(|e| e == "rs") && !file.ends_with("first_light.rs") {
            let quoted = format!("```rust,no_run\n{}```", std::fs::read_to_string(&file).expect("text"));
            assert!(guide.contains(&quoted), "README.md of a3s-code-core quotes another {}", file.display());
        }
    }
}
