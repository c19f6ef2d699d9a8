//! Options: every one travels under its name, and a wrong one is refused by the library's words.

mod kit;

use a3s_code_core::{
    codes, ArtifactStoreLimits, ConfirmationPolicy, FileSessionStore, HostEnvConfig, LocalWorkspaceBackend, PermissionPolicy,
    RetentionLimits, SessionOptions,
};
use kit::Place;
use serde_json::{json, Value};

/// What a session with these options is refused with.
fn refusal(options: SessionOptions) -> (String, String) {
    let place = Place::new("say .\n");
    let err = place.agent().session(place.workspace(), Some(options)).expect_err("a bad option");
    (err.code().to_owned(), err.details().get("field").and_then(Value::as_str).unwrap_or("").to_owned())
}

#[test]
fn every_working_option_is_accepted() {
    let place = Place::new("say Hello.\n");
    place.write("sub/a.txt", "");
    let options = SessionOptions::new()
        .with_model("script/main")
        .with_temperature(0.5)
        .with_thinking_budget(100)
        .with_llm_api_timeout_ms(10_000)
        .with_role("You are brief.")
        .with_guidelines("Say little.")
        .with_response_style("One word.")
        .with_extra("Really.")
        .with_planning_mode("disabled")
        .with_max_tool_rounds(5)
        .with_max_parse_retries(1)
        .with_tool_timeout_ms(1000)
        .with_circuit_breaker_threshold(2)
        .with_duplicate_tool_call_threshold(2)
        .with_max_execution_time_ms(60_000)
        .with_auto_compact(true)
        .with_auto_compact_threshold(0.9)
        .with_max_context_tokens(100_000)
        .with_artifact_store_limits(ArtifactStoreLimits { max_artifacts: Some(5), max_bytes: Some(1 << 20) })
        .with_permission_policy(PermissionPolicy::strict().allow("read").deny("bash").ask("write"))
        .with_confirmation_policy(ConfirmationPolicy::enabled())
        .with_workspace_backend(LocalWorkspaceBackend::new(place.workspace().join("sub")))
        .with_session_store(FileSessionStore::new(place.dir.join("store")))
        .with_auto_save(true)
        .with_journal(true)
        .with_stall_timeout_ms(5000)
        .with_session_id("mine")
        .with_host_env(HostEnvConfig { sequential_id_prefix: Some("id".into()), fixed_time_ms: Some(1_700_000_000_000) })
        .with_tenant_id("t")
        .with_principal("p")
        .with_agent_template_id("a")
        .with_correlation_id("c")
        .with_retention_limits(RetentionLimits { max_runs_retained: Some(3), ..RetentionLimits::default() });
    let session = place.agent().session(place.workspace(), Some(options)).unwrap();
    assert_eq!((session.session_id(), session.tenant_id()), ("mine", Some("t")));
    assert!(session.workspace().ends_with("sub"), "{}", session.workspace());
    assert_eq!(session.send("go", None).wait().unwrap().text, "Hello.");
    assert_eq!(session.runs().wait().unwrap()[0].created_at_ms, 1_700_000_000_000);
}

#[test]
fn a_wrong_option_is_named() {
    let conf = codes::SESSION_CONFIGURATION_ERROR;
    let tests = [
        (SessionOptions::new().with_max_context_tokens(0), "max_context_tokens"),
        (SessionOptions::new().with_temperature(9.0), "temperature"),
        (SessionOptions::new().with_temperature(f64::NAN), "temperature"),
        (SessionOptions::new().with_auto_compact_threshold(f64::INFINITY), "auto_compact_threshold"),
        (SessionOptions::new().with_planning_mode("sometimes"), "planning_mode"),
        (SessionOptions::new().with_option("no_such_option", 1), "no_such_option"),
        (SessionOptions::new().with_option("max_tool_rounds", "five"), "max_tool_rounds"),
        (SessionOptions::new().with_queue_config(json!({ "query_concurrency": 1 })), "queue_config"),
        (SessionOptions::new().with_skill_dirs(vec!["skills".to_owned()]), "skill_dirs"),
        (SessionOptions::new().with_file_session_store(""), "session_store"),
        (SessionOptions { max_tool_rounds: Some(0), ..SessionOptions::new() }, "max_tool_rounds"),
    ];
    for (options, field) in tests {
        let words = format!("{options:?}");
        assert_eq!(refusal(options), (conf.to_owned(), field.to_owned()), "{words}");
    }
}

/// A path that is not Unicode cannot travel.
#[test]
fn a_path_of_other_bytes_is_refused() {
    use std::os::unix::ffi::OsStringExt;
    let odd = || std::path::PathBuf::from(std::ffi::OsString::from_vec(b"/tmp/\xff".to_vec()));
    let refused = refusal(SessionOptions::new().with_session_store(FileSessionStore::new(odd())));
    assert_eq!(refused, (codes::SESSION_CONFIGURATION_ERROR.to_owned(), "session_store".to_owned()));
    let place = Place::new("say .\n");
    assert_eq!(place.agent().session(odd(), None).unwrap_err().code(), codes::INVALID_REQUEST);
}
