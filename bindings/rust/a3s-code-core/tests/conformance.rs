//! Plays the scenarios that all languages share, through the public API alone: once with threads,
//! once in tokio. What a scenario is made of is said in tests/conformance/README.md. Writes
//! build/conformance-rust.json.

#[path = "conformance/compare.rs"]
mod compare;
#[path = "conformance/expect.rs"]
mod expect;
#[path = "conformance/fail.rs"]
mod fail;
#[path = "conformance/host.rs"]
mod host;
#[path = "conformance/look.rs"]
mod look;
#[path = "conformance/play.rs"]
mod play;
#[path = "conformance/run.rs"]
mod run;
#[path = "conformance/scenario.rs"]
mod scenario;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use fail::{Fail, Mode};
use play::Play;
use scenario::Scenario;

fn main() -> ExitCode {
    let wanted: Vec<String> = std::env::args().skip(1).filter(|a| !a.starts_with('-')).collect();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..").canonicalize().expect("the checkout");
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(root.join("tests/conformance/scenarios")).expect("scenarios").map(|e| e.expect("a file").path()).collect();
    files.sort();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime");
    let mut results = BTreeMap::new();
    let (mut passed, mut failed, mut ignored, mut words) = (0, 0, 0, String::new());
    for file in &files {
        let name = file.file_stem().expect("a name").to_string_lossy().into_owned();
        if !wanted.is_empty() && !wanted.iter().any(|w| name.contains(w)) {
            continue;
        }
        for mode in [Mode::Threads, Mode::Tokio(runtime.handle().clone())] {
            let title = format!("{}::{name}", if matches!(mode, Mode::Threads) { "threads" } else { "tokio" });
            let result = perform(file, mode);
            let told = match &result {
                Ok(()) => "pass",
                Err(Fail::Lacking(_)) => "skip",
                Err(_) => "fail",
            };
            match result {
                Ok(()) => passed += 1,
                Err(Fail::Lacking(_)) => ignored += 1,
                Err(fail) => {
                    failed += 1;
                    words += &format!("---- {title} ----\n{fail}\n\n");
                }
            }
            println!(
                "test {title} ... {}",
                match told {
                    "pass" => "ok",
                    "skip" => "ignored",
                    _ => "FAILED",
                }
            );
            let whole = results.entry(name.clone()).or_insert(told);
            if told == "fail" {
                *whole = told;
            }
        }
    }
    if wanted.is_empty() {
        let report = serde_json::to_string_pretty(&results).expect("names and words");
        std::fs::create_dir_all(root.join("build")).expect("build");
        std::fs::write(root.join("build/conformance-rust.json"), report + "\n").expect("the report");
    }
    let verdict = if failed == 0 { "ok" } else { "FAILED" };
    println!("\n{words}test result: {verdict}. {passed} passed; {failed} failed; {ignored} ignored; 0 measured; 0 filtered out");
    if failed == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

/// Plays one scenario, and checks that nothing of it is left alive.
fn perform(file: &Path, mode: Mode) -> Result<(), Fail> {
    let scenario = Scenario::load(file)?;
    let dir = Place::new()?;
    std::env::set_current_dir(&dir.0)?;
    let result = Play::new(&scenario, &dir.0, mode).and_then(Play::run);
    std::env::set_current_dir("/")?;
    result?;
    let until = Instant::now() + Duration::from_secs(5);
    loop {
        let stats = a3s_code_core::stats()?;
        let alive = stats["handles"].as_object().is_none_or(|h| h.values().any(|n| n != 0)) || stats["closing"] != 0 || stats["calls"] != 0;
        if !alive {
            return Ok(());
        }
        if Instant::now() > until {
            return Err(Fail::Words(format!("still alive: {stats}")));
        }
        std::thread::sleep(Duration::from_millis(2)); // what was dropped ends in the background
    }
}

/// A new folder that is gone in the end.
struct Place(PathBuf);

impl Place {
    fn new() -> Result<Self, Fail> {
        let name = format!(
            "a3s-rust-{}-{}",
            std::process::id(),
            std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |d| d.as_nanos())
        );
        let dir = std::env::temp_dir().join(name);
        std::fs::create_dir(&dir)?;
        Ok(Self(dir.canonicalize()?))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
