// Messages, results and records.

import type * as wire from '../generated.js';
import type { AgentEvent } from './events.js';

/** One part of a message. `type` decides which fields count. */
export interface ContentBlock {
  type: 'text' | 'tool_use' | 'tool_result' | (string & {});
  text?: string;
  id?: string;
  name?: string;
  input?: unknown;
  toolUseId?: string;
  resultContent?: string;
  isError?: boolean;
  wireId?: string;
}

/** One entry of the transcript. */
export interface Message {
  role: string;
  content: ContentBlock[];
  reasoningContent?: string;
  partial?: boolean;
}

/** The object form of a prompt. */
export interface SessionRequest {
  prompt: string;
  /** If given, the whole context of this call, which then leaves the transcript as it is. */
  history?: Message[] | null;
}

/** The outcome of a turn. `String(result)` is its text. */
export declare class AgentResult {
  private constructor();
  /** Id of the run, as in `Session.runs()`. */
  readonly runId: string;
  readonly text: string;
  readonly toolCallsCount: number;
  readonly promptTokens: number;
  readonly completionTokens: number;
  readonly totalTokens: number;
  /** `passed`, `failed`, `needs_review` or `skipped`. */
  readonly verificationStatus: string;
  readonly pendingVerificationCount: number;
  readonly failedVerificationCount: number;
  readonly verificationReportCount: number;
  readonly verificationSummaryJson: string;
  readonly verificationSummaryText: string;
  toString(): string;
}

/**
 * The outcome of a tool. A tool that fails is a result, not an exception. A tool of your own may
 * return one too, to give an exit code or metadata.
 */
export declare class ToolResult {
  /** Fields of another type make the call that returns it fail, by a `TypeError` that names the field. `exitCode` is an integer. */
  constructor(fields?: { name?: string; output?: string; exitCode?: number; metadata?: Record<string, unknown>; errorKind?: wire.ChatErrorKind });
  readonly name: string;
  readonly output: string;
  /** 0 for success. */
  readonly exitCode: number;
  readonly metadata?: Record<string, unknown>;
  /** Why it failed, such as `{type: "version_conflict", ...}`. */
  readonly errorKind?: wire.ChatErrorKind;
  readonly ok: boolean;
  readonly metadataJson?: string;
  readonly errorKindJson?: string;
  toString(): string;
}

/** A run as it is recorded. `status`: created, planning, executing, verifying, completed, failed or cancelled. */
export type RunSnapshot = wire.RecordRunSnapshot;
/** A tool call that runs now. */
export type ActiveTool = wire.SessionActiveTool;
/** The summary of one tool execution. */
export type TraceEvent = wire.RecordTraceEvent;
/** A long output that was kept beside the transcript. */
export type ToolArtifact = wire.RecordArtifact;

/** A slash command. */
export interface CommandInfo {
  name: string;
  description: string;
  usage?: string;
}

/** A call that waits for an answer. */
export interface PendingConfirmation {
  toolId: string;
  toolName: string;
  args: unknown;
  /** Milliseconds until the time-out applies; 0 for a question that waits for ever. */
  remainingMs: number;
}

/** A part of a run's recorded events. */
export interface RunEventPage {
  events: AgentEvent[];
  firstAvailableSequence: number | null;
  latestSequenceExclusive: number;
  /** For the next call. */
  nextAfterSequence: number | null;
  /** Wanted events are no longer kept. */
  retentionGap: boolean;
  hasMore: boolean;
}
