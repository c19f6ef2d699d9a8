//! The figures of the Rust binding. usage: a3s-bench PART DIR N
//!
//! DIR holds agent.acl and workspace/. Prints lines "name value ...", values in seconds, bytes or
//! events a second.

use std::future::Future;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use a3s_code_core::{
    Agent, AgentEvent, AgentSession, HostEnvConfig, PermissionPolicy, Result, RetentionLimits,
    SessionOptions, Tool,
};
use serde_json::{json, Value};

mod plain;
mod wake;

fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [part, dir, n] = &args[..] else {
        eprintln!("usage: a3s-bench PART DIR N");
        std::process::exit(2);
    };
    let place = Place(PathBuf::from(dir));
    let n: usize = n.parse().expect("a number");
    match part.as_str() {
        "load" => plain::load(),
        "call" => plain::call(&place, n),
        "deliver" => deliver(&place, n)?,
        "many" => many(&place, n)?,
        "wake" => wake::wake(&place, n)?,
        "host" => host(&place, n)?,
        "first" => first(&place)?,
        "memory" => memory(&place, n)?,
        _ => panic!("there is no part {part}"),
    }
    Ok(())
}

/// The folder of agent.acl and workspace/.
struct Place(PathBuf);

impl Place {
    fn agent(&self) -> Result<Agent> {
        Agent::from_file(self.0.join("agent.acl")).wait()
    }

    fn workspace(&self) -> PathBuf {
        self.0.join("workspace")
    }

    fn session(&self, agent: &Agent, options: SessionOptions) -> Result<AgentSession> {
        agent.session(self.workspace(), Some(options))
    }
}

/// Options under which every delta is an event of its own and, if asked, all are kept.
fn unmerged(events: bool) -> SessionOptions {
    let env = HostEnvConfig {
        sequential_id_prefix: Some("run-0190a3f0-0000-7000-8000-000000000".into()),
        ..HostEnvConfig::default()
    };
    let options = SessionOptions::new()
        .with_planning_mode("disabled")
        .with_permission_policy(PermissionPolicy::permissive())
        .with_host_env(env);
    if !events {
        return options;
    }
    options.with_retention_limits(RetentionLimits {
        unbounded: true,
        ..RetentionLimits::default()
    })
}

/// Prints p50 and p99.
fn quantiles(name: &str, values: &mut [f64]) {
    let p50 = median(values);
    println!("{name} {p50:.9} {:.9}", values[values.len() * 99 / 100]);
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// A number from the process's own status; sizes are in KiB.
fn status(name: &str) -> f64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = text.lines().find_map(|l| l.strip_prefix(name));
    let word = line.and_then(|l| l.trim_start_matches(':').split_whitespace().next());
    word.and_then(|w| w.parse().ok()).unwrap_or(f64::NAN)
}

fn tokio() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime")
}

/// Counts the deltas of a run up to the n-th.
struct Count {
    begin: Instant,
    left: usize,
    length: usize,
    rate: f64,
    n: usize,
}

impl Count {
    fn to(n: usize) -> Self {
        Self {
            begin: Instant::now(),
            left: n,
            length: 0,
            rate: 0.0,
            n,
        }
    }

    fn event(&mut self, event: &AgentEvent) {
        let AgentEvent::TextDelta { text } = event else {
            return;
        };
        self.length += text.len();
        self.left -= 1;
        if self.left == 0 {
            self.rate = self.n as f64 / self.begin.elapsed().as_secs_f64();
        }
    }
}

fn three(mut rate: impl FnMut() -> Result<f64>) -> Result<f64> {
    let mut rates = (0..3).map(|_| rate()).collect::<Result<Vec<_>>>()?;
    Ok(median(&mut rates))
}

/// How fast the events of a run that has ended are read.
fn deliver(place: &Place, n: usize) -> Result<()> {
    plain::deliver(place, n);
    let agent = place.agent()?;
    let session = place.session(&agent, unmerged(true))?;
    let (events, run) = session.stream("go on", None).wait()?;
    drop(events);
    run.wait()?;
    let sync = three(|| {
        let mut count = Count::to(n);
        run.events()?.into_iter().for_each(|e| count.event(&e));
        Ok(count.rate)
    })?;
    println!("sync {sync:.1}");
    let tokio = tokio();
    let asynchronous = three(|| {
        let mut count = Count::to(n);
        let mut events = run.events()?;
        tokio.block_on(async {
            while let Some(event) = events.recv().await {
                count.event(&event);
            }
        });
        Ok(count.rate)
    })?;
    println!("async {asynchronous:.1}");
    Ok(())
}

/// 100 sessions at once, n events each, in one loop.
fn many(place: &Place, n: usize) -> Result<()> {
    let agent = place.agent()?;
    let mut runs = vec![];
    for i in 0..100 {
        let session = place.session(
            &agent,
            unmerged(true).with_session_id(format!("many-{i:031}")),
        )?;
        let (events, run) = session.stream("go on", None).wait()?;
        drop(events);
        run.wait()?;
        runs.push(run);
    }
    let tokio = tokio();
    let rate = three(|| {
        let begin = Instant::now();
        tokio.block_on(async {
            let mut readers = vec![];
            for run in &runs {
                let mut events = run.events()?;
                readers.push(tokio.spawn(async move {
                    let mut count = Count::to(n);
                    while let Some(event) = events.recv().await {
                        count.event(&event);
                    }
                    count.length
                }));
            }
            for reader in readers {
                assert!(reader.await.expect("a reader") > n);
            }
            Ok::<(), a3s_code_core::CodeError>(())
        })?;
        Ok((100 * n) as f64 / begin.elapsed().as_secs_f64())
    })?;
    println!("many {rate:.1}");
    Ok(())
}

/// n runs of calls of a tool of this program: the time from one call to the next.
fn host(place: &Place, n: usize) -> Result<()> {
    let at = Arc::new(Mutex::new(Vec::new()));
    let tick = {
        let at = Arc::clone(&at);
        move || at.lock().expect("the times").push(Instant::now())
    };
    let mut each = vec![];
    let mut note = |run: usize| {
        let at = std::mem::take(&mut *at.lock().expect("the times"));
        if run > 0 {
            // the first one warms up
            each.extend(
                at.windows(2)
                    .map(|w| w[1].duration_since(w[0]).as_secs_f64()),
            );
        }
        each.len()
    };
    let schema = || json!({"type": "object", "properties": {"n": {"type": "integer"}}});

    let agent = place.agent()?;
    let beat = tick.clone();
    let tool = Tool::blocking("tick", "Ticks.", schema(), move |_: Value, _| {
        beat();
        Ok("ticked")
    });
    agent.register_tool(tool.read_only())?;
    let mut split = 0;
    for run in 0..=n {
        let session = place.session(&agent, unmerged(false))?;
        session.send("go on", None).wait()?;
        session.close().wait()?;
        split = note(run);
    }
    agent.close().wait()?;

    tokio().block_on(async {
        let agent = place.agent()?;
        let tool = Tool::with_schema::<Value>("tick", "Ticks.", schema(), move |_, _| {
            tick();
            async { Ok("ticked") }
        });
        agent.register_tool(tool.read_only())?;
        for run in 0..=n {
            let session = place.session(&agent, unmerged(false))?;
            session.send("go on", None).await?;
            session.close().await?;
            note(run);
        }
        agent.close().await
    })?;
    let (sync, asynchronous) = each.split_at_mut(split);
    quantiles("sync", sync);
    quantiles("async", asynchronous);
    Ok(())
}

/// The first event of a process that began a moment ago.
fn first(place: &Place) -> Result<()> {
    let agent = place.agent()?;
    let session = place.session(&agent, SessionOptions::new())?;
    let (events, _run) = session.stream("go on", None).wait()?;
    if events.into_iter().next().is_some() {
        println!("first");
    }
    agent.close().wait()
}

/// What n further sessions take, before and after a short run each.
fn memory(place: &Place, n: usize) -> Result<()> {
    let agent = place.agent()?;
    let open = || place.session(&agent, SessionOptions::new());
    let warm = open()?;
    warm.send("go on", None).wait()?;
    let before = status("VmRSS");
    let each = || (status("VmRSS") - before) * 1024.0 / n as f64;
    let sessions = (0..n).map(|_| open()).collect::<Result<Vec<_>>>()?;
    println!("fresh {:.1}", each());
    for session in &sessions {
        session.send("go on", None).wait()?;
    }
    println!("used {:.1}", each());
    agent.close().wait()
}

/// Runs a future on a loop of this thread, as a program in tokio does.
fn in_loop<T>(future: impl Future<Output = T>) -> T {
    tokio().block_on(future)
}

fn text(path: &Path) -> &str {
    path.to_str().expect("a path in UTF-8")
}
