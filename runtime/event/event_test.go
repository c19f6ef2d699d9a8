package event_test

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/a3s-lab/liba3s/runtime/chat"
	"github.com/a3s-lab/liba3s/runtime/event"
	"github.com/a3s-lab/liba3s/runtime/fault"
)

var meta = event.Metadata{RunID: "run-1", SessionID: "s \"é\" \n", Sequence: 7, TimestampMS: 1700000000123}

// fill puts something into every field of a payload.
func fill(v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		v.SetString("text \"<é>\" \u2028")
	case reflect.Int, reflect.Int64, reflect.Int32:
		v.SetInt(42)
	case reflect.Uint64:
		v.SetUint(42)
	case reflect.Float64:
		v.SetFloat(1.5)
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem())
	case reflect.Slice:
		if v.Type() == reflect.TypeFor[json.RawMessage]() {
			v.SetBytes([]byte(`{"a":[1,2.50,"x"]}`))
			return
		}
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0))
	case reflect.Map:
		v.Set(reflect.ValueOf(map[string]any{"k": "v"}))
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() && v.Type().Field(i).Name != "Err" {
				fill(v.Field(i))
			}
		}
	}
}

// Every event of the catalogue comes out of its envelope as it went in.
func TestEveryEventComesBack(t *testing.T) {
	for _, row := range event.Catalogue {
		for _, full := range []bool{false, true} {
			v := reflect.New(reflect.TypeOf(row.Payload)).Elem()
			if full {
				fill(v)
			}
			want := v.Interface().(event.Payload)
			if want.Type() != row.Name {
				t.Errorf("%T is %q in the catalogue and says %q", want, row.Name, want.Type())
			}
			b, err := event.Append(nil, want, meta)
			if err != nil {
				t.Fatalf("%s: %v", row.Name, err)
			}
			var env event.Envelope
			if err := json.Unmarshal(b, &env); err != nil {
				t.Fatalf("%s: %s: %v", row.Name, b, err)
			}
			if env.Version != 1 || env.Type != row.Name || *env.Metadata != meta {
				t.Errorf("%s: %+v %+v", row.Name, env, env.Metadata)
			}
			got, err := event.Decode(env.Type, env.Payload)
			if err != nil {
				t.Fatalf("%s: %s: %v", row.Name, env.Payload, err)
			}
			if a, _ := json.Marshal(got); !jsonEqual(t, a, env.Payload) {
				t.Errorf("%s: got %s, want %s", row.Name, a, env.Payload)
			}
			if full && !reflect.DeepEqual(got, want) {
				t.Errorf("%s: got %+v, want %+v", row.Name, got, want)
			}
		}
	}
}

func jsonEqual(t *testing.T, a, b []byte) bool {
	t.Helper()
	var x, y any
	if json.Unmarshal(a, &x) != nil || json.Unmarshal(b, &y) != nil {
		return false
	}
	return reflect.DeepEqual(x, y)
}

func TestFramesHaveNoNumber(t *testing.T) {
	for _, row := range event.Frames {
		v := reflect.New(reflect.TypeOf(row.Payload)).Elem()
		fill(v)
		b, err := event.AppendFrame(nil, v.Interface().(event.Payload))
		if err != nil {
			t.Fatal(err)
		}
		var env event.Envelope
		if err := json.Unmarshal(b, &env); err != nil {
			t.Fatalf("%s: %v", b, err)
		}
		if env.Type != row.Name || env.Metadata != nil || strings.Contains(string(b), "metadata\":{\"run_id") {
			t.Errorf("%s", b)
		}
		if slices.Contains(event.Types(), row.Name) {
			t.Errorf("%s is a frame and an event", row.Name)
		}
	}
}

func TestUnknownEventsPassThrough(t *testing.T) {
	raw := json.RawMessage(`{"b":1,"a":[1.50,"x"]}`)
	p, err := event.Decode("of_a_newer_version", raw)
	if err != nil {
		t.Fatal(err)
	}
	if u, ok := p.(event.Unknown); !ok || u.Type() != "of_a_newer_version" || string(u.Raw) != string(raw) {
		t.Errorf("%#v", p)
	}
	b, err := event.Append(nil, p, meta)
	if err != nil || !strings.Contains(string(b), `"payload":{"b":1,"a":[1.50,"x"]}`) {
		t.Errorf("%s, %v", b, err)
	}
}

func TestOptionalFieldsAreLeftOut(t *testing.T) {
	cases := []struct {
		p    event.Payload
		want string
	}{
		{event.TextDelta{Text: "a"}, `{"text":"a"}`},
		{event.ToolInputDelta{Delta: "{"}, `{"delta":"{"}`},
		{event.ToolInputDelta{ID: "c", Delta: "{"}, `{"id":"c","delta":"{"}`},
		{event.ToolOutputDelta{ID: "c", Name: "bash", Delta: "x"}, `{"id":"c","name":"bash","delta":"x"}`},
		{event.ToolEnd{ID: "c", Name: "ls", Output: ""}, `{"id":"c","name":"ls","output":"","exit_code":0}`},
		{event.ConfirmationReceived{ToolID: "c"}, `{"tool_id":"c","approved":false,"reason":null}`},
		{event.TurnEnd{Turn: 1, Usage: chat.Usage{PromptTokens: 1}}, `{"turn":1,"usage":{"prompt_tokens":1,"completion_tokens":0,"total_tokens":0}}`},
		{event.FromFault(fault.Of(fault.CodeLLM, "model", "no").With("x", 1)), `{"message":"LLM error: no","code":"LLM_ERROR","status":-15,"kind":"provider","op":"model","retryable":false,"details":{"x":1}}`},
	}
	for _, c := range cases {
		b, err := event.AppendFrame(nil, c.p)
		if want := `{"version":1,"type":"` + c.p.Type() + `","payload":` + c.want + `}`; err != nil || string(b) != want {
			t.Errorf("got  %s (%v)\nwant %s", b, err, want)
		}
	}
}

// Append writes behind what is there, and gives nothing on an error.
func TestAppend(t *testing.T) {
	b, err := event.Append([]byte("before"), event.TurnStart{Turn: 1}, meta)
	if err != nil || !strings.HasPrefix(string(b), `before{"version":1,`) {
		t.Errorf("%s, %v", b, err)
	}
	if b, err = event.Append(nil, event.AgentEnd{Meta: json.RawMessage("{")}, meta); err == nil || b != nil {
		t.Errorf("%s, %v", b, err)
	}
}

func FuzzAppendString(f *testing.F) {
	for _, s := range []string{"", "plain", "\x00\x1f\x7f", "\"\\\b\f\n\r\t", "é\u2028\u2029\U0001F600", "\xff\xc3", "<>&", strings.Repeat("longer than a word ", 9)} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		b := event.AppendString([]byte("x"), s)
		if b[0] != 'x' || !utf8.Valid(b) {
			t.Fatalf("%q", b)
		}
		var got string
		if err := json.Unmarshal(b[1:], &got); err != nil {
			t.Fatalf("%q: %v", b, err)
		}
		if want := strings.ToValidUTF8(s, "\uFFFD"); utf8.ValidString(s) && got != want {
			t.Errorf("%q came back as %q", s, got)
		}
	})
}

func FuzzDecode(f *testing.F) {
	for _, row := range event.Catalogue {
		v := reflect.New(reflect.TypeOf(row.Payload)).Elem()
		fill(v)
		b, err := json.Marshal(v.Interface())
		if err != nil {
			f.Fatal(err)
		}
		f.Add(row.Name, b)
	}
	f.Add("text_delta", []byte(`{"text":3}`))
	f.Add("", []byte(`null`))
	f.Add("of_a_newer_version", []byte(`[`))
	f.Fuzz(func(t *testing.T, name string, raw []byte) {
		p, err := event.Decode(name, raw)
		if err != nil {
			return
		}
		if p.Type() != name {
			t.Fatalf("%q decoded as %q", name, p.Type())
		}
		if _, unknown := p.(event.Unknown); unknown {
			return
		}
		again, err := json.Marshal(p)
		if err != nil {
			t.Fatalf("%s %s: %v", name, raw, err)
		}
		q, err := event.Decode(name, again)
		if err != nil {
			t.Fatalf("%s: %s came from %s: %v", name, again, raw, err)
		}
		if third, _ := json.Marshal(q); string(third) != string(again) {
			t.Errorf("%s: %s, then %s", name, again, third)
		}
	})
}
