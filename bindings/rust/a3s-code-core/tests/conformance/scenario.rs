//! One scenario file: a txtar archive, its sections and its steps.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;

use crate::fail::Fail;

pub const VIEWS: [&str; 9] = ["commands", "events", "history", "info", "pending", "runs", "sessions", "tools", "traces"];
const SECTIONS: [&str; 12] = [
    "agent.acl",
    "env.json",
    "files.json",
    "host.json",
    "host_tools.json",
    "options.json",
    "script",
    "steps",
    "want/error",
    "want/events",
    "want/files.json",
    "want/result.json",
];

pub struct Scenario {
    pub sections: BTreeMap<String, String>,
    pub steps: Vec<Step>,
}

#[derive(Clone)]
pub struct Step {
    pub line: String,
    /// The code it must fail with; empty for none.
    pub fails: String,
    pub verb: String,
    pub rest: String,
}

impl Scenario {
    pub fn load(file: &Path) -> Result<Self, Fail> {
        let text = std::fs::read_to_string(file)?;
        let mut sections: BTreeMap<String, String> = BTreeMap::new();
        let (mut name, mut comment) = (None::<String>, String::new());
        for line in text.split_inclusive('\n') {
            let head = line.trim_end_matches('\n').strip_prefix("-- ").and_then(|l| l.strip_suffix(" --"));
            if let Some(head) = head.map(str::trim) {
                known(head)?;
                if sections.insert(head.to_owned(), String::new()).is_some() {
                    return Err(Fail::Words(format!("section {head:?} stands there twice")));
                }
                name = Some(head.to_owned());
                continue;
            }
            let into = match &name {
                Some(name) => sections.get_mut(name).expect("it was just made"),
                None => &mut comment,
            };
            into.push_str(line);
        }
        if comment.trim().is_empty() {
            return Err(Fail::Words("the first lines must say what the scenario shows".into()));
        }
        let steps = sections.get("steps").map_or("", String::as_str);
        let steps = steps.lines().map(str::trim).filter(|l| !l.is_empty() && !l.starts_with('#')).map(step).collect();
        Ok(Self { sections, steps })
    }
}

fn known(name: &str) -> Result<(), Fail> {
    let view = name.strip_prefix("want/").and_then(|n| n.strip_suffix(".json"));
    if SECTIONS.contains(&name)
        || name.starts_with("workspace/")
        || name.starts_with("want/workspace/")
        || view.is_some_and(|v| VIEWS.contains(&v))
    {
        return Ok(());
    }
    Err(Fail::Words(format!("there is no section {name:?}")))
}

fn step(line: &str) -> Step {
    let (mut verb, mut rest) = cut(line);
    let mut fails = "";
    if verb == "fails" {
        let (code, words) = cut(rest);
        fails = code;
        (verb, rest) = cut(words);
    }
    Step { line: line.to_owned(), fails: fails.to_owned(), verb: verb.to_owned(), rest: rest.to_owned() }
}

/// What stands before the first blank, and behind it.
pub fn cut(text: &str) -> (&str, &str) {
    text.split_once(' ').unwrap_or((text, ""))
}

/// Makes one file, folder or link.
pub fn put(path: &Path, content: &Value) -> Result<(), Fail> {
    if let Some(dir) = path.parent() {
        std::fs::create_dir_all(dir)?;
    }
    if let Some(text) = content.as_str() {
        std::fs::write(path, text)?;
    } else if let Some(to) = content["link"].as_str() {
        std::os::unix::fs::symlink(to, path)?;
    } else if content["folder"] == true {
        std::fs::create_dir_all(path)?;
    } else {
        return Err(Fail::Words(format!("files.json: {} must be a text, {{\"link\": TARGET}} or {{\"folder\": true}}", path.display())));
    }
    Ok(())
}

/// What a path holds now, in the form of files.json; null if there is nothing.
pub fn held(path: &Path) -> Value {
    let Ok(meta) = std::fs::symlink_metadata(path) else { return Value::Null };
    if meta.is_dir() {
        return serde_json::json!({ "folder": true });
    }
    if meta.is_symlink() {
        return serde_json::json!({ "link": std::fs::read_link(path).unwrap_or_default() });
    }
    std::fs::read(path).map_or(Value::Null, |b| String::from_utf8_lossy(&b).into_owned().into())
}
