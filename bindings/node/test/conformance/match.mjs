// Comparing what came with what a scenario wants; see tests/conformance/README.md.

const POSITIONAL = {
  agent_start: ['prompt'], turn_start: ['turn'], turn_end: ['turn'], text_delta: ['text'], reasoning_delta: ['text'],
  tool_start: ['name'], tool_execution_start: ['name'], tool_end: ['name'], tool_output_delta: ['name', 'delta'],
  tool_input_delta: ['delta'], agent_end: ['text'], error: ['code'], confirmation_required: ['tool_name'],
  permission_denied: ['tool_name'], confirmation_timeout: ['action_taken'], confirmation_received: ['approved'],
  persistence_failed: ['operation'], budget_threshold_hit: ['resource', 'kind'],
};
const GROWS = { text_delta: 'text', reasoning_delta: 'text', tool_input_delta: 'delta', tool_output_delta: 'delta' };

/** A regular expression in the spelling that RE2 and Python share. */
export function regex(text) {
  const [, flags = '', rest] = /^(?:\(\?([ims]+)\))?([^]*)$/.exec(text);
  return new RegExp(rest.replace(/\(\?s:([^()]*)\)/g, (_, inner) => `(?:${inner.replaceAll('.', '[^]')})`), flags);
}

const words = (v) => (typeof v === 'string' ? v : JSON.stringify(v));

function jsonEnd(text) {
  for (let end = text.indexOf(text[0] === '"' ? '"' : text[0] === '[' ? ']' : '}', 1); end >= 0; end = text.indexOf(text[0] === '"' ? '"' : text[0] === '[' ? ']' : '}', end + 1)) {
    try {
      return [JSON.parse(text.slice(0, end + 1)), text.slice(end + 1)];
    } catch {
      // not whole yet
    }
  }
  throw new Error(`no JSON at ${text}`);
}

/** A JSON value, or a bare word, from the start of text, and what follows it. */
function valueAt(text) {
  if (text !== '' && '"[{'.includes(text[0])) return jsonEnd(text);
  const [, word, rest] = /^([^ ]*) ?([^]*)$/.exec(text);
  try {
    return [JSON.parse(word), rest];
  } catch {
    return [word, rest];
  }
}

function part(obj, key) {
  if (typeof obj !== 'object' || obj === null) return undefined;
  if (Object.hasOwn(obj, key)) return obj[key];
  const dot = key.indexOf('.');
  return dot < 0 ? undefined : part(obj[key.slice(0, dot)], key.slice(dot + 1));
}

/** One line of want/events. */
export class Facts {
  constructor(line) {
    this.line = line;
    let [, name, rest] = /^ *([^ ]*) ?([^]*)$/.exec(line);
    Object.assign(this, { name, places: [], equal: [], match: [] });
    while ((rest = rest.replace(/^ +/, '')) !== '') {
      const key = /^([A-Za-z_][A-Za-z0-9_.]*)([=~])/.exec(rest);
      let value;
      [value, rest] = valueAt(key ? rest.slice(key[0].length) : rest);
      if (!key) this.places.push(value);
      else (key[2] === '=' ? this.equal : this.match).push([key[1], value]);
    }
  }

  fits(obj, places) {
    return this.places.length <= places.length &&
      this.places.every((v, i) => obj[places[i]] !== undefined && obj[places[i]] !== null && words(obj[places[i]]) === words(v)) &&
      this.equal.every(([k, v]) => !diff(part(obj, k), v)) &&
      this.match.every(([k, v]) => typeof part(obj, k) === 'string' && regex(v).test(part(obj, k)));
  }

  fitsEvent(e) {
    return this.name === e.type && this.fits(e.payload, POSITIONAL[e.type] ?? []);
  }
}

const missing = (v) => v === undefined || v === null;

const OPERATORS = {
  $match: (got, want, at) => (typeof got === 'string' && regex(want).test(got) ? '' : `${at} is ${JSON.stringify(got)}, want a match of ${want}`),
  $above: (got, want, at) => (typeof got === 'number' && got > want ? '' : `${at} is ${JSON.stringify(got)}, want it above ${want}`),
  $has: (got, want, at) => among(got, want, at, true),
  $lacks: (got, want, at) => among(got, want, at, false),
};

function among(got, want, at, there) {
  const wrong = want.filter((w) => !Array.isArray(got) || got.some((g) => !diff(g, w)) !== there);
  return wrong.length ? `${at} is ${JSON.stringify(got)}: ${there ? 'it lacks' : 'it has'} ${JSON.stringify(wrong)}` : '';
}

/** Where got lacks what want names; empty if it does not. */
export function diff(got, want, at = '') {
  if (Array.isArray(want)) {
    if (!Array.isArray(got) || got.length !== want.length) return `${at} is ${JSON.stringify(got)}, want ${want.length} items`;
    return want.map((w, i) => diff(got[i], w, `${at}[${i}]`)).find(Boolean) ?? '';
  }
  if (typeof want === 'object' && want !== null) {
    const keys = Object.keys(want);
    if (keys.length === 1 && want.$absent === true) return missing(got) ? '' : `${at} is ${JSON.stringify(got)}, want it absent`;
    if (keys.length === 1 && Object.hasOwn(OPERATORS, keys[0])) return OPERATORS[keys[0]](got, want[keys[0]], at);
    if (typeof got !== 'object' || got === null || Array.isArray(got)) return `${at} is ${JSON.stringify(got)}, want an object`;
    return keys.map((k) => diff(got[k], want[k], `${at}.${k}`)).find(Boolean) ?? '';
  }
  return got === want || (missing(got) && want === null) ? '' : `${at} is ${JSON.stringify(got)}, want ${JSON.stringify(want)}`;
}

/** The events with neighbouring deltas of one kind and tool joined. */
export function joined(events) {
  const out = [];
  for (const e of events) {
    const [grows, last] = [GROWS[e.type], out.at(-1)];
    if (grows && last?.type === e.type && last.payload.id === e.payload.id) {
      out[out.length - 1] = { ...last, payload: { ...last.payload, [grows]: last.payload[grows] + e.payload[grows] } };
    } else {
      out.push(e);
    }
  }
  return out;
}

/** Compares events with the lines of want/events; throws what is not there. */
export function compare(events, text) {
  const lines = text.split('\n').filter((l) => l.trim() && !l.startsWith('#')).map((l) => new Facts(l));
  let furthest = 0;
  const fits = (i, j) => {
    furthest = Math.max(furthest, j);
    if (j === lines.length) return i === events.length;
    if (lines[j].name === '...') {
      for (let k = i; k <= events.length; k++) if (fits(k, j + 1)) return true;
      return false;
    }
    return i < events.length && lines[j].fitsEvent(events[i]) && fits(i + 1, j + 1);
  };
  if (!fits(0, 0)) {
    const told = events.map((e) => `  ${e.type} ${JSON.stringify(e.payload)}`).join('\n');
    throw new Error(`want/events: there is no ${lines[furthest]?.line ?? 'end here'}\n${told}`);
  }
}
