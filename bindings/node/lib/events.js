'use strict';
// Events as a host sees them.

const { badType, badValue, errorFrom } = require('./errors.js');
const { AGENT_EVENT_TYPES_V1, EVENT_ENVELOPE_V1_VERSION } = require('./generated.js');
const { named } = require('./values.js');

// Which payload field each convenience field reads, by type. A type that is not here has none.
const TOOL = { toolId: 'id', toolName: 'name' };
const QUESTION = { toolId: 'tool_id', toolName: 'tool_name' };
const FIELDS = {
  __proto__: null,
  agent_start: { prompt: 'prompt' },
  planning_start: { prompt: 'prompt' },
  turn_start: { turn: 'turn' },
  turn_end: { turn: 'turn', usage: 'usage' },
  text_delta: { text: 'text' },
  reasoning_delta: { text: 'text' },
  tool_start: TOOL,
  tool_execution_start: TOOL,
  tool_input_delta: { toolId: 'id', text: 'delta' },
  tool_output_delta: { ...TOOL, text: 'delta' },
  tool_end: { ...TOOL, toolOutput: 'output', exitCode: 'exit_code', errorKind: 'error_kind' },
  agent_end: { text: 'text', usage: 'usage', summary: 'verification_summary' },
  error: { error: 'message' },
  confirmation_required: QUESTION,
  permission_denied: QUESTION,
  tool_request_bound: QUESTION,
};
const WITHOUT_DATA = new Set([
  'agent_start', 'turn_start', 'text_delta', 'reasoning_delta', 'tool_start', 'tool_input_delta',
  'tool_output_delta', 'turn_end', 'agent_end', 'error', 'planning_start',
]);

function field(event, name) {
  const key = FIELDS[event.type]?.[name];
  return key === undefined ? undefined : event.payload?.[key] ?? undefined;
}

function json(value) {
  return value === undefined ? undefined : JSON.stringify(value);
}

/**
 * One event of a run. Its own properties are the envelope; the convenience fields are
 * worked out when they are asked for, and are undefined where the type has none.
 */
class AgentEvent {
  constructor(type, payload, metadata) {
    this.version = EVENT_ENVELOPE_V1_VERSION;
    this.type = type;
    this.payload = payload;
    if (metadata !== undefined) this.metadata = metadata;
  }

  get payloadJson() { return JSON.stringify(this.payload); }
  get metadataJson() { return json(this.metadata); }
  get text() { return field(this, 'text'); }
  get toolName() { return field(this, 'toolName'); }
  get toolId() { return field(this, 'toolId'); }
  get toolOutput() { return field(this, 'toolOutput'); }
  get exitCode() { return field(this, 'exitCode'); }
  get turn() { return field(this, 'turn'); }
  get prompt() { return field(this, 'prompt'); }
  get error() { return field(this, 'error'); }
  get totalTokens() { return field(this, 'usage')?.total_tokens; }
  get verificationSummaryJson() { return json(field(this, 'summary')); }
  get verificationSummaryText() {
    const summary = field(this, 'summary');
    return summary === undefined ? undefined : formatVerificationSummary(summary);
  }
  get errorKind() { return field(this, 'errorKind'); }
  get errorKindJson() { return json(this.errorKind); }
  get data() { return WITHOUT_DATA.has(this.type) ? undefined : this.payloadJson; }
  get runId() { return this.metadata?.run_id; }
  get sequence() { return this.metadata?.sequence; }
}

/** An event from its decoded envelope; SERIALIZATION_ERROR if it is none of version 1. */
function eventFrom(e) {
  if (e?.version !== EVENT_ENVELOPE_V1_VERSION || typeof e.type !== 'string') {
    throw errorFrom({
      code: 'SERIALIZATION_ERROR', kind: 'invalid', status: -1, op: 'event.decode',
      message: `Serialization error: not an event envelope of version ${EVENT_ENVELOPE_V1_VERSION}: ${String(JSON.stringify(e)).slice(0, 200)}`,
    });
  }
  return new AgentEvent(e.type, e.payload, e.metadata);
}

/** The names of the catalogue in canonical order. */
function agentEventTypesV1() {
  return [...AGENT_EVENT_TYPES_V1];
}

/** The version of the event envelope: 1. */
function eventEnvelopeV1Version() {
  return EVENT_ENVELOPE_V1_VERSION;
}

/** A verification summary (an object, or its JSON text) in one line of words. */
function formatVerificationSummary(summary) {
  const s = typeof summary === 'string' ? parsed(summary) : summary;
  if (typeof s !== 'object' || s === null) throw badType('verification.format', `a verification summary is an object or its JSON text, not ${named(s)}`);
  const reports = s.report_count ?? 0;
  if (!reports) return 'no verification was run';
  const parts = [`${reports} report${reports === 1 ? '' : 's'}`, `${s.required_check_count ?? 0} required checks`];
  const counted = { pending_required_check_count: 'pending', failed_check_count: 'failed', residual_risk_count: 'residual risks' };
  for (const [key, words] of Object.entries(counted)) if (s[key]) parts.push(`${s[key]} ${words}`);
  return `verification ${s.status ?? 'skipped'}: ${parts.join(', ')}`;
}

function parsed(text) {
  try {
    return JSON.parse(text);
  } catch (err) {
    throw badValue('verification.format', `a verification summary is an object or its JSON text: ${err.message}`);
  }
}

module.exports = { AgentEvent, eventFrom, agentEventTypesV1, eventEnvelopeV1Version, formatVerificationSummary };
