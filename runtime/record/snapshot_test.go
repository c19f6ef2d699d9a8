package record_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/a3s-lab/liba3s/runtime/chat"
	"github.com/a3s-lab/liba3s/runtime/fault"
	"github.com/a3s-lab/liba3s/runtime/record"
)

func sample() *record.Snapshot {
	return &record.Snapshot{
		SchemaVersion: 1,
		Session:       record.SessionData{ID: "s", State: "Active", Messages: []chat.Message{chat.Say(chat.User, "hello <world>")}},
		RunRecords: []record.RunRecord{{
			Snapshot: record.RunSnapshot{ID: "r", SessionID: "s", Status: record.Completed, EventCount: 3},
			Events: []record.StoredEvent{
				{Sequence: 1, Event: json.RawMessage(`{"type":"text_delta","text":"a"}`)},
				{Sequence: 2, Event: json.RawMessage(`{"type":"agent_end","text":"a"}`)},
			},
		}},
		SubagentTasks: []record.SubagentTask{{TaskID: "k", ParentSessionID: "s", Raw: json.RawMessage(`{"task_id":"k","parent_session_id":"s"}`)}},
	}
}

func TestValidate(t *testing.T) {
	tests := []struct {
		name   string
		damage func(*record.Snapshot)
		code   fault.Code // empty: valid
		field  string
	}{
		{"valid", func(*record.Snapshot) {}, "", ""},
		{"retained events start above 0", func(s *record.Snapshot) { s.RunRecords[0].Snapshot.EventCount = 9 }, "", ""},
		{"run without events", func(s *record.Snapshot) { s.RunRecords[0].Events = nil; s.RunRecords[0].Snapshot.EventCount = 0 }, "", ""},
		{"subagent without parent", func(s *record.Snapshot) { s.SubagentTasks[0].ParentSessionID = "" }, "", ""},
		{"schema version 0", func(s *record.Snapshot) { s.SchemaVersion = 0 }, fault.CodeSerialization, "schema_version"},
		{"schema version 2", func(s *record.Snapshot) { s.SchemaVersion = 2 }, fault.CodeSerialization, "schema_version"},
		{"another session", func(s *record.Snapshot) { s.Session.ID = "t" }, fault.CodeSession, "session.id"},
		{"run twice", func(s *record.Snapshot) { s.RunRecords = append(s.RunRecords, s.RunRecords[0]) }, fault.CodeSession, "run_records"},
		{"run without id", func(s *record.Snapshot) { s.RunRecords[0].Snapshot.ID = "" }, fault.CodeSerialization, "run_records"},
		{"run of another session", func(s *record.Snapshot) { s.RunRecords[0].Snapshot.SessionID = "t" }, fault.CodeSession, "run_records"},
		{"sequence repeated", func(s *record.Snapshot) { s.RunRecords[0].Events[1].Sequence = 1 }, fault.CodeSession, "run_records"},
		{"sequence falls", func(s *record.Snapshot) { s.RunRecords[0].Events[1].Sequence = 0 }, fault.CodeSession, "run_records"},
		{"sequence negative", func(s *record.Snapshot) { s.RunRecords[0].Events[0].Sequence = -1 }, fault.CodeSession, "run_records"},
		{"event count too low", func(s *record.Snapshot) { s.RunRecords[0].Snapshot.EventCount = 2 }, fault.CodeSession, "run_records"},
		{"largest sequence", func(s *record.Snapshot) { s.RunRecords[0].Events[1].Sequence = 1<<63 - 1 }, fault.CodeSession, "run_records"},
		{"event count negative", func(s *record.Snapshot) { s.RunRecords[0].Snapshot.EventCount = -1 }, fault.CodeSerialization, "run_records"},
		{"event not an object", func(s *record.Snapshot) { s.RunRecords[0].Events[0].Event = json.RawMessage(`[]`) }, fault.CodeSerialization, "run_records"},
		{"subagent of another session", func(s *record.Snapshot) { s.SubagentTasks[0].ParentSessionID = "t" }, fault.CodeSession, "subagent_tasks"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := sample()
			tt.damage(s)
			err := s.Validate("s")
			if tt.code == "" {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			var e *fault.Error
			if !errors.As(err, &e) || e.Code != tt.code || e.Kind != fault.Invalid || e.Details["field"] != tt.field {
				t.Errorf("got %#v", err)
			}
		})
	}
}

func TestSnapshotRoundTrip(t *testing.T) {
	before := sample()
	b, err := record.EncodeSnapshot(before)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(before, sample()) {
		t.Error("encoding changed the snapshot")
	}
	for _, want := range []string{"\n  \"session\": {\n", `"artifacts": []`, `"hello <world>"`, `"enforce_active_skill_tool_restrictions": false`} {
		if !bytes.Contains(b, []byte(want)) {
			t.Errorf("document lacks %q:\n%s", want, b)
		}
	}
	if bytes.Contains(b, []byte("null")) {
		t.Errorf("document has a null:\n%s", b)
	}
	got, err := record.DecodeSnapshot(bytes.NewReader(b), 0)
	if err != nil {
		t.Fatal(err)
	}
	again, err := record.EncodeSnapshot(got)
	if err != nil || !bytes.Equal(b, again) {
		t.Errorf("second document differs (%v):\n%s", err, again)
	}
}

// A snapshot of 6.x, with fields of later versions, keeps all of them.
func TestSnapshotOfOtherVersions(t *testing.T) {
	in, err := os.ReadFile("testdata/snapshot_6x.json")
	if err != nil {
		t.Fatal(err)
	}
	s, err := record.ParseSnapshot(in)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Validate("s-1"); err != nil {
		t.Fatal(err)
	}
	out, err := record.EncodeSnapshot(s)
	if err != nil {
		t.Fatal(err)
	}
	var want, got map[string]any
	if err := errors.Join(json.Unmarshal(in, &want), json.Unmarshal(out, &got)); err != nil {
		t.Fatal(err)
	}
	session := want["session"].(map[string]any)
	session["tasks"] = session["todos"]
	delete(session, "todos")
	for _, list := range []string{"artifacts", "verification_reports"} {
		want[list] = []any{}
	}
	dropNulls(want)
	dropNulls(got)
	// A false is_error is the same as none.
	delete(session["messages"].([]any)[2].(map[string]any)["content"].([]any)[0].(map[string]any), "is_error")
	if !reflect.DeepEqual(want, got) {
		w, _ := json.MarshalIndent(want, "", " ")
		g, _ := json.MarshalIndent(got, "", " ")
		t.Errorf("want %s\ngot %s", w, g)
	}
	if string(s.Extra["session_review"]) != "null" || !bytes.Contains(out, []byte(`"session_review": null`)) {
		t.Error("an unknown null was lost")
	}
}

func dropNulls(m map[string]any) {
	for k, v := range m {
		switch v := v.(type) {
		case nil:
			delete(m, k)
		case map[string]any:
			dropNulls(v)
		}
	}
}

func TestBareSession(t *testing.T) {
	s, err := record.ParseSnapshot([]byte(`{"id":"s","messages":[{"role":"user","content":[]}]}`))
	if err != nil || s.SchemaVersion != 1 || len(s.Session.Messages) != 1 || s.Validate("s") != nil {
		t.Errorf("got %+v, %v", s, err)
	}
}

// SESS-05: what cannot be read gives a typed error.
func TestSESS05(t *testing.T) {
	whole, err := record.EncodeSnapshot(sample())
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]string{
		"empty":                  "",
		"null":                   "null",
		"list":                   "[]",
		"text":                   "not json",
		"half":                   string(whole[:len(whole)/2]),
		"trailing":               string(whole) + "{}",
		"session of wrong type":  `{"schema_version":1,"session":[]}`,
		"version of wrong type":  `{"schema_version":"1","session":{"id":"s"}}`,
		"messages of wrong type": `{"schema_version":1,"session":{"id":"s","messages":{}}}`,
		"runs of wrong type":     `{"schema_version":1,"session":{"id":"s"},"run_records":[1]}`,
		"task of wrong type":     `{"schema_version":1,"session":{"id":"s"},"subagent_tasks":[[]]}`,
		"version alone":          `{"schema_version":1,"id":"s"}`,
		"session alone":          `{"session":{"id":"s"}}`,
		"neither":                `{"name":"s"}`,
		"not UTF-8":              "{\"id\":\"\xff\"}",
		"deep":                   `{"id":"s","x":` + strings.Repeat("[", 20000) + strings.Repeat("]", 20000) + `}`,
	}
	for name, doc := range tests {
		t.Run(name, func(t *testing.T) {
			s, err := record.DecodeSnapshot(strings.NewReader(doc), 0)
			var e *fault.Error
			if s != nil || !errors.As(err, &e) || e.Code != fault.CodeSerialization {
				t.Errorf("got %v, %v", s, err)
			}
		})
	}
}

func TestSnapshotLimit(t *testing.T) {
	b, err := record.EncodeSnapshot(sample())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := record.DecodeSnapshot(bytes.NewReader(b), int64(len(b))); err != nil {
		t.Error(err)
	}
	if _, err := record.DecodeSnapshot(bytes.NewReader(b), int64(len(b))-1); fault.KindOf(err) != fault.Limit {
		t.Errorf("one byte over the limit: %v", err)
	}
}

// UTF8-02: a character cut in half never reaches the file.
func TestUTF802(t *testing.T) {
	half := "cut \xf0\x9f\x98"
	s := sample()
	s.Session.Messages[0] = chat.Say(chat.User, half)
	s.RunRecords[0].Events[0].Event = json.RawMessage(`{"type":"text_delta","text":"` + half + `"}`)
	b, err := record.EncodeSnapshot(s)
	if err != nil || !utf8.Valid(b) || !json.Valid(b) {
		t.Fatalf("%v: %q", err, b)
	}
	back, err := record.ParseSnapshot(b)
	if err != nil || back.Session.Messages[0].Text() != "cut \uFFFD\uFFFD\uFFFD" {
		t.Errorf("%v: %q", err, back.Session.Messages[0].Text())
	}
}

func TestEncodeSaysWhichPartIsNotJSON(t *testing.T) {
	s := sample()
	s.Session.Messages[0].Content = []chat.Block{{Type: chat.ToolUse, ID: "c1", Input: json.RawMessage(`{"a":`)}}
	_, err := record.EncodeSnapshot(s)
	if err == nil || !strings.Contains(err.Error(), `input of call "c1"`) {
		t.Errorf("got %v", err)
	}
	s = sample()
	s.RunRecords[0].Events[0].Event = json.RawMessage(`{"type":`)
	_, err = record.EncodeSnapshot(s)
	if err == nil || !strings.Contains(err.Error(), `event 1 is not JSON`) {
		t.Errorf("got %v", err)
	}
}

func FuzzSnapshot(f *testing.F) {
	whole, err := record.EncodeSnapshot(sample())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(whole)
	f.Add([]byte(`{"id":"s","todos":[1],"x":null}`))
	f.Add([]byte(`{"schema_version":1,"session":{"ID":"s","id":"t"},"subagent_tasks":[{}]}`))
	f.Fuzz(func(t *testing.T, doc []byte) {
		s, err := record.ParseSnapshot(doc)
		if err != nil {
			return
		}
		if s.Validate(s.Session.ID) != nil {
			return
		}
		// What could be read can be written, and says the same when read again.
		b, err := record.EncodeSnapshot(s)
		if err != nil {
			t.Fatal(err)
		}
		again, err := record.ParseSnapshot(b)
		if err != nil {
			t.Fatalf("%v: %s", err, b)
		}
		c, err := record.EncodeSnapshot(again)
		if err != nil || !bytes.Equal(b, c) {
			t.Fatalf("%v\n%s\n%s", err, b, c)
		}
	})
}
