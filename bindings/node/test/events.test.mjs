// Events, results and errors as JavaScript has them; nothing here needs the library.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import test from 'node:test';

import { AgentEvent, CodeError, EventType, ToolResult, VERSION, agentEventTypesV1, eventEnvelopeV1Version, formatVerificationSummary } from '@a3s-lab/code';
import { PACKAGE, ROOT, internal } from './place.mjs';

const { eventFrom } = internal('events');
const { errorFrom } = internal('errors');
const wire = internal('wire');

const event = (type, payload, metadata) => eventFrom({ version: 1, type, payload, metadata });

test('convenience fields, by type', () => {
  const cases = [
    ['agent_start', { prompt: 'p' }, { prompt: 'p' }],
    ['planning_start', { prompt: 'p' }, { prompt: 'p' }],
    ['turn_start', { turn: 2 }, { turn: 2 }],
    ['text_delta', { text: 't' }, { text: 't' }],
    ['reasoning_delta', { text: 't' }, { text: 't' }],
    ['tool_start', { id: 'i', name: 'n' }, { toolId: 'i', toolName: 'n' }],
    ['tool_execution_start', { id: 'i', name: 'n', args: {} }, { toolId: 'i', toolName: 'n', data: '{"id":"i","name":"n","args":{}}' }],
    ['tool_input_delta', { id: 'i', delta: 'd' }, { toolId: 'i', text: 'd' }],
    ['tool_output_delta', { id: 'i', name: 'n', delta: 'd' }, { toolId: 'i', toolName: 'n', text: 'd' }],
    ['tool_end', { id: 'i', name: 'n', output: 'o', exit_code: 0, error_kind: { type: 'x' } }, {
      toolId: 'i', toolName: 'n', toolOutput: 'o', exitCode: 0, errorKind: { type: 'x' }, errorKindJson: '{"type":"x"}',
      data: '{"id":"i","name":"n","output":"o","exit_code":0,"error_kind":{"type":"x"}}' }],
    ['turn_end', { turn: 1, usage: { total_tokens: 3 } }, { turn: 1, totalTokens: 3 }],
    ['agent_end', { text: 't', usage: { total_tokens: 3 }, verification_summary: { status: 'skipped' } }, {
      text: 't', totalTokens: 3, verificationSummaryJson: '{"status":"skipped"}', verificationSummaryText: 'no verification was run' }],
    ['error', { message: 'm', code: 'C' }, { error: 'm' }],
    ['confirmation_required', { tool_id: 'i', tool_name: 'n' }, { toolId: 'i', toolName: 'n', data: '{"tool_id":"i","tool_name":"n"}' }],
    ['permission_denied', { tool_id: 'i', tool_name: 'n' }, { toolId: 'i', toolName: 'n', data: '{"tool_id":"i","tool_name":"n"}' }],
    ['of_a_later_version', { text: 'kept', name: 'n' }, { data: '{"text":"kept","name":"n"}' }],
    ['of_a_later_version', 5, { data: '5' }],
    ['constructor', { text: 'x' }, { data: '{"text":"x"}' }],
    ['text_delta', null, {}],
  ];
  const names = ['text', 'toolName', 'toolId', 'toolOutput', 'exitCode', 'turn', 'prompt', 'error', 'totalTokens', 'verificationSummaryJson', 'verificationSummaryText', 'errorKind', 'errorKindJson', 'data'];
  for (const [type, payload, want] of cases) {
    const e = event(type, payload);
    assert.deepEqual(Object.fromEntries(names.map((n) => [n, e[n]]).filter(([, v]) => v !== undefined)), want, type);
    assert.deepEqual([e.payload, e.payloadJson, e.type, e.version], [payload, JSON.stringify(payload), type, 1]);
  }
});

test('metadata', () => {
  const bare = event('text_delta', { text: 'x' });
  assert.deepEqual([bare.metadata, bare.metadataJson, bare.runId, bare.sequence, 'metadata' in bare], [undefined, undefined, undefined, undefined, false]);
  const kept = event('text_delta', { text: 'x' }, { run_id: 'r', session_id: 's', sequence: 4, timestamp_ms: 5 });
  assert.deepEqual([kept.runId, kept.sequence, JSON.parse(kept.metadataJson)], ['r', 4, kept.metadata]);
  assert.equal(JSON.stringify(kept), '{"version":1,"type":"text_delta","payload":{"text":"x"},"metadata":{"run_id":"r","session_id":"s","sequence":4,"timestamp_ms":5}}');
});

test('what is no envelope is refused', () => {
  for (const bad of [null, 5, [], {}, { version: 2, type: 'x' }, { version: 1 }, { version: 1, type: 7 }]) {
    assert.throws(() => eventFrom(bad), { code: 'SERIALIZATION_ERROR' });
  }
});

test('the catalogue', () => {
  const types = agentEventTypesV1();
  assert.equal(eventEnvelopeV1Version(), 1);
  assert.deepEqual([types.length, types[0], new Set(types).size], [44, 'agent_start', 44]);
  types.length = 0;
  assert.equal(agentEventTypesV1().length, 44);
  assert.deepEqual([EventType.TEXT_DELTA, EventType.START, EventType.END, Object.isFrozen(EventType)], ['text_delta', 'agent_start', 'agent_end', true]);
  assert.deepEqual(new Set(Object.values(EventType)), new Set(agentEventTypesV1()));
});

test('errors', () => {
  const plain = errorFrom({ code: 'SESSION_BUSY', kind: 'busy', status: -5, op: 'run.start', message: 'm', retryable: true, details: { a: 1 } });
  assert.ok(plain instanceof CodeError && plain instanceof Error);
  assert.deepEqual([plain.code, plain.kind, plain.status, plain.op, plain.message, plain.retryable, plain.details, plain.name, String(plain)],
    ['SESSION_BUSY', 'busy', -5, 'run.start', 'm', true, { a: 1 }, 'CodeError', 'CodeError: m']);
  const value = errorFrom({ code: 'X', message: 'm', details: { reason: 'bad_value' } });
  const type = errorFrom({ code: 'X', message: 'm', details: { reason: 'bad_type' } });
  assert.ok(value instanceof RangeError && value instanceof CodeError && value.code === 'X' && value.name === 'RangeError');
  assert.ok(type instanceof TypeError && type instanceof CodeError && type.code === 'X' && type.name === 'TypeError');
  assert.ok(![new Error('x'), new RangeError('x'), null, undefined, 5, {}, { code: 'X' }].some((v) => v instanceof CodeError));
  const empty = errorFrom({});
  assert.deepEqual([empty.code, empty.kind, empty.status, empty.details, empty.message], ['INTERNAL_ERROR', 'internal', -99, {}, 'INTERNAL_ERROR']);
  class Mine extends CodeError {}
  assert.ok(!(plain instanceof Mine));
});

test('tool results', () => {
  const failed = new ToolResult({ name: 'n', output: 'o', exitCode: 3, metadata: { a: 1 }, errorKind: { type: 'timeout' } });
  assert.deepEqual([failed.ok, String(failed), failed.metadataJson, failed.errorKindJson], [false, 'o', '{"a":1}', '{"type":"timeout"}']);
  const empty = new ToolResult();
  assert.deepEqual([empty.ok, empty.output, empty.metadataJson, empty.errorKindJson, Object.keys(empty)], [true, '', undefined, undefined, ['name', 'output', 'exitCode']]);
});

test('a verification summary in words', () => {
  assert.equal(formatVerificationSummary({ report_count: 0 }), 'no verification was run');
  assert.equal(
    formatVerificationSummary('{"status":"failed","report_count":1,"required_check_count":3,"failed_check_count":2}'),
    'verification failed: 1 report, 3 required checks, 2 failed');
});

test('the two spellings', () => {
  assert.deepEqual(wire.snake({ maxEventBytesPerRun: 1, hostEnv: { fixedTimeMs: 2 }, allow: ['A_b', { cD: 1 }], none: null, unset: undefined }, 'x'), {
    max_event_bytes_per_run: 1, host_env: { fixed_time_ms: 2 }, allow: ['A_b', { c_d: 1 }], none: null });
  assert.throws(() => wire.snake({ permission_policy: {} }, 'x'), (err) => err instanceof RangeError && /write permissionPolicy/.test(err.message) && err.details.field === 'permission_policy');
  assert.deepEqual(wire.camel({ a_b_c: 1, d: { e_f: 2 } }), { aBC: 1, d: { e_f: 2 } });
  const message = { role: 'tool', content: [{ type: 'tool_result', tool_use_id: 'i', content: 'c', is_error: true }, { type: 'tool_use', input: { a_b: 1 } }], reasoning_content: 'r' };
  const mine = wire.messageFrom(message);
  assert.deepEqual(mine, { role: 'tool', content: [{ type: 'tool_result', toolUseId: 'i', isError: true, resultContent: 'c' }, { type: 'tool_use', input: { a_b: 1 } }], reasoningContent: 'r' });
  assert.deepEqual(wire.messageTo(mine), message);
  for (const odd of [null, 5, { role: 1 }, { content: 'x' }, { content: [null, 3] }]) wire.messageTo(odd);
});

test('what JSON cannot say is refused', () => {
  const loop = {};
  loop.loop = loop;
  let deep = [];
  for (let i = 0; i < 100_000; i++) deep = [deep];
  const cases = [
    [NaN, RangeError], [{ a: Infinity }, RangeError], ['\ud800', RangeError], [{ a: ['x\udfff'] }, RangeError],
    [deep, RangeError], [5n, TypeError], [{ a: () => {} }, TypeError], [[Symbol('s')], TypeError], [loop, TypeError],
    [{ a: new Map([[1, 2]]) }, TypeError], [[new Set()], TypeError], [{ a: Promise.resolve() }, TypeError], [(function* () {})(), TypeError], [(async function* () {})(), TypeError],
    [{ get a() { throw 'a text'; } }, TypeError], [{ get a() { throw null; } }, TypeError], [{ get a() { throw Object.assign(new Error('x'), { code: 'ENOENT' }); } }, TypeError],
  ];
  for (const [value, Native] of cases) {
    assert.throws(() => wire.encode(value, 'op'), (err) => err instanceof Native && err.code === 'INVALID_REQUEST' && err.op === 'op');
  }
  assert.equal(wire.encode({ a: '😀', b: undefined, c: null, d: -0 }, 'op'), '{"a":"😀","c":null,"d":0}');
});

test('versions agree', () => {
  const version = fs.readFileSync(path.join(ROOT, 'VERSION'), 'utf8').trim();
  for (const file of ['package.json', 'package-lock.json']) {
    const pkg = JSON.parse(fs.readFileSync(path.join(PACKAGE, file), 'utf8'));
    assert.equal(pkg.version, version, file);
    assert.deepEqual(Object.values((pkg.packages?.[''] ?? pkg).optionalDependencies), [version], file);
  }
  assert.equal(VERSION, version);
});

test('the lock file names no registry', () => {
  assert.ok(!fs.readFileSync(path.join(PACKAGE, 'package-lock.json'), 'utf8').includes('"resolved"'));
});

test('an event class for instanceof', () => {
  assert.ok(event('x', {}) instanceof AgentEvent);
});
