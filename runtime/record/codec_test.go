package record_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/a3s-lab/liba3s/runtime/chat"
	"github.com/a3s-lab/liba3s/runtime/event"
	"github.com/a3s-lab/liba3s/runtime/fault"
	"github.com/a3s-lab/liba3s/runtime/record"
)

// slow is what encoding/json makes of an event.
func slow(b []byte) (*event.Envelope, bool) {
	env := new(event.Envelope)
	err := json.Unmarshal(b, env)
	return env, err == nil && env.Version == event.Version && env.Metadata != nil
}

// The quick way of decoding an event agrees with encoding/json.
func TestDecodeEvents(t *testing.T) {
	meta := event.Metadata{RunID: "run-1", SessionID: "s", Sequence: 3, TimestampMS: 1700000000000}
	tests := map[string]string{
		"empty payload":   `{}`,
		"text":            `{"text":"a\"b\\\u00e9é"}`,
		"looks like meta": `{"x":{"metadata":{"run_id":"r","session_id":"t","sequence":1,"timestamp_ms":2}},"metadata":{"run_id":"q"}}`,
		"meta in text":    `{"x":",\"metadata\":{\"run_id\":\"r"}`,
		"payload in text": `{"x":"\",\"payload\":"}`,
		"null":            `null`,
		"list":            `[1,{"a":2}]`,
		"blanks":          ` { "a" : 1 } `,
		"not JSON":        `{"a":}`,
		"two values":      `{},"payload":{}`,
		"injected":        `{}},"x":{"y":1`,
		"nothing":         ``,
	}
	for name, payload := range tests {
		t.Run(name, func(t *testing.T) {
			for _, m := range []event.Metadata{meta, {RunID: "ü\n", SessionID: `"`, Sequence: -1}, {}} {
				mb, err := json.Marshal(m)
				if err != nil {
					t.Fatal(err)
				}
				b := []byte(`{"version":1,"type":"text_delta","payload":` + payload + `,"metadata":` + string(mb) + `}`)
				want, ok := slow(b)
				got, err := record.Decode(b)
				if ok != (err == nil) {
					t.Fatalf("%s: %v", b, err)
				}
				if ok && !reflect.DeepEqual(got, record.Line{Event: want}) {
					t.Errorf("%s:\n got %+v\nwant %+v", b, got.Event, want)
				}
			}
		})
	}
}

func TestDecode(t *testing.T) {
	message := record.Fact{Message: &record.Message{RunID: "r", Message: chat.Say(chat.User, "hi")}}
	mark := record.Fact{Mark: &record.Mark{Replace: &record.Replace{Count: 2, With: []chat.Message{}}}}
	for name, f := range map[string]record.Fact{"message": message, "mark": mark} {
		b, err := record.Encode(f)
		if err != nil {
			t.Fatal(err)
		}
		got, err := record.Decode(b)
		if want := (record.Line{Fact: name, Message: f.Message, Mark: f.Mark}); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	got, err := record.Decode([]byte(`{"fact":"of a later version","x":1}`))
	if err != nil || got.Fact != "of a later version" || got.Message != nil || got.Mark != nil {
		t.Errorf("later kind: %+v, %v", got, err)
	}
	for _, bad := range []string{"", "{}", "[]", "null", `{"fact":1}`, `{"fact":"message","message":3}`, `{"version":1}`, `{"version":2,"type":"x","payload":{},"metadata":{}}`} {
		_, err := record.Decode([]byte(bad))
		if err == nil || fault.From("", err).Code != fault.CodeSerialization {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"version":1,"type":"x","payload":{"a":1},"metadata":{"run_id":"r","session_id":"s","sequence":1,"timestamp_ms":2}}`))
	f.Add([]byte(`{"version":1,"type":"x","payload":{"metadata":{"run_id":"r"},"metadata":{"run_id":"","session_id":"","sequence":-0,"timestamp_ms":01}}`))
	f.Add([]byte(`{"fact":"mark","mark":{"session":{"id":"s","x":1}}}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		got, err := record.Decode(b)
		if !strings.HasPrefix(string(b), `{"version":`) {
			return
		}
		want, ok := slow(b)
		if ok != (err == nil) || ok && !reflect.DeepEqual(got.Event, want) {
			t.Fatalf("got %+v, %v; want %+v, %v", got.Event, err, want, ok)
		}
	})
}

func BenchmarkDecode(b *testing.B) {
	env, err := event.Append(nil, event.TextDelta{Text: strings.Repeat("some words\n", 350)}, event.Metadata{RunID: "run-1", SessionID: "s", Sequence: 1, TimestampMS: 2})
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(env)))
	for b.Loop() {
		if _, err := record.Decode(env); err != nil {
			b.Fatal(err)
		}
	}
}
