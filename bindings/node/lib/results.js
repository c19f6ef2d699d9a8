'use strict';
// What a turn and a tool give back.

const { camel } = require('./wire.js');

/** The outcome of a turn. String(result) is its text. */
class AgentResult {
  constructor(obj) {
    const { verification_summary: summary, ...rest } = obj;
    Object.assign(this, camel(rest));
    this.verificationSummaryJson = JSON.stringify(summary ?? {});
  }

  toString() { return this.text; }
}

/** The outcome of a tool. A tool that fails is a result, not an exception. */
class ToolResult {
  constructor({ name = '', output = '', exitCode = 0, metadata, errorKind } = {}) {
    this.name = name;
    this.output = output;
    this.exitCode = exitCode;
    if (metadata !== undefined) this.metadata = metadata;
    if (errorKind !== undefined) this.errorKind = errorKind;
  }

  get ok() { return this.exitCode === 0; }
  get metadataJson() { return this.metadata === undefined ? undefined : JSON.stringify(this.metadata); }
  get errorKindJson() { return this.errorKind === undefined ? undefined : JSON.stringify(this.errorKind); }
  toString() { return this.output; }
}

module.exports = { AgentResult, ToolResult };
