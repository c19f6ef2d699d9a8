//! Events of a finished run, read again: `cargo bench -p a3s-code-core [-- N]`. Prints lines
//! "name value": events a second, and nanoseconds of one operation.

use std::hint::black_box;
use std::time::{Duration, Instant};

use a3s_code_core::{Agent, HostEnvConfig, Result, RetentionLimits, SessionOptions};

const PIECE: &str = "twenty bytes of text";

fn main() -> Result<()> {
    let n: usize = std::env::args().skip(1).find_map(|a| a.parse().ok()).unwrap_or(100_000);
    let dir = std::env::temp_dir().join(format!("a3s-bench-{}", std::process::id()));
    std::fs::create_dir_all(&dir).expect("a folder");
    let script: String = (0..n).map(|_| format!("say {PIECE}\n")).collect();
    std::fs::write(dir.join("turns.txt"), script).expect("the script");
    std::fs::write(
        dir.join("agent.acl"),
        "default_model = \"script/main\"\nproviders \"script\" { models \"main\" { script = \"turns.txt\" } }\n",
    )
    .expect("the configuration");
    let agent = Agent::from_file(dir.join("agent.acl")).wait()?;
    // With fixed ids every piece is an event of its own, and all are kept.
    let options =
        SessionOptions::new().with_retention_limits(RetentionLimits { unbounded: true, ..RetentionLimits::default() }).with_host_env(
            HostEnvConfig { sequential_id_prefix: Some("run-0190a3f0-0000-7000-8000-000000000".into()), ..HostEnvConfig::default() },
        );
    let session = agent.session(&dir, Some(options))?;
    let (events, run) = session.stream("go on", None).wait()?;
    drop(events);
    run.wait()?;
    let total = run.events()?.into_iter().count();

    best("rust_typed", total, || run.events().map(|e| e.into_iter().map(black_box).count()));
    best("rust_envelopes", total, || run.events().map(|e| e.envelopes().into_iter().map(black_box).count()));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    best("rust_tokio", total, || {
        let mut events = run.events()?;
        Ok(runtime.block_on(async {
            let mut count = 0;
            while let Some(event) = events.recv().await {
                black_box(event);
                count += 1;
            }
            count
        }))
    });
    best("rust_futures", total, || {
        let mut events = run.events()?;
        Ok(futures::executor::block_on(async {
            let mut count = 0;
            while let Some(event) = events.recv().await {
                black_box(event);
                count += 1;
            }
            count
        }))
    });

    let calls = 20_000;
    let begun = Instant::now();
    for _ in 0..calls {
        black_box(session.is_closed());
    }
    println!("rust_operation_ns {}", begun.elapsed().as_nanos() / calls);
    agent.close().wait()?;
    let _ = std::fs::remove_dir_all(&dir);
    Ok(())
}

/// The best of seven.
fn best(name: &str, total: usize, mut read: impl FnMut() -> Result<usize>) {
    let mut least = Duration::MAX;
    for _ in 0..7 {
        let begun = Instant::now();
        let count = read().expect("the events");
        least = least.min(begun.elapsed());
        assert_eq!(count, total);
    }
    println!("{name} {:.0}", total as f64 / least.as_secs_f64());
}
