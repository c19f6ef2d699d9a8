// Checked by tsc only: a switch over all events is complete, and every branch knows its payload.
import { AgentEvent, EventType, type AgentEventOf, type EventPayloads } from '@a3s-lab/code';

export function describe(event: AgentEvent): string {
  switch (event.type) {
    case 'agent_start':
    case 'planning_start':
      return event.prompt + event.payload.prompt;
    case 'text_delta':
    case 'reasoning_delta':
      return event.text + event.payload.text;
    case 'tool_start':
      return event.toolName + event.payload.id;
    case 'tool_input_delta':
    case 'tool_output_delta':
      return event.text + event.payload.delta;
    case 'tool_execution_start':
      return event.toolId + JSON.stringify(event.payload.args);
    case 'tool_end':
      return event.toolOutput + String(event.exitCode + event.payload.exit_code) + (event.errorKind?.type ?? '');
    case 'turn_start':
      return String(event.turn + event.payload.turn);
    case 'turn_end':
      return String(event.totalTokens + event.payload.usage.total_tokens);
    case 'agent_end':
      return event.text + event.payload.usage.total_tokens + event.verificationSummaryText;
    case 'error':
      return event.error + event.payload.code + event.payload.retryable;
    case 'confirmation_required':
      return event.toolId + event.payload.tool_name + event.payload.timeout_ms;
    case 'permission_denied':
      return event.toolName + event.payload.reason;
    case 'agent_mode_changed': case 'confirmation_received': case 'confirmation_timeout': case 'external_task_pending':
    case 'external_task_completed': case 'context_resolving': case 'context_resolved': case 'command_dead_lettered':
    case 'command_retry': case 'queue_alert': case 'task_updated': case 'memory_stored': case 'memory_recalled':
    case 'memories_searched': case 'memory_cleared': case 'subagent_start': case 'subagent_progress': case 'subagent_end':
    case 'planning_end': case 'step_start': case 'step_end': case 'goal_extracted': case 'goal_progress':
    case 'goal_achieved': case 'context_compacted': case 'persistence_failed': case 'budget_threshold_hit':
    case 'passivation_requested': case 'peer_invocation':
      return event.payloadJson;
    default: {
      const never: never = event;
      return never;
    }
  }
}

// One branch fewer is not complete.
export function incomplete(event: AgentEventOf<'text_delta'> | AgentEventOf<'error'>): string {
  switch (event.type) {
    case EventType.TEXT_DELTA:
      return event.text;
    default: {
      // @ts-expect-error the error event is left
      const never: never = event;
      return never;
    }
  }
}

export const names: (keyof EventPayloads)[] = [EventType.TEXT_DELTA, EventType.START, EventType.END];
// @ts-expect-error there is no such type
export const wrong: keyof EventPayloads = 'text_deltas';

export function whole(value: unknown): string {
  if (!(value instanceof AgentEvent)) return '';
  const run: string | undefined = value.runId;
  // @ts-expect-error only some events have a text
  const text: string = value.text;
  return `${run}${text}${value.metadata?.sequence}`;
}
