package record_test

import (
	"bytes"
	"encoding/json"
	"reflect"
	"testing"

	"github.com/a3s-lab/liba3s/runtime/event"
	"github.com/a3s-lab/liba3s/runtime/record"
)

func TestFlatten(t *testing.T) {
	tests := []struct{ name, typ, payload, flat string }{
		{"object", "text_delta", `{"text":"<a>"}`, `{"type":"text_delta","text":"<a>"}`},
		{"empty object", "x", `{}`, `{"type":"x"}`},
		{"order and spelling", "x", `{"z":1.0,"a":1e5,"b":"\u00e9\u2028"}`, `{"type":"x","z":1.0,"a":1e5,"b":"\u00e9\u2028"}`},
		{"type inside", "x", `{"error_kind":{"type":"timeout"}}`, `{"type":"x","error_kind":{"type":"timeout"}}`},
		{"own type", "x", `{"type":"y","n":1}`, `{"type":"x","a3s.payload":{"type":"y","n":1}}`},
		{"own type, escaped", "x", `{"\u0074ype":"y"}`, `{"type":"x","a3s.payload":{"\u0074ype":"y"}}`},
		{"own escape key", "x", `{"a3s.payload":1}`, `{"type":"x","a3s.payload":{"a3s.payload":1}}`},
		{"list", "x", `[1,{"type":2}]`, `{"type":"x","a3s.payload":[1,{"type":2}]}`},
		{"text", "x", `"type"`, `{"type":"x","a3s.payload":"type"}`},
		{"null", "x", `null`, `{"type":"x","a3s.payload":null}`},
		{"odd type name", "a\"<é>", `{"n":1}`, `{"type":"a\"<é>","n":1}`},
		{"repeated keys", "x", `{"a":1,"a":2}`, `{"type":"x","a":1,"a":2}`},
		{"braces in text", "x", `{"a":"}{\"][","b":[]}`, `{"type":"x","a":"}{\"][","b":[]}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			env := event.Envelope{Version: 1, Type: tt.typ, Payload: json.RawMessage(tt.payload),
				Metadata: &event.Metadata{RunID: "r", SessionID: "s", Sequence: 7, TimestampMS: 8}}
			got, err := record.Flatten(&env)
			if err != nil {
				t.Fatal(err)
			}
			if string(got.Event) != tt.flat || got.Sequence != 7 || got.TimestampMS != 8 {
				t.Errorf("flat %s", got.Event)
			}
			back, err := got.Envelope("r", "s")
			if err != nil || !reflect.DeepEqual(back, env) {
				t.Errorf("back %s, %v", back.Payload, err)
			}
			// The indentation of the snapshot changes nothing.
			var wide bytes.Buffer
			if err := json.Indent(&wide, got.Event, "    ", "  "); err != nil {
				t.Fatal(err)
			}
			got.Event = wide.Bytes()
			back, err = got.Envelope("r", "s")
			if err != nil || !reflect.DeepEqual(back, env) {
				t.Errorf("back from indented %s, %v", back.Payload, err)
			}
		})
	}
}

func TestFlattenRefuses(t *testing.T) {
	meta := &event.Metadata{}
	for name, env := range map[string]event.Envelope{
		"no metadata": {Type: "x", Payload: json.RawMessage(`{}`)},
		"no type":     {Payload: json.RawMessage(`{}`), Metadata: meta},
		"not JSON":    {Type: "x", Payload: json.RawMessage(`{"a"`), Metadata: meta},
	} {
		if got, err := record.Flatten(&env); err == nil {
			t.Errorf("%s: got %s", name, got.Event)
		}
	}
	for name, flat := range map[string]string{"no type": `{"a":1}`, "type is a number": `{"type":1}`, "list": `[]`, "not JSON": `{`, "empty": ``} {
		if got, err := (record.StoredEvent{Event: json.RawMessage(flat)}).Envelope("r", "s"); err == nil {
			t.Errorf("%s: got %+v", name, got)
		}
	}
}

func FuzzFlatten(f *testing.F) {
	f.Add("x", []byte(`{"a":[1,"}"],"\u0074ype":null}`))
	f.Add("x", []byte(`{"a3s.payload":{}}`))
	f.Add("x", []byte(` [ 1 ] `))
	f.Fuzz(func(t *testing.T, typ string, payload []byte) {
		env := event.Envelope{Version: 1, Type: typ, Payload: payload, Metadata: &event.Metadata{}}
		flat, err := record.Flatten(&env)
		if err != nil {
			return
		}
		back, err := flat.Envelope("", "")
		if err != nil {
			t.Fatalf("%v: %s", err, flat.Event)
		}
		var want bytes.Buffer
		if len(bytes.TrimSpace(payload)) == 0 {
			payload = []byte("null")
		}
		if err := json.Compact(&want, payload); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(want.Bytes(), back.Payload) {
			t.Fatalf("%s became %s by way of %s", want.Bytes(), back.Payload, flat.Event)
		}
	})
}
