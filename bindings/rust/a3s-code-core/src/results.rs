//! What a run and a page of its events come to.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::decode;
use crate::error::Result;
use crate::event::EventEnvelope;
use crate::{wire, TokenUsage, VerificationSummary};

/// The outcome of a run that completed. It displays as its text.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(from = "Wire")]
#[non_exhaustive]
pub struct AgentResult {
    /// Id of the run, as in [`AgentSession::runs`](crate::AgentSession::runs).
    pub run_id: String,
    /// The model's answer.
    pub text: String,
    /// Tokens, as the model service counted them.
    pub usage: TokenUsage,
    /// Tools that were called.
    pub tool_calls_count: i64,
    /// `passed`, `failed`, `needs_review` or `skipped`.
    pub verification_status: String,
    /// Required checks that are still open.
    pub pending_verification_count: i64,
    /// Checks that failed.
    pub failed_verification_count: i64,
    /// Reports behind the summary.
    pub verification_report_count: i64,
    /// The summary of all checks.
    pub verification_summary: VerificationSummary,
    /// The summary in words.
    pub verification_summary_text: String,
}

impl AgentResult {
    /// Whether required checks are still open.
    pub fn has_pending_verification(&self) -> bool {
        self.pending_verification_count > 0
    }
}

impl fmt::Display for AgentResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// A verification summary in one line of words.
pub fn format_verification_summary(summary: &VerificationSummary) -> String {
    let (reports, required) = (summary.report_count, summary.required_check_count);
    if reports == 0 {
        return "no verification was run".to_owned();
    }
    let status = if summary.status.is_empty() { "skipped" } else { &summary.status };
    let plural = if reports == 1 { "" } else { "s" };
    let mut words = format!("verification {status}: {reports} report{plural}, {required} required checks");
    let counts = [
        (summary.pending_required_check_count, "pending"),
        (summary.failed_check_count, "failed"),
        (summary.residual_risk_count, "residual risks"),
    ];
    for (count, what) in counts.into_iter().filter(|(count, _)| *count != 0) {
        words += &format!(", {count} {what}");
    }
    words
}

/// As the library gives it, with the usage unfolded.
#[derive(Deserialize)]
#[serde(default)]
#[derive(Default)]
struct Wire {
    run_id: String,
    text: String,
    tool_calls_count: i64,
    prompt_tokens: i64,
    completion_tokens: i64,
    total_tokens: i64,
    verification_status: String,
    pending_verification_count: i64,
    failed_verification_count: i64,
    verification_report_count: i64,
    verification_summary: VerificationSummary,
    verification_summary_text: String,
}

impl From<Wire> for AgentResult {
    fn from(w: Wire) -> Self {
        Self {
            run_id: w.run_id,
            text: w.text,
            usage: TokenUsage {
                prompt_tokens: w.prompt_tokens,
                completion_tokens: w.completion_tokens,
                total_tokens: w.total_tokens,
                ..TokenUsage::default()
            },
            tool_calls_count: w.tool_calls_count,
            verification_status: w.verification_status,
            pending_verification_count: w.pending_verification_count,
            failed_verification_count: w.failed_verification_count,
            verification_report_count: w.verification_report_count,
            verification_summary: w.verification_summary,
            verification_summary_text: w.verification_summary_text,
        }
    }
}

/// A part of a run's kept events.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct RunEventPage {
    /// The events.
    pub events: Vec<EventEnvelope>,
    /// Number of the oldest event that is kept; None if none is.
    pub first_available_sequence: Option<i64>,
    /// Number of the run's next event.
    pub latest_sequence_exclusive: i64,
    /// What to ask the next page with.
    pub next_after_sequence: Option<i64>,
    /// Whether events between the asked ones and the kept ones are gone.
    pub retention_gap: bool,
    /// Whether kept events follow.
    pub has_more: bool,
}

impl RunEventPage {
    pub(crate) fn decode(json: &[u8]) -> Result<Option<Self>> {
        #[derive(Deserialize)]
        struct Answer<'a> {
            #[serde(borrow)]
            page: Option<Page<'a>>,
        }
        #[derive(Deserialize)]
        struct Page<'a> {
            #[serde(borrow)]
            events: Option<Vec<&'a RawValue>>,
            first_available_sequence: Option<i64>,
            #[serde(default)]
            latest_sequence_exclusive: i64,
            next_after_sequence: Option<i64>,
            #[serde(default)]
            retention_gap: bool,
            #[serde(default)]
            has_more: bool,
        }
        let Some(page) = wire::borrowed::<Answer<'_>>(json)?.page else { return Ok(None) };
        Ok(Some(Self {
            events: decode::list(&page.events.unwrap_or_default())?,
            first_available_sequence: page.first_available_sequence,
            latest_sequence_exclusive: page.latest_sequence_exclusive,
            next_after_sequence: page.next_after_sequence,
            retention_gap: page.retention_gap,
            has_more: page.has_more,
        }))
    }
}
