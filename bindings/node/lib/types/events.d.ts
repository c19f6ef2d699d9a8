// Events as a program sees them.

import type * as wire from '../generated.js';
import type { EventPayloads } from '../generated.js';

export {}; // only what says so is exported

/** Where an event stands: the number starts at 0 in every run and rises by exactly 1. */
export interface EventMetadata {
  run_id: string;
  session_id: string;
  sequence: number;
  timestamp_ms: number;
}

/** What every event has. A convenience field is undefined where the type has none. */
export interface AgentEventBase {
  /** Version of the envelope. */
  readonly version: number;
  /** Missing on frames that are not recorded. */
  readonly metadata?: EventMetadata;
  /** `payload` as JSON text. */
  readonly payloadJson: string;
  readonly metadataJson?: string;
  /** The next piece of text for deltas, the whole answer for `agent_end`. */
  readonly text?: string;
  readonly toolName?: string;
  readonly toolId?: string;
  readonly toolOutput?: string;
  readonly exitCode?: number;
  readonly turn?: number;
  readonly prompt?: string;
  /** What went wrong, for `error`; `payload` has the code and the rest. */
  readonly error?: string;
  /** Tokens of the turn for `turn_end`, of the run for `agent_end`. */
  readonly totalTokens?: number;
  readonly verificationSummaryJson?: string;
  readonly verificationSummaryText?: string;
  /** Why a tool failed, for `tool_end`. */
  readonly errorKind?: wire.ChatErrorKind;
  readonly errorKindJson?: string;
  /** The payload as JSON text for types without convenience fields, unknown ones included. */
  readonly data?: string;
  readonly runId?: string;
  readonly sequence?: number;
}

/** The convenience fields that a type always has. */
interface Convenience {
  agent_start: { readonly prompt: string };
  planning_start: { readonly prompt: string };
  turn_start: { readonly turn: number };
  turn_end: { readonly turn: number; readonly totalTokens: number };
  text_delta: { readonly text: string };
  reasoning_delta: { readonly text: string };
  tool_start: { readonly toolId: string; readonly toolName: string };
  tool_execution_start: { readonly toolId: string; readonly toolName: string };
  tool_input_delta: { readonly text: string };
  tool_output_delta: { readonly toolId: string; readonly toolName: string; readonly text: string };
  tool_end: { readonly toolId: string; readonly toolName: string; readonly toolOutput: string; readonly exitCode: number };
  agent_end: { readonly text: string; readonly totalTokens: number; readonly verificationSummaryJson: string; readonly verificationSummaryText: string };
  error: { readonly error: string };
  confirmation_required: { readonly toolId: string; readonly toolName: string };
  permission_denied: { readonly toolId: string; readonly toolName: string };
}

/** The event of one type, such as `AgentEventOf<"tool_end">`. */
export type AgentEventOf<T extends keyof EventPayloads> = AgentEventBase & {
  readonly type: T;
  /** Everything the event carries. */
  readonly payload: EventPayloads[T];
} & (T extends keyof Convenience ? Convenience[T] : unknown);

/**
 * One event of a run, told apart by `type`. The union names the types of this version, so that
 * a `switch` can be checked for completeness; at run time the set is open, and an event of a
 * later type comes through with its payload.
 */
export type AgentEvent = { [T in keyof EventPayloads]: AgentEventOf<T> }[keyof EventPayloads];

/** The class of all events, for `instanceof`. */
export declare const AgentEvent: { readonly prototype: AgentEventBase; [Symbol.hasInstance](value: unknown): value is AgentEvent };

/** The names of the catalogue in canonical order. */
export declare function agentEventTypesV1(): string[];
/** The version of the event envelope: 1. */
export declare function eventEnvelopeV1Version(): number;
/** A verification summary (an object, or its JSON text) in one line of words. */
export declare function formatVerificationSummary(summary: wire.EventVerificationSummary | string): string;
